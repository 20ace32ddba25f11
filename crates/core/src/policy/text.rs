//! Policies as text: the name of a preset, and parameters that are to differ from its own: `da:t_wait=2s:n_p=512`.
//!
//! Invariant: whatever can be said is printed so that it reads back as the same policy.

use core::fmt;

use super::Policy;
use super::allocate::Allocate;
use super::channel::ChannelRule;

/// The greatest part of the blocks that an SLC buffer may be, in percent.
const BUFFER_PERCENT_MAX: u8 = 90;
/// The greatest part of the blocks that may be kept to spare, in percent.
const SPARE_PERCENT_MAX: u8 = 90;
/// Units of time, longest first, and how many ns each has.
const UNITS: [(&str, i64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Policy {
    /// The preset of that name (`native-only` is `mlc-only`), or `slc-buffer=N%`, 1 to 90; then, each after a colon, the
    /// paper's parameters: `t_wait=TIME` and `t_trig=TIME` of a policy that migrates, `n_p=PAGES` of one that allocates; and
    /// `spare=N%` of one that waits for a charger; `channel=RULE` of any, where a chip has several: `round-robin`, `fair+`,
    /// `read-busy+`, `window+`, `fairness`, `fairness-by-time`, `read-busy-by-time` or `hybrid-by-time`.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split(':');
        let named = parts.next().and_then(Self::from_name).ok_or("no policy has that name")?;
        parts.try_fold(named, Self::with_parameter)
    }

    /// The preset of that name, or an SLC buffer.
    fn from_name(name: &str) -> Option<Self> {
        if let Some(percent) = name.strip_prefix("slc-buffer=") {
            let percent = percent.strip_suffix('%').unwrap_or(percent).parse().ok()?;
            return (1..=BUFFER_PERCENT_MAX).contains(&percent).then(|| Self::slc_buffer(percent));
        }
        let name = if name == "native-only" { "mlc-only" } else { name };
        Self::PRESETS.into_iter().find(|preset| preset.name() == name)
    }

    fn with_parameter(self, text: &str) -> Result<Self, &'static str> {
        let (name, value) = text.split_once('=').ok_or("a parameter is NAME=VALUE")?;
        let migrate = self.migrate().ok_or("it moves nothing in idle time, and has no such parameters");
        match name {
            "t_wait" => Ok(self.with_times(time_ns(value)?, migrate?.t_trig_ns)),
            "t_trig" => Ok(self.with_times(migrate?.t_wait_ns, time_ns(value)?)),
            "n_p" => {
                let allocate = self.allocate().ok_or("n_p is of a policy that allocates: da, la or default")?;
                let window_pages = value.parse().ok().filter(|&pages| pages > 0).ok_or("n_p is a number of pages")?;
                Ok(self.with_allocation(Allocate { window_pages, ..allocate }))
            }
            "spare" => {
                self.spare_percent().ok_or("spare is of a policy that waits for a charger: charge")?;
                let percent = value.strip_suffix('%').unwrap_or(value).parse().ok();
                let percent = percent.filter(|&percent| percent <= SPARE_PERCENT_MAX);
                Ok(self.with_spare_percent(percent.ok_or("spare is a percentage, at most 90%")?))
            }
            "channel" => {
                let channel = ChannelRule::named(value).ok_or(
                    "channel is round-robin, fairness, fair+, read-busy+ or window+, or fairness, read-busy or hybrid with -by-time",
                )?;
                if channel.asks_for_reads() {
                    return Err(
                        "read-busy and hybrid ask for the reads that wait on a channel, and a mount knows only how long it \
                                is busy: read-busy-by-time and hybrid-by-time go by that",
                    );
                }
                Ok(self.with_channel(channel))
            }
            _ => Err("a parameter is t_wait, t_trig, n_p, spare or channel"),
        }
    }
}

/// A time with its unit, as ns.
fn time_ns(text: &str) -> Result<i64, &'static str> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|(unit, _)| text.strip_prefix(digits) == Some(*unit));
    let number = digits.parse::<u32>().ok().map(i64::from);
    let time_ns = number.zip(unit).and_then(|(number, &(_, unit_ns))| number.checked_mul(unit_ns));
    time_ns.ok_or("a time is a whole number with its unit: s, ms, us or ns")
}

/// A time, in the longest unit of which it is a whole number.
struct Time(i64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|&&(_, unit_ns)| self.0 % unit_ns == 0).unwrap_or(&("ns", 1));
        write!(f, "{}{}", self.0 / whole.1, whole.0)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(percent) = self.slc_blocks_max() {
            write!(f, "={percent}%")?;
        }
        let preset = Self::from_name(self.name());
        let (migrate, usual) = (self.migrate(), preset.and_then(Self::migrate).unwrap_or(super::Migrate::PAPER));
        if let Some(migrate) = migrate.filter(|migrate| migrate.t_wait_ns != usual.t_wait_ns) {
            write!(f, ":t_wait={}", Time(migrate.t_wait_ns))?;
        }
        if let Some(migrate) = migrate.filter(|migrate| migrate.t_trig_ns != usual.t_trig_ns) {
            write!(f, ":t_trig={}", Time(migrate.t_trig_ns))?;
        }
        if let Some(allocate) = self.allocate().filter(|one| one.window_pages != Allocate::PAPER.window_pages) {
            write!(f, ":n_p={}", allocate.window_pages)?;
        }
        if let Some(percent) =
            self.spare_percent().filter(|_| self.spare_percent() != preset.and_then(Self::spare_percent))
        {
            write!(f, ":spare={percent}%")?;
        }
        match self.channel() {
            ChannelRule::RoundRobin => Ok(()),
            channel => write!(f, ":channel={}", channel.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name() {
        for preset in Policy::PRESETS {
            assert_eq!(Policy::from_text(preset.name()), Ok(preset));
        }
        assert_eq!(Policy::from_text("slc-buffer=12%"), Ok(Policy::slc_buffer(12)));
        assert_eq!(Policy::from_text("native-only"), Ok(Policy::NATIVE_ONLY));
    }

    #[test]
    fn parameters_are_set_and_read_back_as_they_were_printed() {
        let text = "da:t_wait=1500ms:t_trig=250us:n_p=512";
        let policy = Policy::from_text(text).unwrap();
        let (migrate, allocate) = (policy.migrate().unwrap(), policy.allocate().unwrap());
        assert_eq!((migrate.t_wait_ns, migrate.t_trig_ns, allocate.window_pages), (1_500_000_000, 250_000, 512));
        for text in [
            text,
            "bm:t_wait=0s",
            "slc-buffer=12%:t_trig=1s",
            "default:n_p=64",
            "charge:spare=5%",
            "slc-only:channel=fair+",
            "default:n_p=64:channel=window+",
            "da:channel=read-busy-by-time",
            "baseline",
        ] {
            assert_eq!(format!("{}", Policy::from_text(text).unwrap()), text);
        }
        // The paper's own are not told.
        assert_eq!(format!("{}", Policy::from_text("la:t_wait=1s:t_trig=15ms:n_p=1024").unwrap()), "la");
    }

    #[test]
    fn whatever_is_wrong_is_said() {
        let wrong = [
            ("fastest", "no policy"),
            ("slc-buffer", "no policy"),
            ("slc-buffer=0%", "no policy"),
            ("slc-buffer=91", "no policy"),
            ("da:", "NAME=VALUE"),
            ("da:t_wait", "NAME=VALUE"),
            ("da:t_wait=1", "unit"),
            ("da:t_wait=-1s", "unit"),
            ("da:t_wait=99999999999s", "unit"),
            ("da:n_p=0", "number of pages"),
            ("bm:n_p=64", "allocates"),
            ("baseline:t_wait=1s", "moves nothing"),
            ("default:spare=5%", "waits for a charger"),
            ("charge:spare=91%", "at most 90%"),
            ("da:channel=fast", "read-busy+ or window+"),
            ("da:channel=hybrid", "hybrid-by-time"),
            ("da:speed=9", "t_wait, t_trig, n_p, spare or channel"),
        ];
        for (text, said) in wrong {
            let error = Policy::from_text(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
