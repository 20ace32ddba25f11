//! Where the machine's power comes from, as Linux tells it. Invariant: a machine that tells nothing of it is on a charger.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use flexfs_core::Power;

/// Who says where the power comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// The system.
    #[default]
    Auto,
    Charger,
    Battery,
}

/// Where the system tells it.
const SUPPLIES: &str = "/sys/class/power_supply";
/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);

/// What was seen of it last.
#[derive(Default)]
pub struct Seen {
    power: Power,
    at: Option<Instant>,
}

impl Seen {
    /// Where the power comes from, if it is time to look and it has changed.
    pub fn changed(&mut self, source: Source) -> Option<Power> {
        if self.at.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        self.at = Some(Instant::now());
        let power = match source {
            Source::Auto => told(Path::new(SUPPLIES)),
            Source::Charger => Power::Charger,
            Source::Battery => Power::Battery,
        };
        (power != self.power).then(|| {
            self.power = power;
            power
        })
    }
}

/// What the supplies in this directory say: a battery of the machine's own without anything that feeds it is one.
fn told(supplies: &Path) -> Power {
    let Ok(entries) = fs::read_dir(supplies) else { return Power::Charger };
    let (mut fed, mut battery) = (false, false);
    for supply in entries.flatten() {
        let says = |file: &str| fs::read_to_string(supply.path().join(file)).unwrap_or_default();
        if says("type").trim() == "Battery" {
            // One of a mouse or a headset feeds nothing of the machine.
            battery |= says("scope").trim() != "Device";
        } else {
            fed |= says("online").trim() == "1";
        }
    }
    if battery && !fed { Power::Battery } else { Power::Charger }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_battery_that_nothing_feeds_is_told_from_a_charger() {
        let dir = tempfile::tempdir().unwrap();
        let say = |supply: &str, file: &str, text: &str| {
            let path = dir.path().join(supply);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(file), text).unwrap();
        };
        assert_eq!(told(&dir.path().join("none")), Power::Charger);
        say("mouse", "type", "Battery\n");
        say("mouse", "scope", "Device\n");
        assert_eq!(told(dir.path()), Power::Charger);
        say("BAT0", "type", "Battery\n");
        say("AC", "type", "Mains\n");
        say("AC", "online", "0\n");
        assert_eq!(told(dir.path()), Power::Battery);
        say("AC", "online", "1\n");
        assert_eq!(told(dir.path()), Power::Charger);
    }

    #[test]
    fn a_change_is_told_once() {
        let mut seen = Seen::default();
        assert_eq!(seen.changed(Source::Battery), Some(Power::Battery));
        assert_eq!(seen.changed(Source::Charger), None, "it is too early to look again");
        seen.at = None;
        assert_eq!(seen.changed(Source::Charger), Some(Power::Charger));
        seen.at = None;
        assert_eq!(seen.changed(Source::Charger), None);
    }
}
