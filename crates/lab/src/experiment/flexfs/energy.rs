//! Energy against response: what a phone's days take of its battery. Invariant: every policy is asked the same; only what is
//! done between the charger's times counts.

use emulator::Profile;
use flexfs_core::{Policy, Power, Wanted};
use serde::{Deserialize, Serialize};

use crate::experiment::workload::album::{Album, half_hour};
use crate::experiment::workload::phone::Phone;
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series};
use crate::play::{HostCost, PlayError, Setting};

pub const ENERGY: Experiment = Experiment {
    id: "energy",
    title: "§7: Energy and response",
    about: "What the paper leaves to the future: migration costs energy. Days of a phone: twelve hours on the battery with the \
            half hour of Table 6 every other hour and 300 MiB of songs and pictures, the oldest of which go, then twelve hours \
            at the charger. The first day fills the chip; of the two after it, energy is what all operations on the battery \
            took, and response the mean of writes with their syncs. la migrates everything at once, default no more than the \
            next burst needs, charge at the charger and on the battery only what leaves so many blocks to spare.",
    differs: "The paper has no figures of energy; the profile's are taken from usual currents, as it says.",
    jobs,
    finish,
};

const HOUR_NS: u64 = 3600 * 1_000_000_000;
const MIB: u64 = 1 << 20;
const LIVE_MIB: u64 = 300;
const DAYS: u64 = 3;
/// Half hours on the battery in a day, and from one to the next.
const HALF_HOURS: u64 = 6;
const EVERY_NS: u64 = 2 * HOUR_NS;
const DAY_NS: u64 = 24 * HOUR_NS;

/// Policies, by the names of their jobs.
fn policies() -> [(&'static str, Policy); 6] {
    [
        ("la", Policy::LA),
        ("default", Policy::DEFAULT),
        ("charge-25", Policy::CHARGE.with_spare_percent(25)),
        ("charge", Policy::CHARGE),
        ("charge-4", Policy::CHARGE.with_spare_percent(4)),
        ("mlc-only", Policy::NATIVE_ONLY),
    ]
}

/// What the days after the first took.
#[derive(Serialize, Deserialize)]
struct Lived {
    write_ns: f64,
    /// In a half hour on the battery, and what is done until the next.
    battery_mj: f64,
    /// In a half hour, what the charger gave.
    charger_mj: f64,
    /// Pages migrated on the battery in a half hour.
    migrated_pages: f64,
    /// Time in a half hour in which background steps kept the system from sleeping, s.
    awake_s: f64,
}

fn setting(policy: Policy) -> Setting {
    Setting { profile: Profile::default(), host: HostCost::NONE, policy, life: Wanted::default(), seed: 1 }
}

fn jobs() -> Vec<Job> {
    policies().map(|(name, policy)| Job::new(job_name(name), move || Ok(live(policy)?))).into()
}

fn job_name(policy: &str) -> String {
    format!("energy.{policy}")
}

/// What the volume took so far.
struct Taken {
    energy_nj: u64,
    migrated_pages: u64,
    awake_ns: u64,
}

impl Taken {
    fn by(phone: &mut Phone) -> Self {
        let tally = phone.traced.player.tally();
        let energy_nj = phone.traced.player.look().chip().counters().energy_nj;
        Self { energy_nj, migrated_pages: tally.migrated_pages, awake_ns: tally.awake_ns }
    }
}

fn live(policy: Policy) -> Result<Lived, PlayError> {
    let setting = setting(policy);
    let (mut phone, mut album) = (Phone::new(&setting)?, Album::default());
    phone.traced.prepare(&half_hour(0, LIVE_MIB * MIB, &mut Album::default()))?;
    let start_ns = phone.traced.player.now_ns();
    let (mut battery_nj, mut charger_nj, mut migrated_pages, mut awake_ns) = (0, 0, 0, 0);
    for day in 0..DAYS {
        if day == 1 {
            phone.tally = Default::default();
            (battery_nj, charger_nj, migrated_pages, awake_ns) = (0, 0, 0, 0);
        }
        let day_ns = start_ns + day * DAY_NS;
        phone.traced.player.set_power(Power::Battery);
        let before = Taken::by(&mut phone);
        for number in 0..HALF_HOURS {
            let at_ns = day_ns + number * EVERY_NS;
            for request in &half_hour(day * HALF_HOURS + number, LIVE_MIB * MIB, &mut album).requests {
                phone.request(at_ns, request)?;
            }
            phone.traced.player.rest_until(at_ns + EVERY_NS)?;
        }
        let evening = Taken::by(&mut phone);
        battery_nj += evening.energy_nj - before.energy_nj;
        migrated_pages += evening.migrated_pages - before.migrated_pages;
        awake_ns += evening.awake_ns - before.awake_ns;
        phone.traced.player.set_power(Power::Charger);
        phone.traced.player.rest_until(day_ns + DAY_NS)?;
        charger_nj += Taken::by(&mut phone).energy_nj - evening.energy_nj;
    }
    let write_ns = phone.tally.writes.mean_ns();
    phone.traced.verify()?;
    let half_hours = ((DAYS - 1) * HALF_HOURS) as f64;
    Ok(Lived {
        write_ns,
        battery_mj: battery_nj as f64 / 1e6 / half_hours,
        charger_mj: charger_nj as f64 / 1e6 / half_hours,
        migrated_pages: migrated_pages as f64 / half_hours,
        awake_s: awake_ns as f64 / 1e9 / half_hours,
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let (mut outcome, mut points) = (Outcome::default(), Vec::new());
    let eager = results.get::<Lived>(&job_name("la"))?;
    for (name, policy) in policies() {
        let Some(lived) = results.get::<Lived>(&job_name(name))? else { continue };
        outcome.rows.extend(rows(policy, &lived, eager.as_ref()));
        points.push((policy.to_string(), lived.battery_mj, lived.write_ns / 1e3));
    }
    if !points.is_empty() {
        outcome.plots.push(plot(points));
    }
    Ok(outcome)
}

fn rows(policy: Policy, lived: &Lived, eager: Option<&Lived>) -> Vec<Row> {
    let parameters = Parameters::of(&setting(policy)).with("workload", "a phone's days, 300 MiB live");
    let row = |what: &str, ours, unit| Row::shown(format!("{policy}: {what}"), ours, unit, &parameters);
    let mut rows = vec![
        row("write response", lived.write_ns / 1e3, "µs"),
        row("energy of a half hour on the battery", lived.battery_mj, "mJ"),
        row("energy from the charger, for a half hour", lived.charger_mj, "mJ"),
        row("pages migrated on the battery in a half hour", lived.migrated_pages, ""),
        row("kept from sleep by background steps in a half hour", lived.awake_s, "s"),
    ];
    if let (Some(eager), true) = (eager, policy == Policy::CHARGE) {
        let energy = row("energy on the battery, over la", lived.battery_mj / eager.battery_mj, "times");
        let response = row("write response, over la", lived.write_ns / eager.write_ns, "times");
        rows.extend([energy.bar(Bar::AtMost(0.8)), response.bar(Bar::AtMost(1.01))]);
    }
    rows
}

/// Energy to the right, response upwards: better is down and left.
fn plot(points: Vec<(String, f64, f64)>) -> Plot {
    let most = |value: fn(&(String, f64, f64)) -> f64| points.iter().map(value).fold(0.0, f64::max) * 1.1;
    let (x_to, y_to) = (most(|point| point.1), most(|point| point.2));
    let series = |(name, energy, response)| Series { name, points: vec![(energy, response)], marked: true };
    Plot {
        name: "energy".into(),
        title: "Energy on the battery and write response".into(),
        x: Axis { label: "mJ in a half hour", from: 0.0, to: x_to },
        y: Axis { label: "write response (µs)", from: 0.0, to: y_to },
        series: points.into_iter().map(series).collect(),
    }
}
