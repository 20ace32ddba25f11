//! The phone's half hour over and over, for as much of three years as a chip of a hundredth of the cycles stands for.
//! Invariant: every scheme is asked the same, and what is stored is compared with what was written in the end.

use emulator::Profile;
use flexfs_core::wear::Goal;
use serde::{Deserialize, Serialize};

use crate::experiment::workload::album::{Album, half_hour};
use crate::experiment::workload::phone::{self, Phone, Scheme};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series};
use crate::play::{HostCost, PlayError, Setting};

pub const SUSTAINED: Experiment = Experiment {
    id: "sustained",
    title: "Three years of a phone",
    about: "The half hour of Table 6 back to back, and once an hour, for a hundredth of three years on a chip that endures a \
            hundredth of the cycles. Songs and pictures stay until as many MiB are stored as the row says; then the oldest \
            go. Responses are told against SLC alone on a chip of twice the size, which has room for as much in SLC.",
    differs: "The paper plays one half hour. Its controller would have to write natively for most of three years of \
              them.",
    jobs,
    finish,
};

const MIB: u64 = 1 << 20;
const HOST: HostCost = HostCost::NONE;
/// A life of so much less, on a chip of so many fewer cycles.
const SCALE: u64 = 100;
/// The same, for the life that shows that it does not matter.
const OTHER_SCALE: u64 = 50;
const HOUR_NS: u64 = 3600 * 1_000_000_000;

/// A phone's life.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plan {
    live_mib: u64,
    /// The half hour is once in so much time, ns.
    every_ns: u64,
    scale: u64,
    /// The most that ours may take, of SLC alone.
    bar: Option<f64>,
}

const BACK_TO_BACK_NS: u64 = HOUR_NS / 2;

const fn back_to_back(live_mib: u64, bar: Option<f64>) -> Plan {
    Plan { live_mib, every_ns: BACK_TO_BACK_NS, scale: SCALE, bar }
}

const PLANS: [Plan; 7] = [
    Plan { live_mib: 60, every_ns: HOUR_NS, scale: SCALE, bar: Some(1.01) },
    back_to_back(60, Some(1.01)),
    back_to_back(150, Some(1.01)),
    back_to_back(250, Some(1.05)),
    back_to_back(320, None),
    back_to_back(400, None),
    Plan { scale: OTHER_SCALE, ..back_to_back(60, None) },
];
const SCHEMES: [Scheme; 3] = [Scheme::SlcOnly, Scheme::Paper, Scheme::Ours];
/// Times in a life at which its course is noted.
const NOTES: u64 = 50;

impl Plan {
    fn name(self) -> String {
        let pace = if self.every_ns == HOUR_NS { "hourly" } else { "back-to-back" };
        let scale = if self.scale == SCALE { String::new() } else { format!("-of-{}", self.scale) };
        format!("{pace}-{}MiB{scale}", self.live_mib)
    }

    fn goal(self) -> Goal {
        Goal { life_ns: phone::GOAL.life_ns / self.scale, ..phone::GOAL }
    }

    fn setting(self, scheme: Scheme) -> Result<Setting, PlayError> {
        let mut profile = Profile::default();
        if scheme == Scheme::SlcOnly {
            profile = profile.clone().with_capacity(profile.capacity_bytes() * 2)?;
        }
        let cycles = profile.endurance.native_erases / self.scale as u32;
        (profile.endurance.slc_erases, profile.endurance.native_erases) = (cycles, cycles);
        Ok(scheme.setting_on(profile, HOST, self.goal()))
    }
}

/// How a life went.
#[derive(Serialize, Deserialize)]
struct Lived {
    write_ns: f64,
    read_ns: f64,
    song_bytes_s: f64,
    /// What all operations of a half hour took, mJ.
    energy_mj: f64,
    /// Days of the life, δ, and the part of the budget used.
    course: Vec<(f64, f64, f64)>,
    most_cycles: u32,
    endurance: u32,
}

fn jobs() -> Vec<Job> {
    let all = PLANS.iter().flat_map(|plan| SCHEMES.map(|scheme| (*plan, scheme)));
    all.map(|(plan, scheme)| Job { is_long: true, ..Job::new(job_name(plan, scheme), move || Ok(live(plan, scheme)?)) })
        .collect()
}

fn job_name(plan: Plan, scheme: Scheme) -> String {
    format!("sustained.{}.{}", plan.name(), scheme.name())
}

fn live(plan: Plan, scheme: Scheme) -> Result<Lived, PlayError> {
    let setting = plan.setting(scheme)?;
    let mut phone = Phone::new(&setting)?;
    let mut album = Album::default();
    let live_bytes = plan.live_mib * MIB;
    phone.traced.prepare(&half_hour(0, live_bytes, &mut Album::default()))?;
    let (life_ns, start_ns) = (plan.goal().life_ns, phone.traced.player.now_ns());
    let half_hours = life_ns / plan.every_ns;
    let mut course = Vec::new();
    for number in 0..half_hours {
        let at_ns = start_ns + number * plan.every_ns;
        for request in &half_hour(number, live_bytes, &mut album).requests {
            phone.request(at_ns, request)?;
        }
        phone.traced.player.rest_until((at_ns + plan.every_ns).max(phone.traced.player.now_ns()))?;
        if number * NOTES / half_hours != (number + 1) * NOTES / half_hours {
            let days = ((number + 1) * plan.every_ns) as f64 / 1e9 / 86_400.0;
            course.push((days, phone.wear_index()?, phone.life_share()?.unwrap_or(0.0)));
        }
    }
    let most_cycles = phone.traced.player.look().chip().all_cycles().max().unwrap_or(0);
    let endurance = setting.profile.endurance.native_erases;
    let (write_ns, read_ns) = (phone.tally.writes.mean_ns(), phone.tally.reads.mean_ns());
    let song_bytes_s = phone.tally.songs.bytes_s();
    let energy_nj = phone.traced.player.look().chip().counters().energy_nj;
    let energy_mj = energy_nj as f64 / 1e6 / half_hours.max(1) as f64;
    phone.traced.verify()?;
    Ok(Lived { write_ns, read_ns, song_bytes_s, energy_mj, course, most_cycles, endurance })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for plan in PLANS {
        let lived = |scheme| results.get::<Lived>(&job_name(plan, scheme));
        let Some(slc) = lived(Scheme::SlcOnly)? else { continue };
        for scheme in [Scheme::Paper, Scheme::Ours] {
            let Some(life) = lived(scheme)? else { continue };
            outcome.rows.extend(rows(plan, scheme, &slc, &life)?);
            outcome.plots.push(plot(plan, scheme, &life));
        }
    }
    outcome.rows.extend(scaled(results)?);
    Ok(outcome)
}

fn parameters(plan: Plan, scheme: Scheme) -> Result<Parameters, ExperimentError> {
    let workload = format!("a phone's half hour, {}", plan.name());
    Ok(Parameters::of(&plan.setting(scheme)?).with("workload", workload).with("scheme", scheme.name()))
}

fn rows(plan: Plan, scheme: Scheme, slc: &Lived, life: &Lived) -> Result<Vec<Row>, ExperimentError> {
    let parameters = parameters(plan, scheme)?;
    let row = |what: &str, ours, unit| {
        Row::shown(format!("{}, {}: {what}", plan.name(), scheme.name()), ours, unit, &parameters)
    };
    let write = row("write response over SLC alone", life.write_ns / slc.write_ns, "times");
    let cycles = row("cycles of a block, most", f64::from(life.most_cycles), "");
    let songs = row("songs, throughput over SLC alone", life.song_bytes_s / slc.song_bytes_s, "times");
    let delta = life.course.iter().map(|&(_, delta, _)| delta).sum::<f64>() / life.course.len().max(1) as f64;
    let used = life.course.last().map_or(0.0, |&(_, _, used)| used);
    let (write, cycles) = match (scheme, plan.bar) {
        (Scheme::Ours, Some(bar)) => (write.bar(Bar::AtMost(bar)), cycles.bar(Bar::AtMost(f64::from(life.endurance)))),
        _ => (write, cycles),
    };
    Ok(vec![
        write,
        row("read response over SLC alone", life.read_ns / slc.read_ns, "times"),
        songs,
        row("energy of a half hour", life.energy_mj, "mJ"),
        row("mean δ", delta, ""),
        row("share of the life's budget used", used, "of all"),
        cycles,
    ])
}

/// The life of another scale against the same of the usual one.
fn scaled(results: &Results) -> Result<Option<Row>, ExperimentError> {
    let ours = |plan: Plan| results.get::<Lived>(&job_name(plan, Scheme::Ours));
    let Some(other) = PLANS.into_iter().find(|plan| plan.scale == OTHER_SCALE) else { return Ok(None) };
    let (Some(one), Some(two)) = (ours(Plan { scale: SCALE, ..other })?, ours(other)?) else { return Ok(None) };
    let apart = 100.0 * (two.write_ns - one.write_ns).abs() / one.write_ns;
    let name = format!("{}, ours: write response apart from a scale of {SCALE}", other.name());
    Ok(Some(Row::shown(name, apart, "%", &parameters(other, Scheme::Ours)?).bar(Bar::AtMost(1.0))))
}

fn plot(plan: Plan, scheme: Scheme, life: &Lived) -> Plot {
    let series = |name: &str, value: fn(&(f64, f64, f64)) -> f64| Series {
        name: name.into(),
        points: life.course.iter().map(|noted| (noted.0, value(noted))).collect(),
        marked: false,
    };
    let days = life.course.last().map_or(1.0, |&(days, ..)| days);
    Plot {
        name: format!("{}-{}", plan.name(), scheme.name()),
        title: format!("{}, {}: δ, and the budget used", plan.name(), scheme.name()),
        x: Axis { label: "days", from: 0.0, to: days },
        y: Axis { label: "of all", from: 0.0, to: 1.05 },
        series: vec![series("δ", |noted| noted.1), series("budget used", |noted| noted.2)],
    }
}
