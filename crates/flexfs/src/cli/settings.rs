//! How a volume is to be mounted, and the words that say so after `-o`.
//!
//! Invariants: a word means the same whoever passes it; those that mount(8) and fstab(5) use among themselves are taken
//! and mean nothing; any other is an error that names it and those there are.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use emulator::Profile;
use flexfs_core::wear::Controller;
use flexfs_core::{Atime, Policy, Wanted};
use rustix::mount::MountFlags;

use super::values::{Compress, Offered, cache, lifetime, policy_named, read_profile};
use crate::fuse::MountManner;
use crate::fuse::pacing::Timing;
use crate::fuse::power::Source;
use crate::size;

/// Everything that can be chosen about a mount.
#[derive(Clone)]
pub struct Settings {
    /// The size of the chip to make if there is no image.
    pub create: Option<u64>,
    /// The kind of chip asked for; `None` takes the one there is, or makes the default.
    pub profile: Option<Profile>,
    pub policy: Policy,
    pub life: Wanted,
    pub compress: Compress,
    pub cache_bytes: usize,
    pub atime: Atime,
    /// How old a change may get; `None` leaves it to the file system.
    pub commit: Option<Duration>,
    /// Whether a sync of the file system waits for the disk under the image.
    pub sync_image: bool,
    /// The file that gets a trace of what is asked.
    pub record: Option<PathBuf>,
    /// The file that decisions are recorded in.
    pub record_decisions: Option<PathBuf>,
    /// Who says where the power comes from, of a policy that waits for a charger.
    pub power: Source,
    /// Whether only the flags of a mount that is there are to be changed.
    pub remount: bool,
    pub manner: MountManner,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            create: None,
            profile: None,
            policy: Policy::default(),
            life: Wanted::default(),
            compress: Compress::None,
            cache_bytes: flexfs_core::HOST_CACHE_BYTES,
            atime: Atime::None,
            commit: None,
            sync_image: true,
            record: None,
            record_decisions: None,
            power: Source::Auto,
            remount: false,
            manner: MountManner::default(),
        }
    }
}

/// What a word does; it gets what stands behind its `=`.
type Act = fn(&mut Settings, &str) -> Result<(), String>;

/// The words that do something; those that end in `=` take a value.
const WORDS: [(&str, Act); 35] = [
    ("ro", |settings, _| flag(settings, MountFlags::RDONLY, true)),
    ("rw", |settings, _| flag(settings, MountFlags::RDONLY, false)),
    ("noatime", |settings, _| atime(settings, Atime::None)),
    ("relatime", |settings, _| atime(settings, Atime::Relative)),
    // The most that is kept of every read.
    ("atime", |settings, _| atime(settings, Atime::Relative)),
    ("strictatime", |settings, _| atime(settings, Atime::Relative)),
    ("diratime", |settings, _| flag(settings, MountFlags::NODIRATIME, false)),
    ("nodiratime", |settings, _| flag(settings, MountFlags::NODIRATIME, true)),
    ("commit=", |settings, value| set(&mut settings.commit, Some(seconds(value)?))),
    ("compress=", |settings, value| set(&mut settings.compress, compression(value)?)),
    ("policy=", |settings, value| set(&mut settings.policy, policy_named(value)?)),
    ("mode=", |settings, value| set(&mut settings.policy, policy_named(value)?)),
    ("lifetime=", |settings, value| set(&mut settings.life.goal, Some(lifetime(value)?))),
    ("wear=", |settings, value| set(&mut settings.life.controller, controller(value)?)),
    ("cache=", |settings, value| set(&mut settings.cache_bytes, cache(value)?)),
    ("create=", |settings, value| set(&mut settings.create, Some(size::parse(value)?))),
    ("profile=", |settings, value| set(&mut settings.profile, Some(read_profile(value)?))),
    ("power=", |settings, value| set(&mut settings.power, source(value)?)),
    ("timing=", |settings, value| set(&mut settings.manner.timing, timing(value)?)),
    ("writethrough", |settings, _| set(&mut settings.manner.write_back, false)),
    ("nowritethrough", |settings, _| set(&mut settings.manner.write_back, true)),
    ("sync_image", |settings, _| set(&mut settings.sync_image, true)),
    ("nosync_image", |settings, _| set(&mut settings.sync_image, false)),
    ("sync", |settings, _| flag(settings, MountFlags::SYNCHRONOUS, true)),
    ("async", |settings, _| flag(settings, MountFlags::SYNCHRONOUS, false)),
    ("dirsync", |settings, _| flag(settings, MountFlags::DIRSYNC, true)),
    ("exec", |settings, _| flag(settings, MountFlags::NOEXEC, false)),
    ("noexec", |settings, _| flag(settings, MountFlags::NOEXEC, true)),
    ("suid", |settings, _| flag(settings, MountFlags::NOSUID, false)),
    ("nosuid", |settings, _| flag(settings, MountFlags::NOSUID, true)),
    ("dev", |settings, _| flag(settings, MountFlags::NODEV, false)),
    ("nodev", |settings, _| flag(settings, MountFlags::NODEV, true)),
    ("allow_other", |settings, _| set(&mut settings.manner.allow_other, true)),
    ("default_permissions", |_, _| Ok(())),
    ("remount", |settings, _| set(&mut settings.remount, true)),
];

/// Words of mount(8) and fstab(5) that are not meant for a file system.
const NOT_FOR_US: [&str; 15] = [
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "nousers",
    "owner",
    "group",
    "_netdev",
    "nofail",
    // What is kept of reads is always written late.
    "lazytime",
    "nolazytime",
    "norelatime",
    "nostrictatime",
];

/// The same, with anything behind them; the last ones stand in the kernel's table, from which mount(8) takes them for a
/// remount.
const NOT_FOR_US_FROM: [&str; 8] = ["x-", "X-", "comment=", "user=", "user_id=", "group_id=", "max_read=", "blksize="];

impl Settings {
    /// The words that do something.
    pub fn names() -> Vec<&'static str> {
        WORDS.iter().map(|(name, _)| *name).collect()
    }

    /// Does what a word says.
    pub fn apply(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (format!("{name}="), value),
            None => (word.to_owned(), ""),
        };
        match WORDS.iter().find(|(known, _)| *known == name) {
            Some((_, act)) => act(self, value),
            None if Self::is_known(word) => Ok(()),
            None => Err(match Self::other_form(word) {
                Some((form, true)) => format!("option \"{word}\" needs a value: {form}VALUE"),
                Some((form, false)) => format!("option \"{form}\" takes no value"),
                None => format!("there is no option \"{word}\", but {}", known()),
            }),
        }
    }

    /// The word that was meant where a value is missing (`true`) or there should be none.
    fn other_form(word: &str) -> Option<(&'static str, bool)> {
        let name = word.split('=').next().unwrap_or(word);
        let found = WORDS.iter().find(|(known, _)| known.trim_end_matches('=') == name)?;
        Some((found.0, found.0.ends_with('=')))
    }

    /// Whether there is such a word, whatever its value is worth.
    pub fn is_known(word: &str) -> bool {
        let name = word.split_inclusive('=').next().unwrap_or(word);
        word.is_empty()
            || WORDS.iter().any(|(known, _)| *known == name)
            || NOT_FOR_US.contains(&word)
            || NOT_FOR_US_FROM.iter().any(|start| word.starts_with(start))
    }

    /// A word that can be applied.
    pub fn check(word: &str) -> Result<String, String> {
        Self::default().apply(word).map(|()| word.to_owned())
    }
}

fn compression(value: &str) -> Result<Compress, String> {
    clap::ValueEnum::from_str(value, false).map_err(|_| format!("\"{value}\" is no compression: none or lz4"))
}

/// An option of `mount -o`.
pub fn option() -> impl TypedValueParser<Value = String> {
    Offered { names: Settings::names, read: Settings::check }
}

fn known() -> String {
    Settings::names().join(", ")
}

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

fn flag(settings: &mut Settings, flag: MountFlags, on: bool) -> Result<(), String> {
    settings.manner.flags.set(flag, on);
    Ok(())
}

fn atime(settings: &mut Settings, atime: Atime) -> Result<(), String> {
    settings.atime = atime;
    settings.manner.flags.set(MountFlags::NOATIME, atime == Atime::None);
    Ok(())
}

fn timing(value: &str) -> Result<Timing, String> {
    clap::ValueEnum::from_str(value, false).map_err(|_| format!("\"{value}\" is no timing: none or chip"))
}

fn source(value: &str) -> Result<Source, String> {
    clap::ValueEnum::from_str(value, false).map_err(|_| format!("\"{value}\" is no power: auto, charger or battery"))
}

fn controller(value: &str) -> Result<Controller, String> {
    match value {
        "paper" => Ok(Controller::Paper),
        "whole-life" => Ok(Controller::WholeLife),
        _ => Err(format!("\"{value}\" decides on no wear: paper or whole-life")),
    }
}

fn seconds(value: &str) -> Result<Duration, String> {
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.filter(|seconds| !seconds.is_zero() && i64::try_from(seconds.as_nanos()).is_ok());
    seconds.ok_or_else(|| format!("\"{value}\" is no time to wait: write seconds above 0, like 5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(words: &[&str]) -> Settings {
        let mut settings = Settings::default();
        words.iter().for_each(|word| settings.apply(word).unwrap());
        settings
    }

    #[test]
    fn the_later_word_wins() {
        assert!(after(&["rw", "ro"]).manner.read_only() && !after(&["ro", "rw"]).manner.read_only());
        assert_eq!(after(&["relatime", "noatime"]).atime, Atime::None);
        assert!(after(&["sync_image", "nosync_image", "sync_image"]).sync_image);
        assert!(!after(&["nodev", "dev"]).manner.flags.contains(MountFlags::NODEV));
    }

    #[test]
    fn values_are_read_as_the_flags_read_them() {
        let settings =
            after(&["commit=2.5", "cache=1MiB", "compress=lz4", "mode=slc-only", "create=64MiB", "timing=chip"]);
        assert_eq!((settings.power, after(&["power=battery"]).power), (Source::Auto, Source::Battery));
        assert_eq!(settings.commit, Some(Duration::from_millis(2500)));
        assert_eq!((settings.cache_bytes, settings.create), (1 << 20, Some(64 << 20)));
        assert_eq!(settings.manner.timing, Timing::Chip);
        assert!(settings.compress == Compress::Lz4 && settings.policy == Policy::SLC_ONLY);
        let settings = after(&["lifetime=3y:1d", "wear=paper"]);
        let goal = settings.life.goal.unwrap();
        assert_eq!((goal.life_ns / 1_000_000_000, goal.window_ns), (94_672_800, 86_400_000_000_000));
        assert_eq!(settings.life.controller, Controller::Paper);
        assert_eq!(after(&["lifetime=3y", "lifetime=none"]).life.goal.unwrap().life_ns, 0);
        for wrong in ["lifetime=0s", "lifetime=3", "lifetime=1d:2d", "lifetime=9999y", "wear=less"] {
            assert!(Settings::check(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "commit=0",
            "commit=-1",
            "commit=soon",
            "commit=1e300",
            "cache=1",
            "compress=zip",
            "mode=x",
            "timing=no",
            "power=sun",
        ] {
            assert!(Settings::check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_for_others_mean_nothing_and_unknown_ones_are_named_with_those_there_are() {
        for word in ["", "defaults", "user=ann", "x-systemd.automount", "_netdev", "comment=my chip", "nofail"] {
            assert!(Settings::check(word).is_ok(), "{word}");
        }
        for word in ["speed", "speed=9", "nosync"] {
            let why = Settings::check(word).unwrap_err();
            assert!(why.contains(word) && why.contains("relatime") && why.contains("commit="), "{why}");
        }
    }

    #[test]
    fn a_known_word_in_the_wrong_form_is_told_what_it_lacks() {
        let wrong = [
            ("ro=1", "\"ro\" takes no value"),
            ("commit", "needs a value: commit=VALUE"),
            ("compress=zip", "none or lz4"),
        ];
        for (word, expected) in wrong {
            let why = Settings::check(word).unwrap_err();
            assert!(why.contains(expected) && !why.contains("relatime"), "{why}");
        }
    }
}
