//! A volume and its history, driven together: every call is made on both and every answer compared.
//!
//! Invariant: as long as no method has returned an error, the volume has answered exactly as the model would, or has
//! been short of space where that is plausible.

use flexfs_core::{Ended, Error, Fs, MountOptions};
use nand::Nand;

use super::history::History;
use super::tap::Emulated;
use crate::model::{Refused, errno};
use crate::ops::{Call, Reply, call_fs, glimpse, observe};

/// Time between two calls: about a millisecond, a multiple of the 128 µs that a page's tag tells times in, so that
/// times can be compared exactly.
pub const STEP_NS: i64 = 1_024_000;

/// `ENOSPC` is wrong while the volume itself says this much more than the call needs is free.
const SPACE_SLACK_BYTES: u64 = 128 << 10;

/// How a call ended that both ends agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Both refused.
    Refused,
    /// The volume was full.
    NoSpace,
    /// The power went off.
    PowerLost,
    /// The chip refused every program and erase, and the volume takes it to be at fault.
    WriteOutage,
}

/// How often every chunk of a file is read when a volume is judged. A page that was being programmed or erased when the
/// power went may read well once, and never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Once,
    Twice,
}

/// A mounted volume beside its model.
pub struct Twin<N: Nand> {
    pub fs: Fs<N>,
    pub history: History,
    pub now_ns: i64,
}

impl<N: Emulated> Twin<N> {
    /// Mounts a volume that holds what `history` says.
    pub fn mount(chip: N, options: &MountOptions, history: History, now_ns: i64) -> Result<Self, String> {
        let options = MountOptions { now_ns, ..options.clone() };
        let fs = Fs::mount(chip, options).map_err(|(_, error)| format!("mount: {error}"))?;
        let mut twin = Self { fs, history, now_ns };
        twin.must_not_be_damaged()?;
        Ok(twin)
    }

    /// A mount that takes the volume for damaged has gone wrong, though it could be read.
    pub fn must_not_be_damaged(&mut self) -> Result<(), String> {
        match self.ended()? {
            Some(Ended::Damaged) => Err("mounted read-only: Damaged".into()),
            _ => Ok(()),
        }
    }

    /// The mount is not read-only, whatever for.
    pub fn must_be_writable(&mut self) -> Result<(), String> {
        self.ended()?.map_or(Ok(()), |ended| Err(format!("mounted read-only: {ended:?}")))
    }

    fn ended(&mut self) -> Result<Option<Ended>, String> {
        self.fs.info().map(|info| info.ended).map_err(|error| format!("info: {error}"))
    }

    /// Makes a call on both and compares.
    pub fn call(&mut self, call: &Call) -> Result<Outcome, String> {
        // A copy ends where its source ended when it began, though it may make that longer.
        let clipped = match *call {
            Call::Copy { from, to, len } if from.0 != to.0 || from.1.abs_diff(to.1) >= len => {
                Some(Call::Copy { from, to, len: len.min(self.bytes_from(from)) })
            }
            _ => None,
        };
        let call = clipped.as_ref().unwrap_or(call);
        self.now_ns += STEP_NS;
        self.fs.request(self.now_ns);
        let answer = call_fs(&mut self.fs, call, self.now_ns);
        let is_short = match &answer {
            Ok(Reply::Count(count)) => *count < call.adds_bytes() as usize,
            answer => answer.is_err(),
        };
        if is_short && let Some(lost) = self.lost()? {
            self.history.interrupted(call, self.now_ns);
            return Ok(lost);
        }
        match answer {
            Ok(reply) => self.accepted(call, reply),
            Err(Error::NoSpace) => self.out_of_space(call).map(|()| Outcome::NoSpace),
            Err(error) => match self.history.apply(call, flexfs_core::Ino::MAX, self.now_ns) {
                Err(Refused(errnos)) if errnos.contains(&error.errno()) => Ok(Outcome::Refused),
                expected => Err(format!("{call:?}: volume says {error} ({}), model {expected:?}", error.errno())),
            },
        }
    }

    /// Takes up to `steps` background steps, as a timer would while nothing else happens.
    pub fn background(&mut self, steps: usize) -> Result<Outcome, String> {
        for _ in 0..steps {
            self.now_ns += STEP_NS;
            match self.fs.background(self.now_ns, self.now_ns) {
                Ok(Some(next)) => self.now_ns = self.now_ns.max(next / STEP_NS * STEP_NS),
                Ok(None) => break,
                Err(error) => match (self.lost()?, error) {
                    (Some(lost), _) => return Ok(lost),
                    (None, Error::NoSpace) => return Ok(Outcome::NoSpace),
                    (None, error) => return Err(format!("background: {error}")),
                },
            }
        }
        Ok(Outcome::Done)
    }

    /// Compares the whole volume with the model, and lets it check itself.
    pub fn compare(&mut self) -> Result<(), String> {
        let observed = glimpse(&mut self.fs)?;
        if observed.digest() != self.history.live().digest() {
            let observed = observe(&mut self.fs)?;
            let lines = observed.differences(self.history.live());
            return Err(format!("the volume differs from the model:\n  {}", lines.join("\n  ")));
        }
        let lines = self.history.live().time_differences(&observed);
        if !lines.is_empty() {
            return Err(format!("times differ, model against volume:\n  {}", lines.join("\n  ")));
        }
        self.check(Reading::Twice)
    }

    /// Lets the volume check itself, every file of which was read.
    fn check(&mut self, reading: Reading) -> Result<(), String> {
        let report = match reading {
            Reading::Once => self.fs.check_structure(),
            Reading::Twice => self.fs.check(),
        };
        let report = report.map_err(|error| format!("check: {error}"))?;
        if report.findings.is_empty() {
            Ok(())
        } else {
            Err(format!("check found:\n  {}", report.findings.join("\n  ")))
        }
    }

    /// Unmounts. What stands on the chip then is the live state, or, where the power or the space went, some prefix.
    pub fn unmount(self) -> Result<(N, History), String> {
        let Self { fs, mut history, now_ns } = self;
        let (chip, result) = fs.unmount(now_ns + STEP_NS);
        match result {
            Ok(()) => history.synced(),
            Err(Error::NoSpace) => {}
            Err(_) if !chip.emulated().is_powered() => {}
            Err(Error::WriteOutage | Error::ReadOnly) if chip.emulated().refused_writes() > 0 => {}
            Err(error) => return Err(format!("unmount: {error}")),
        }
        Ok((chip, history))
    }

    /// Settles the history by what a volume shows that was mounted after a cut; returns the prefix length.
    pub fn settle(&mut self, reading: Reading) -> Result<usize, String> {
        let observed = glimpse(&mut self.fs)?;
        let length = match self.history.settle(&observed) {
            Some(length) => length,
            None => return Err(self.history.explain(&observe(&mut self.fs)?)),
        };
        self.check(reading)?;
        Ok(length)
    }

    /// What explains a failure by itself: no power, or a chip that refused what it was asked for.
    fn lost(&mut self) -> Result<Option<Outcome>, String> {
        let chip = self.fs.chip().emulated();
        if !chip.is_powered() {
            return Ok(Some(Outcome::PowerLost));
        }
        let refused = chip.refused_writes() > 0;
        Ok((refused && self.ended()? == Some(Ended::WriteOutage)).then_some(Outcome::WriteOutage))
    }

    fn accepted(&mut self, call: &Call, reply: Reply) -> Result<Outcome, String> {
        let (call, reply) = match (call, reply) {
            (&Call::Write { ino, offset, len, fill }, Reply::Count(count)) if count < len => {
                self.stopped_after(call, count)?;
                (&Call::Write { ino, offset, len: count, fill }, Reply::Count(count))
            }
            (&Call::Copy { from, to, len }, Reply::Count(count)) if (count as u64) < len => {
                self.stopped_after(call, count)?;
                (&Call::Copy { from, to, len: count as u64 }, Reply::Count(count))
            }
            other => other,
        };
        let made = match call {
            Call::Create { .. } | Call::Symlink { .. } | Call::Rename { .. } => reply.made().unwrap_or_default(),
            _ => 0,
        };
        if self.history.live().node(made).is_some() {
            return Err(format!("{call:?}: made inode {made}, which exists"));
        }
        let expected = self.history.apply(call, made, self.now_ns);
        if expected != Ok(reply.clone()) {
            return Err(format!("{call:?}: volume answers {}, model {}", brief(&Ok(reply)), brief(&expected)));
        }
        if *call == Call::Sync {
            self.history.synced();
        }
        Ok(Outcome::Done)
    }

    /// Whether it is plausible that a call found no more space after `count` bytes.
    fn stopped_after(&mut self, call: &Call, count: usize) -> Result<(), String> {
        if count == 0 {
            return Err(format!("{call:?}: wrote nothing and gave no error"));
        }
        self.out_of_space(call)
    }

    /// How many bytes a file has from there on.
    fn bytes_from(&self, (ino, offset): (flexfs_core::Ino, u64)) -> u64 {
        self.history.live().node(ino).map_or(0, |node| node.size()).saturating_sub(offset)
    }

    /// Whether it is plausible that a call found no space.
    fn out_of_space(&mut self, call: &Call) -> Result<(), String> {
        if call.frees() {
            return Err(format!("{call:?}: gives space back but failed with ENOSPC"));
        }
        let stat = self.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
        if stat.free_bytes > call.adds_bytes() + SPACE_SLACK_BYTES {
            let stored = self.history.live().stored_bytes();
            return Err(format!("{call:?}: errno {} with {stored} bytes stored and {stat:?}", errno::NOSPC));
        }
        Ok(())
    }
}

/// An answer for people: long bytes are cut.
fn brief(answer: &Result<Reply, Refused>) -> String {
    match answer {
        Ok(Reply::Bytes(bytes)) => format!("{} bytes {:02x?}…", bytes.len(), &bytes[..bytes.len().min(16)]),
        other => format!("{other:?}"),
    }
}
