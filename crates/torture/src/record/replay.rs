//! Asks a volume again what a recording says it was asked. Invariant: the first event that leads to other operations on
//! flash than were recorded is told, with both.

use std::fmt;
use std::io::{self, BufRead};

use emulator::Chip;
use flexfs_core::{Error, Fs, Power};

use super::event::{Event, Header, Line, decisions};
use crate::ops::call_fs;

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub events: u64,
    /// Programs, and erases, that were the same.
    pub programs: u64,
    pub erases: u64,
    /// Of background steps, those that did something on flash.
    pub jobs: u64,
}

/// Why a recording cannot be replayed, or was not the same.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    Reading(io::Error),
    /// A line that is no event.
    Line {
        number: u64,
        error: String,
    },
    Mounting(Error),
    /// The volume decided otherwise.
    Differs {
        number: u64,
        event: Box<Event>,
        recorded: Vec<String>,
        replayed: Vec<String>,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reading(error) => write!(f, "{error}"),
            Self::Line { number, error } => write!(f, "line {number} is not of a recording: {error}"),
            Self::Mounting(error) => write!(f, "cannot mount the copy of the image: {error}"),
            Self::Differs { number, event, recorded, replayed } => {
                write!(f, "line {number}, {event:?}: recorded {recorded:?}, replayed {replayed:?}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// Whether these bytes begin as a recording does.
pub fn begins(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Header>(first).is_ok()
}

/// Replays a recording on the chip as it was when that began.
///
/// # Errors
/// It cannot be read, or the volume decides otherwise.
pub fn replay(recording: impl BufRead, chip: Chip) -> Result<Replayed, ReplayError> {
    let mut lines = (1..).zip(recording.lines());
    let header: Header = match lines.next() {
        Some((number, line)) => parse(number, &line.map_err(ReplayError::Reading)?)?,
        None => return Err(ReplayError::Line { number: 1, error: "it is empty".to_owned() }),
    };
    let options = header.options().map_err(|error| ReplayError::Line { number: 1, error })?;
    let mut fs = Fs::mount(chip, options).map_err(|(_, error)| ReplayError::Mounting(error))?;
    let mut replayed = Replayed::default();
    for (number, line) in lines {
        let Line { chip_ns, event, did } = parse(number, &line.map_err(ReplayError::Reading)?)?;
        let chip = fs.chip_mut();
        chip.advance_to_ns(chip_ns);
        chip.start_trace(usize::MAX);
        // An error was an answer then, too.
        let _ = again(&mut fs, &event);
        let found = decisions(&fs.chip_mut().take_trace().entries);
        if found != did {
            return Err(ReplayError::Differs { number, event: Box::new(event), recorded: did, replayed: found });
        }
        replayed.count(&event, &found);
    }
    Ok(replayed)
}

fn parse<T: serde::de::DeserializeOwned>(number: u64, line: &str) -> Result<T, ReplayError> {
    serde_json::from_str(line).map_err(|error| ReplayError::Line { number, error: error.to_string() })
}

/// Lets an event come to a volume again.
fn again(fs: &mut Fs<Chip>, event: &Event) -> Result<(), Error> {
    match *event {
        Event::Request { mono_ns } => {
            fs.request(mono_ns);
            Ok(())
        }
        Event::Background { mono_ns, now_ns } => fs.background(mono_ns, now_ns).map(drop),
        Event::Call { ref call, now_ns } => call_fs(fs, call, now_ns).map(drop),
        Event::Power { charger } => {
            fs.set_power(if charger { Power::Charger } else { Power::Battery });
            Ok(())
        }
        Event::Accessed { ino, now_ns } => fs.accessed(ino, now_ns),
        Event::Seek { ino, offset, hole } => fs.seek(ino, offset, hole).map(drop),
        Event::List { dir, cookie, entries } => {
            let mut left = entries;
            fs.readdir(dir, cookie, &mut |_| {
                left = left.saturating_sub(1);
                left > 0
            })
        }
    }
}

impl Replayed {
    fn count(&mut self, event: &Event, did: &[String]) {
        let programs = did.iter().filter(|did| did.starts_with("program")).count() as u64;
        self.events += 1;
        self.programs += programs;
        self.erases += did.len() as u64 - programs;
        self.jobs += u64::from(matches!(event, Event::Background { .. }) && !did.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use flexfs_core::{Atime, Compression, MountOptions, Policy, Times};

    use super::*;
    use crate::crash::Rig;

    fn refusal(recording: &str) -> String {
        let rig = Rig::small("flexfs-mlc", 64, 16, MountOptions::default()).unwrap();
        let mut chip = rig.chip(1).unwrap();
        Rig::format_only(&mut chip, 1).unwrap();
        replay(recording.as_bytes(), chip).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused_with_the_line() {
        let header = serde_json::to_string(&Header::of(&MountOptions::default()).unwrap()).unwrap();
        assert_eq!(refusal(""), "line 1 is not of a recording: it is empty");
        assert!(refusal("{}").starts_with("line 1 is not of a recording: missing field"));
        let unknown = header.replace("\"default\"", "\"fastest\"");
        assert!(refusal(&unknown).contains("\"fastest\": no policy has that name"), "{}", refusal(&unknown));
        assert!(refusal(&format!("{header}\nsync\n")).starts_with("line 2 is not of a recording"));
    }

    #[test]
    fn a_header_tells_the_options_that_it_was_made_of() {
        let options = MountOptions {
            policy: Policy::from_text("la:n_p=77").unwrap(),
            atime: Atime::Relative,
            times: Times::OfCaller,
            commit_ns: 5,
            cache_bytes: 6,
            lanes: Some(4),
            now_ns: 7,
            ..MountOptions::default()
        };
        let told = Header::of(&options).unwrap().options().unwrap();
        assert_eq!(format!("{told:?}"), format!("{options:?}"));
        let compressed = MountOptions { compression: Compression::Lz4, ..options.clone() };
        assert_eq!(Header::of(&compressed), None);
        assert_eq!(Header::of(&MountOptions { read_only: true, ..options }), None);
    }
}
