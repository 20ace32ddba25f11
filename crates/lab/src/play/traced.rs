//! A volume that is asked what a trace says. Invariant: every read is compared with what was written, and the whole tree in
//! the end on a copy of the chip, so that a figure is one of a volume that works.

use flexfs_core::{Fs, MountOptions};

use super::tree::Tree;
use super::{PlayError, Player, Response, Setting};
use crate::trace::{Op, Request, Trace};
use torture::crash::BASE_NS;

/// A volume, and what is in it.
pub struct Traced {
    pub player: Player,
    tree: Tree,
}

/// What of a file that is there before is written at once.
const PIECE_BYTES: u64 = 1 << 20;

impl Traced {
    /// An empty volume.
    pub fn new(setting: &Setting) -> Result<Self, PlayError> {
        Ok(Self { player: Player::new(setting)?, tree: Tree::default() })
    }

    /// Makes the files that are there before a trace begins.
    pub fn prepare(&mut self, trace: &Trace) -> Result<(), PlayError> {
        for (file, bytes) in &trace.before {
            for offset in (0..*bytes).step_by(PIECE_BYTES as usize) {
                let bytes = PIECE_BYTES.min(bytes - offset);
                self.ask(0, file, &Op::Write { offset, bytes })?;
            }
            self.ask(0, file, if *bytes > 0 { &Op::Sync } else { &Op::Make })?;
        }
        Ok(())
    }

    /// Asks something of a trace that began at `start_ns`, at its time.
    pub fn request(&mut self, start_ns: u64, request: &Request) -> Result<Response, PlayError> {
        self.ask(start_ns + request.at_ns, &request.file, &request.op)
    }

    /// Asks something at its time, or when what was asked before has been answered. The directories that it needs are made.
    pub fn ask(&mut self, at_ns: u64, file: &str, op: &Op) -> Result<Response, PlayError> {
        let arrival_ns = at_ns.max(self.player.now_ns());
        let Self { player, tree } = self;
        player.request(arrival_ns, |player| tree.ask(player, file, op)).map(|(_, response)| response)
    }

    /// Compares everything with what a volume on a copy of the chip gives back.
    pub fn verify(mut self) -> Result<(), PlayError> {
        self.player.sync()?;
        let chip = self.player.look().chip();
        let options = MountOptions { now_ns: BASE_NS + chip.now_ns() as i64, ..MountOptions::default() };
        let mounted = Fs::mount(chip.snapshot(), options);
        let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting to read back", source })?;
        self.tree.compare(&mut fs)
    }
}
