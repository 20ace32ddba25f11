//! The values that arguments take, read from what was typed.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use emulator::Profile;
use flexfs_core::wear::Goal;
use flexfs_core::{Compression, Policy};
use ftl::Scheme;
use lab::bench::Workload;
use torture::crash::VolumeOver;

use crate::host::At;
use crate::{chips, size, time_span};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    None,
    Lz4,
}

impl From<Compress> for Compression {
    fn from(choice: Compress) -> Self {
        match choice {
            Compress::None => Compression::None,
            Compress::Lz4 => Compression::Lz4,
        }
    }
}

/// What `bench` measures.
#[derive(Clone, Copy)]
pub enum Benchmark {
    /// Flash operations of the file system itself.
    Flash(Workload),
    /// Calls through the kernel.
    Fuse,
    /// Flash operations of a translation layer.
    Layer,
}

impl Benchmark {
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Flash(workload) => workload.name(),
            Benchmark::Fuse => "fuse",
            Benchmark::Layer => "ftl",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let others = [Benchmark::Fuse, Benchmark::Layer];
        let other = others.into_iter().find(|benchmark| benchmark.name() == name);
        Workload::from_name(name).map(Benchmark::Flash).or(other)
    }
}

pub fn benchmark() -> impl TypedValueParser<Value = Benchmark> {
    let others = [Benchmark::Fuse.name(), Benchmark::Layer.name()];
    let names = || Workload::ALL.map(Workload::name).into_iter().chain(others);
    PossibleValuesParser::new(names()).try_map(|name| Benchmark::from_name(&name).ok_or("no such workload"))
}

/// A scheme of a translation layer.
pub fn scheme() -> impl TypedValueParser<Value = Scheme> {
    Offered { names: || Scheme::ALL.map(Scheme::name).to_vec(), read: scheme_named }
}

fn scheme_named(name: &str) -> Result<Scheme, String> {
    let known = Scheme::ALL.map(Scheme::name).join(", ");
    name.parse().map_err(|_| format!("no scheme is called \"{name}\": there are {known}"))
}

/// A drive under a file system.
pub fn drive() -> impl TypedValueParser<Value = VolumeOver> {
    Offered { names: || vec![VolumeOver::CODESIGN], read: drive_named }
}

fn drive_named(name: &str) -> Result<VolumeOver, String> {
    match name {
        VolumeOver::CODESIGN => Ok(VolumeOver::Codesign),
        _ => Err(format!("no drive is called \"{name}\": there is {}", VolumeOver::CODESIGN)),
    }
}

pub fn policy() -> impl TypedValueParser<Value = Policy> {
    let names = || Policy::PRESETS.map(Policy::name).into_iter().chain(["slc-buffer=12%"]).collect();
    Offered { names, read: policy_named }
}

/// How large an SLC buffer may be.
const BUFFER_PERCENT: RangeInclusive<u8> = 1..=90;

/// The policy of that name, with the parameters that are said.
pub fn policy_named(name: &str) -> Result<Policy, String> {
    let names = Policy::PRESETS.map(Policy::name).join(", ");
    let of_buffer = name.split(':').next().and_then(|first| first.strip_prefix("slc-buffer="));
    Policy::from_text(name).map_err(|wrong| match of_buffer {
        Some(percent) if Policy::from_text(&format!("slc-buffer={percent}")).is_err() => {
            format!(
                "\"{name}\": an SLC buffer is {} to {} % of the blocks",
                BUFFER_PERCENT.start(),
                BUFFER_PERCENT.end()
            )
        }
        _ => format!("\"{name}\": {wrong}; policies are {names}, slc-buffer=N%"),
    })
}

/// The lifetime that is to be guaranteed, and the length of a wear window behind a colon: `3y`, `3y:1d`; `none` for none.
pub fn lifetime(text: &str) -> Result<Goal, String> {
    const WRONG: &str = "write how long the chip shall live, like 3y or 90days, with a wear window like 3y:1d, or none";
    let time_ns = |text: &str| time_span::parse(text).filter(|&ns| ns > 0 && i64::try_from(ns).is_ok());
    if text == "none" {
        return Ok(Goal { life_ns: 0, window_ns: 0 });
    }
    let goal = match text.split_once(':') {
        None => time_ns(text).map(Goal::of_life),
        Some((life, window)) => time_ns(life)
            .zip(time_ns(window))
            .map(|(life_ns, window_ns)| Goal { life_ns, window_ns })
            .filter(|goal| goal.window_ns <= goal.life_ns),
    };
    goal.ok_or_else(|| format!("\"{text}\" is no lifetime: {WRONG}"))
}

/// A value that is read by `read`, of which some are known by name, for shells to offer.
#[derive(Clone)]
pub struct Offered<T> {
    pub names: fn() -> Vec<&'static str>,
    pub read: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        self.read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// A kind of chip.
pub fn profile() -> impl TypedValueParser<Value = Profile> {
    Offered { names: chips::all_names, read: read_profile }
}

/// A built-in profile by its name, or one read from a file (whose name has a `.` or a `/` in it).
pub fn read_profile(text: &str) -> Result<Profile, String> {
    if !text.contains(['.', '/']) {
        let known = chips::all_names().join(", ");
        return Profile::builtin(text)
            .map_err(|_| format!("no chip is called \"{text}\": there are {known}; or name a TOML file"));
    }
    let description = std::fs::read_to_string(text).at(Path::new(text)).map_err(|error| error.to_string())?;
    Profile::from_toml(&description).map_err(|error| format!("{text}: {}", without_diagram(&error.to_string())))
}

/// What a reader of TOML says, without the lines that show the place once more.
fn without_diagram(said: &str) -> String {
    let shows = |line: &str| {
        line.split_once('|').is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok() || number.trim().is_empty())
    };
    said.lines().filter(|line| !shows(line) && !line.trim().is_empty()).collect::<Vec<_>>().join(": ")
}

pub fn profile_help() -> String {
    let (volumes, layers) = (chips::NAMES.join(", "), chips::only_for_layers().collect::<Vec<_>>().join(" and "));
    format!("The kind of chip: {volumes}, for translation layers {layers} too, or a TOML file that describes one")
}

pub fn label(text: &str) -> Result<String, String> {
    if text.len() > 32 {
        return Err(format!("a label has at most 32 bytes, this one {}", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err("a label has no line ends and no other control characters".into());
    }
    Ok(text.to_owned())
}

/// The number of a block or an inode.
pub fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("\"{text}\" is no number of a block or an inode: write a whole one, like 12"))
}

/// A user and a group by their numbers.
pub fn owner(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    pair.ok_or_else(|| format!("\"{text}\" is no owner: write two numbers like 0:0"))
}

/// The bytes of a UUID.
pub fn uuid(text: &str) -> Result<[u8; 16], String> {
    let parsed = uuid::Uuid::try_parse(text);
    parsed
        .map(uuid::Uuid::into_bytes)
        .map_err(|_| format!("\"{text}\" is no UUID: write one like 67e55044-10b1-426f-9247-bb680e5fe0c8"))
}

/// The least the caches can work with.
const LEAST_CACHE_BYTES: u64 = 256 << 10;

/// What the bound on the caches is, and how large unless it is given.
pub fn cache_help() -> String {
    format!("Bound on the file system's caches [default: {}]", size::human(flexfs_core::HOST_CACHE_BYTES as u64))
}

/// A bound the caches can keep.
pub fn cache(text: &str) -> Result<usize, String> {
    let bytes = size::parse(text)?;
    if bytes < LEAST_CACHE_BYTES {
        return Err(format!("the caches need at least {}", size::human(LEAST_CACHE_BYTES)));
    }
    let memory = rustix::system::sysinfo();
    let memory_bytes = (memory.totalram as u64).saturating_mul(memory.mem_unit.into());
    if bytes > memory_bytes {
        return Err(format!("more than the memory of this machine, {}", size::human(memory_bytes)));
    }
    usize::try_from(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_slc_buffer_that_is_too_large_is_told_how_large_it_may_be() {
        for percent in [BUFFER_PERCENT.start(), BUFFER_PERCENT.end()] {
            policy_named(&format!("slc-buffer={percent}%")).unwrap();
        }
        for wrong in ["0", "91", "101%", "300%", "many"] {
            let why = policy_named(&format!("slc-buffer={wrong}")).unwrap_err();
            assert!(why.ends_with("an SLC buffer is 1 to 90 % of the blocks"), "{why}");
        }
        assert!(policy_named("slc-buffer=5%:speed=9").unwrap_err().contains("a parameter is"));
        assert!(policy_named("fastest").unwrap_err().contains("no policy has that name"));
    }

    #[test]
    fn an_error_in_a_profile_is_told_by_line_and_column_without_a_diagram() {
        let error = Profile::from_toml("name = \"x\"\ngeometry = 7\n").unwrap_err();
        let said = without_diagram(&error.to_string());
        assert!(said.contains("at line 2, column 12: ") && !said.contains(['|', '^', '\n']), "{said}");
        assert_eq!(without_diagram("a field: is 1 | 2"), "a field: is 1 | 2");
    }
}
