//! A volume that is asked what a trace says. Invariant: every read is compared with what was written, and all files again in the
//! end on a copy of the chip, so that a figure is one of a volume that works.

use flexfs_core::{Error, Fs, MountOptions};

use super::tree::Tree;
use super::{PlayError, Player, Response, Setting};
use crate::crash::BASE_NS;
use crate::trace::{Op, Request, Trace};

/// A volume, and what is in it.
pub struct Traced {
    pub player: Player,
    tree: Tree,
}

/// What of a file that is there before is written at once.
const PIECE_BYTES: u64 = 1 << 20;

fn failed(doing: &'static str) -> impl Fn(Error) -> PlayError {
    move |source| PlayError::Fs { doing, source }
}

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
            self.ask(0, file, &Op::Sync)?;
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

    /// Compares every file with what a volume on a copy of the chip gives back.
    pub fn verify(mut self) -> Result<(), PlayError> {
        self.player.sync()?;
        let chip = self.player.look().chip();
        let options = MountOptions { now_ns: BASE_NS + chip.now_ns() as i64, ..MountOptions::default() };
        let mounted = Fs::mount(chip.snapshot(), options);
        let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting to read back", source })?;
        for (name, ino, content) in self.tree.files() {
            let mut found = vec![0; content.len() + 1];
            let count = fs.read(ino, 0, &mut found).map_err(failed("reading back"))?;
            if found[..count] != *content {
                return Err(PlayError::Wrong(format!("{name} does not hold what was written")));
            }
        }
        Ok(())
    }
}
