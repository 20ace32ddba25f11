//! Records a volume as it is used. Invariant: recording changes nothing of what the volume does; where it fails, it ends.

use std::io::{self, Write};

use emulator::Chip;
use flexfs_core::Fs;

use super::event::{Event, Header, Line, decisions};

/// A recording under way.
pub struct Recorder {
    out: Box<dyn Write + Send>,
}

impl Recorder {
    /// Begins with a volume just mounted, as the header says.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin(mut out: Box<dyn Write + Send>, header: &Header, fs: &mut Fs<Chip>) -> io::Result<Self> {
        write_line(&mut out, header)?;
        fs.chip_mut().start_trace(usize::MAX);
        Ok(Self { out })
    }

    /// Lets an event come to the volume, and writes it down.
    ///
    /// # Errors
    /// It came, and could not be written down.
    pub fn around<T>(
        &mut self,
        fs: &mut Fs<Chip>,
        event: Event,
        come: impl FnOnce(&mut Fs<Chip>) -> T,
    ) -> (T, io::Result<()>) {
        let chip_ns = fs.chip().now_ns();
        let answer = come(fs);
        let trace = fs.chip_mut().take_trace();
        fs.chip_mut().start_trace(usize::MAX);
        let line = Line { chip_ns, event, did: decisions(&trace.entries) };
        (answer, write_line(&mut self.out, &line))
    }

    /// Ends it.
    ///
    /// # Errors
    /// What was written down last is not in the file.
    pub fn end(mut self, fs: &mut Fs<Chip>) -> io::Result<()> {
        fs.chip_mut().take_trace();
        self.out.flush()
    }
}

fn write_line(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
