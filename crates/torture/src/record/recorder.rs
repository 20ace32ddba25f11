//! Records a volume as it is used. Invariant: recording changes nothing of what the volume does; where it fails, it ends.

use std::io::{self, Write};

use emulator::{Chip, Trace};
use flexfs_core::Fs;
use nand::Nand;

use super::event::{Event, Header, Line, decisions};

/// A chip that tells what was done to it.
pub trait TracedChip: Nand {
    /// The chip's own time, ns.
    fn chip_ns(&self) -> u64;

    /// Operations are recorded from now on.
    fn start_trace(&mut self);

    /// The operations since; none is recorded any more.
    fn take_trace(&mut self) -> Trace;
}

impl TracedChip for Chip {
    fn chip_ns(&self) -> u64 {
        self.now_ns()
    }

    fn start_trace(&mut self) {
        Chip::start_trace(self, usize::MAX);
    }

    fn take_trace(&mut self) -> Trace {
        Chip::take_trace(self)
    }
}

/// A recording under way.
pub struct Recorder {
    out: Box<dyn Write + Send>,
}

impl Recorder {
    /// Begins with a volume just mounted, as the header says.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin<N: TracedChip>(mut out: Box<dyn Write + Send>, header: &Header, fs: &mut Fs<N>) -> io::Result<Self> {
        write_line(&mut out, header)?;
        fs.chip_mut().start_trace();
        Ok(Self { out })
    }

    /// Lets an event come to the volume, and writes it down.
    ///
    /// # Errors
    /// It came, and could not be written down.
    pub fn around<N: TracedChip, T>(
        &mut self,
        fs: &mut Fs<N>,
        event: Event,
        come: impl FnOnce(&mut Fs<N>) -> T,
    ) -> (T, io::Result<()>) {
        let chip_ns = fs.chip().chip_ns();
        let answer = come(fs);
        let trace = fs.chip_mut().take_trace();
        fs.chip_mut().start_trace();
        let line = Line { chip_ns, event, did: decisions(&trace.entries) };
        (answer, write_line(&mut self.out, &line))
    }

    /// Ends it.
    ///
    /// # Errors
    /// What was written down last is not in the file.
    pub fn end<N: TracedChip>(mut self, fs: &mut Fs<N>) -> io::Result<()> {
        fs.chip_mut().take_trace();
        self.out.flush()
    }
}

fn write_line(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
