//! Plays requests on a drive, and measures how long each takes. Invariant: a request comes at a time that depends on the load
//! alone, or when one of those outstanding ends; what is asked then sees all that was asked before.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1};
use serde::{Deserialize, Serialize};

use super::load::FileRequest;
use super::{
    CommandKind, DriveError, DriveModel, DriveShape, DriveSwitches, DriveTimes, PageStore, PlannedRequest,
    ShadowedStore,
};
use crate::bench::{Distribution, Waits};

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestArrivals {
    /// Each after a random gap of this mean (a Poisson process), ns.
    Poisson { mean_gap_ns: f64 },
    /// With bursts of so many requests in the mean: a request comes with the one before it, or begins another burst, as many
    /// gaps of this mean later as a burst has requests.
    Bursts { mean_gap_ns: f64, requests_mean: f64 },
    /// As many as are outstanding at any time.
    Outstanding(u32),
}

/// What requests are played on, and how many.
#[derive(Clone, Copy, Debug)]
pub struct PlayPlan {
    pub shape: DriveShape,
    pub times: DriveTimes,
    pub switches: DriveSwitches,
    pub arrivals: RequestArrivals,
    /// Requests at first that are not measured.
    pub dropped: usize,
    /// Of the gaps.
    pub seed: u64,
}

/// How long requests took, from their arrival to the end of their last page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseTimes {
    pub mean_us: f64,
    pub distribution: Distribution,
}

impl ResponseTimes {
    fn of(waits: &Waits) -> Self {
        Self { mean_us: waits.mean_us(), distribution: waits.distribution() }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayedRequests {
    pub all: ResponseTimes,
    pub reads: ResponseTimes,
    pub writes: ResponseTimes,
    /// Requests, with those that were not measured.
    pub requests: u64,
    /// Pages that were read or programmed for them.
    pub pages: u64,
    /// Pages that were read, each of which was compared.
    pub pages_compared: u64,
    /// Measured requests that ended a second, from the first one's arrival to the last end.
    pub per_s: f64,
    /// From the first arrival to the last end.
    pub elapsed_ns: u64,
}

/// Plays requests until `is_enough` of the store and the number of requests so far.
pub fn play<S: PageStore>(
    plan: &PlayPlan,
    store: &mut ShadowedStore<S>,
    requests: impl Iterator<Item = FileRequest>,
    mut is_enough: impl FnMut(&S, usize) -> bool,
) -> Result<PlayedRequests, DriveError> {
    plan.shape.check()?;
    let compared_before = store.pages_compared();
    let mut player = DrivePlayer::new(plan, store);
    let mut dice = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut at_ns = 0.0;
    for request in requests {
        if is_enough(&player.store.store, player.arrivals.len()) {
            break;
        }
        match plan.arrivals {
            RequestArrivals::Poisson { mean_gap_ns } => {
                let gap: f64 = Exp1.sample(&mut dice);
                at_ns += gap * mean_gap_ns;
                player.work_until(at_ns as u64)?;
            }
            RequestArrivals::Bursts { mean_gap_ns, requests_mean } => {
                if dice.random_bool(1.0 / requests_mean) {
                    let gap: f64 = Exp1.sample(&mut dice);
                    at_ns += gap * requests_mean * mean_gap_ns;
                }
                player.work_until(at_ns as u64)?;
            }
            RequestArrivals::Outstanding(most) => player.work_while_outstanding(most.max(1))?,
        }
        player.ask(&request)?;
    }
    player.finish()?;
    let measured_from_ns = player.arrivals.get(player.dropped).map_or(0, |&(came_ns, _)| came_ns);
    let (measured, elapsed_ns) = (player.arrivals.len().saturating_sub(player.dropped), player.drive.now_ns());
    Ok(PlayedRequests {
        per_s: measured as f64 * 1e9 / elapsed_ns.saturating_sub(measured_from_ns).max(1) as f64,
        all: ResponseTimes::of(&player.all),
        reads: ResponseTimes::of(&player.reads),
        writes: ResponseTimes::of(&player.writes),
        requests: player.arrivals.len() as u64,
        pages: player.drive.pages_done(),
        elapsed_ns,
        pages_compared: player.store.pages_compared() - compared_before,
    })
}

struct DrivePlayer<'a, S> {
    drive: DriveModel,
    store: &'a mut ShadowedStore<S>,
    planned: PlannedRequest,
    channels: u8,
    dropped: usize,
    /// When each request came, and what it does.
    arrivals: Vec<(u64, CommandKind)>,
    outstanding: u32,
    all: Waits,
    reads: Waits,
    writes: Waits,
}

impl<'a, S: PageStore> DrivePlayer<'a, S> {
    fn new(plan: &PlayPlan, store: &'a mut ShadowedStore<S>) -> Self {
        Self {
            drive: DriveModel::new(plan.shape, plan.times, plan.switches),
            store,
            planned: PlannedRequest::default(),
            channels: plan.shape.channels,
            dropped: plan.dropped,
            arrivals: Vec::new(),
            outstanding: 0,
            all: Waits::default(),
            reads: Waits::default(),
            writes: Waits::default(),
        }
    }

    fn work_until(&mut self, now_ns: u64) -> Result<(), DriveError> {
        while self.drive.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            self.step()?;
        }
        self.drive.wait_until(now_ns);
        Ok(())
    }

    fn work_while_outstanding(&mut self, most: u32) -> Result<(), DriveError> {
        while self.outstanding >= most && self.step()? {}
        Ok(())
    }

    /// The end of what was asked; nothing is collected any more.
    fn finish(&mut self) -> Result<(), DriveError> {
        while self.outstanding > 0 && self.advance().is_some() {}
        Ok(())
    }

    /// Lets something happen, and what is due in the background on that channel. False if nothing can happen.
    fn step(&mut self) -> Result<bool, DriveError> {
        let Some(channel) = self.advance() else { return Ok(false) };
        self.collect(channel)?;
        Ok(true)
    }

    /// Lets something happen on a channel.
    fn advance(&mut self) -> Option<u8> {
        let outcome = self.drive.step()?;
        if let Some(request) = outcome.ended {
            let (came_ns, kind) = self.arrivals[request as usize];
            self.outstanding -= 1;
            if request as usize >= self.dropped {
                let ns = self.drive.now_ns() - came_ns;
                self.all.add(ns);
                match kind {
                    CommandKind::Read => self.reads.add(ns),
                    CommandKind::Program => self.writes.add(ns),
                }
            }
        }
        Some(outcome.channel)
    }

    fn collect(&mut self, channel: u8) -> Result<(), DriveError> {
        if !self.store.is_collecting(channel) || self.drive.has_background(channel) {
            return Ok(());
        }
        let drive = &self.drive;
        if let Some(step) = self.store.background(channel, &|die| drive.is_idle(channel, die))? {
            self.drive.submit_background(&step);
        }
        Ok(())
    }

    fn ask(&mut self, request: &FileRequest) -> Result<(), DriveError> {
        match request.kind {
            CommandKind::Read => self.store.read(&request.span, &mut self.planned)?,
            CommandKind::Program => self.store.write(&request.span, self.drive.pending(), &mut self.planned)?,
        }
        self.arrivals.push((self.drive.now_ns(), request.kind));
        self.outstanding += 1;
        self.drive.submit(&self.planned.commands);
        self.planned.steps.iter().for_each(|step| self.drive.submit_background(step));
        (0..self.channels).try_for_each(|channel| self.collect(channel))
    }
}

#[cfg(test)]
mod tests;
