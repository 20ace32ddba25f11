//! The values that arguments take, read from what was typed.

use std::path::Path;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use emulator::Profile;
use flexfs_core::{Compression, Mode};
use lab::bench::Workload;

use crate::host::At;
use crate::{chips, size};

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
}

impl Benchmark {
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Flash(workload) => workload.name(),
            Benchmark::Fuse => "fuse",
        }
    }
}

pub fn benchmark() -> impl TypedValueParser<Value = Benchmark> {
    let names = Workload::ALL.map(Workload::name).into_iter().chain([Benchmark::Fuse.name()]);
    PossibleValuesParser::new(names).map(|name| Workload::from_name(&name).map_or(Benchmark::Fuse, Benchmark::Flash))
}

pub fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new([Mode::Baseline.name(), Mode::SlcOnly.name(), Mode::NativeOnly.name()])
        .map(|name| Mode::from_name(&name).unwrap_or_default())
}

/// A built-in profile by its name, or one read from a file (whose name has a `.` or a `/` in it).
pub fn profile(text: &str) -> Result<Profile, String> {
    if !text.contains(['.', '/']) {
        let known = chips::NAMES.join(", ");
        return Profile::builtin(text).map_err(|_| format!("no chip is called \"{text}\": there are {known}"));
    }
    let description = std::fs::read_to_string(text).at(Path::new(text)).map_err(|error| error.to_string())?;
    Profile::from_toml(&description).map_err(|error| format!("{text}: {}", error.to_string().replace('\n', " ")))
}

pub fn profile_help() -> String {
    format!("The kind of chip: {}, or a TOML file that describes one", chips::NAMES.join(", "))
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
    usize::try_from(bytes).map_err(|error| error.to_string())
}
