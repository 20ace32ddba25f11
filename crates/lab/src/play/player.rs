//! The player itself. Invariants: a background step begins only while no request is there, and a request that arrives
//! in the middle of one waits until all that the step did has ended; the host's time for a call begins when all has ended
//! that the call did.

use emulator::Chip;
use flexfs_core::{Attr, Error, FormatOptions, Fs, Ino, MountOptions, NewNode, Power, ROOT_INO, kind};

use super::{PlayError, Setting, watch};
use crate::bench::Step;
use torture::content::mix;
use torture::crash::BASE_NS;

/// Steps in a row that do nothing and ask to be taken again at once: more are a step that never ends.
const IDLE_STEPS_MAX: u32 = 10_000;

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub arrival_ns: u64,
    /// When the last of its calls came back, the host's time included.
    pub end_ns: u64,
    /// Of that, until the background step under way at its arrival had ended.
    pub waited_ns: u64,
    /// Pages migrated since the request before it ended.
    pub migrated_pages: u64,
}

impl Response {
    /// From its arrival to its end.
    pub fn time_ns(&self) -> u64 {
        self.end_ns - self.arrival_ns
    }
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    /// Requests that arrived in the middle of a background step.
    pub delayed: u64,
    pub longest_wait_ns: u64,
    /// Background steps that kept a die busy.
    pub steps: u64,
    pub longest_step_ns: u64,
    pub migrated_pages: u64,
    /// Time in which background steps were less than a second apart: the system cannot sleep then.
    pub awake_ns: u64,
}

/// A pause up to this is too short to sleep in, ns.
const AWAKE_NS: u64 = 1_000_000_000;

/// A volume that is played with.
pub struct Player {
    fs: Fs<Chip>,
    setting: Setting,
    /// What the wall clock said when the chip's began, ns since 1970.
    wall_ns: i64,
    /// When the volume asked for its next step.
    next_step_ns: Option<u64>,
    /// When the request under way arrived, until its first call.
    arrival_ns: Option<u64>,
    /// When a request or a step that kept a die busy ended last.
    active_ns: u64,
    tally: Tally,
}

impl Player {
    /// A new volume on a new chip.
    pub fn new(setting: &Setting) -> Result<Self, PlayError> {
        let mut chip = Chip::new(&setting.profile, setting.seed)?;
        let mut volume_id = [0; 16];
        volume_id[..8].copy_from_slice(&mix(setting.seed).to_le_bytes());
        let (label, now_ns) = ("play".into(), BASE_NS + chip.now_ns() as i64);
        let options = FormatOptions {
            volume_id,
            label,
            blank: true,
            goal: setting.life.goal,
            now_ns,
            ..FormatOptions::default()
        };
        Fs::format(&mut chip, &options).map_err(|source| PlayError::Fs { doing: "formatting", source })?;
        Self::mount(chip, setting)
    }

    /// The volume on a chip of the setting's kind.
    pub fn mount(chip: Chip, setting: &Setting) -> Result<Self, PlayError> {
        Self::mount_at(chip, setting, BASE_NS)
    }

    /// Ends this mount, by an unmount or a power cut, and mounts again, with the wall clock put to another time.
    pub fn mount_again(mut self, cut: bool, wall_ns: i64) -> Result<Self, PlayError> {
        // A mounted volume hears that time passes, whether it has work or not.
        let now_ns = self.now_ns();
        self.step(now_ns)?;
        let setting = self.setting.clone();
        let chip = if cut { self.fs.into_chip() } else { self.unmount()? };
        Self::mount_at(chip, &setting, wall_ns)
    }

    fn mount_at(chip: Chip, setting: &Setting, wall_ns: i64) -> Result<Self, PlayError> {
        let now_ns = wall_ns + chip.now_ns() as i64;
        let options = MountOptions { policy: setting.policy, life: setting.life, now_ns, ..MountOptions::default() };
        let fs = Fs::mount(chip, options).map_err(|(_, source)| PlayError::Fs { doing: "mounting", source })?;
        let setting = setting.clone();
        Ok(Self { fs, setting, wall_ns, next_step_ns: None, arrival_ns: None, active_ns: 0, tally: Tally::default() })
    }

    pub fn now_ns(&self) -> u64 {
        self.fs.chip().now_ns()
    }

    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The file system, to look at: what is asked here takes no time and counts as no request.
    pub fn look(&mut self) -> &mut Fs<Chip> {
        &mut self.fs
    }

    /// Says where the power comes from.
    pub fn set_power(&mut self, power: Power) {
        self.fs.set_power(power);
        self.next_step_ns = Some(self.now_ns());
    }

    /// Lets time pass until the request arrives, with background steps in it, and answers it.
    pub fn request<T>(
        &mut self,
        arrival_ns: u64,
        answer: impl FnOnce(&mut Self) -> Result<T, PlayError>,
    ) -> Result<(T, Response), PlayError> {
        let migrated_pages = self.tally.migrated_pages;
        // It may have to wait for the request before it, too, which is no step.
        let free_ns = self.now_ns().max(arrival_ns);
        self.rest_until(arrival_ns)?;
        let waited_ns = self.now_ns() - free_ns;
        self.tally.requests += 1;
        self.tally.delayed += u64::from(waited_ns > 0);
        self.tally.longest_wait_ns = self.tally.longest_wait_ns.max(waited_ns);
        self.arrival_ns = Some(arrival_ns);
        let answered = answer(self);
        self.arrival_ns = None;
        let migrated_pages = self.tally.migrated_pages - migrated_pages;
        let response = Response { arrival_ns, end_ns: self.now_ns(), waited_ns, migrated_pages };
        Ok((answered?, response))
    }

    /// Makes one of the request's calls; the host's time for it follows.
    pub fn call<T>(
        &mut self,
        doing: &'static str,
        call: impl FnOnce(&mut Fs<Chip>, i64) -> Result<T, Error>,
    ) -> Result<T, PlayError> {
        let start_ns = self.now_ns();
        let mono_ns = self.arrival_ns.take().unwrap_or(start_ns);
        let before = *self.fs.chip().counters();
        self.fs.chip_mut().begin_call(start_ns);
        self.fs.request(mono_ns as i64);
        let result = call(&mut self.fs, self.wall_ns + mono_ns as i64);
        let after = *self.fs.chip().counters();
        let (slc, native) = (&after.programs.slc, &after.programs.native);
        let (slc, native) = (slc.host - before.programs.slc.host, native.host - before.programs.native.host);
        let host_ns = self.setting.host.of_ns(slc, native);
        let end_ns = self.fs.chip().call_end_ns() + host_ns;
        if end_ns > self.now_ns() {
            self.advance_to(end_ns);
        }
        self.next_step_ns = Some(self.now_ns());
        self.active_ns = self.now_ns();
        result.map_err(|source| PlayError::Fs { doing, source })
    }

    /// Lets time pass, with the background steps that the volume asks for; one that is under way then ends.
    pub fn rest_until(&mut self, end_ns: u64) -> Result<(), PlayError> {
        let mut idle_steps = 0;
        while let Some(at_ns) = self.next_step_ns.filter(|&at_ns| at_ns < end_ns) {
            idle_steps = if self.step(at_ns)? { 0 } else { idle_steps + 1 };
            if idle_steps > IDLE_STEPS_MAX {
                return Err(PlayError::Wrong("background steps that do nothing never end".into()));
            }
        }
        self.advance_to(end_ns);
        Ok(())
    }

    /// Takes one background step; whether it kept a die busy.
    fn step(&mut self, at_ns: u64) -> Result<bool, PlayError> {
        self.advance_to(at_ns);
        let start_ns = self.now_ns();
        let before = *self.fs.chip().counters();
        self.fs.chip_mut().begin_call(start_ns);
        let next = self.fs.background(start_ns as i64, self.wall_ns + start_ns as i64);
        let next = next.map_err(|source| PlayError::Fs { doing: "working in the background", source })?;
        let chip = self.fs.chip();
        let after = *chip.counters();
        let step = Step::so_far(&after).since(Step::so_far(&before));
        step.bounded(chip.profile(), false).map_err(PlayError::Wrong)?;
        self.tally.migrated_pages += after.programs.native.migration - before.programs.native.migration;
        if step.flash_ns > 0 {
            let end_ns = self.fs.chip().call_end_ns();
            let taken_ns = end_ns - start_ns;
            self.advance_to(end_ns);
            let since_ns = self.now_ns() - self.active_ns;
            self.tally.awake_ns += since_ns.min(AWAKE_NS + taken_ns);
            self.active_ns = self.now_ns();
            self.tally.steps += 1;
            self.tally.longest_step_ns = self.tally.longest_step_ns.max(taken_ns);
        }
        self.next_step_ns = next.map(|next_ns| self.now_ns().max(next_ns as u64));
        Ok(step.flash_ns > 0)
    }

    fn advance_to(&mut self, ns: u64) {
        self.fs.chip_mut().advance_to_ns(ns);
        watch::show(&mut self.fs);
    }

    /// Makes an empty file in the root directory.
    pub fn create(&mut self, name: &str) -> Result<Attr, PlayError> {
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        self.call("creating a file", |fs, now_ns| fs.create(ROOT_INO, name.as_bytes(), node, now_ns))
    }

    /// Writes all of `data`; less is `ENOSPC`.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<(), PlayError> {
        self.call("writing", |fs, now_ns| {
            let count = fs.write(ino, offset, data, now_ns)?;
            if count < data.len() { Err(Error::NoSpace) } else { Ok(()) }
        })
    }

    pub fn sync(&mut self) -> Result<(), PlayError> {
        self.call("syncing", |fs, _| fs.sync())
    }

    /// Unmounts and gives the chip back.
    pub fn unmount(self) -> Result<Chip, PlayError> {
        let now_ns = self.wall_ns + self.now_ns() as i64;
        let (chip, result) = self.fs.unmount(now_ns);
        result.map_err(|source| PlayError::Fs { doing: "unmounting", source })?;
        Ok(chip)
    }
}

#[cfg(test)]
mod tests;
