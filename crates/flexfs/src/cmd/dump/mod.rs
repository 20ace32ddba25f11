//! `flexfs dump`: the structures of an image as they stand on the chip. Reads only.
//!
//! Invariant: a long text is written as it is read, so that memory does not grow with the volume; a structure that
//! cannot be read is shown as unreadable and ends nothing.

mod files;
mod sectors;

pub use sectors::{KnownUses, ShownLayer};

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Result;

use crate::cli;
use crate::image::{self, Content};
use crate::monitor::{self, Form};

/// Blocks in a line of the map.
const MAP_WIDTH: usize = 64;

pub fn run(args: &cli::Dump) -> Result<ExitCode> {
    let form = if args.json { Form::Json } else { Form::Table };
    let mut out = BufWriter::new(io::stdout().lock());
    let is_of_chip = args.path.is_none() && !args.index && args.ino.is_none();
    if let Some(told) = is_of_chip.then(|| monitor::structures(&args.image, form, args.block)).flatten() {
        write!(out, "{told}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let written = match image::probe(&args.image)? {
        Content::Sectors(mut layer) => sectors::check(&layer, args).and_then(|()| {
            let blocks = KnownUses::of(&layer);
            let (volume, chip) = layer.parts_mut();
            ShownLayer { image: &args.image, volume, chip, blocks, form }.write(args.block, &mut out)
        }),
        content => files::write(&mut content.into_files(&args.image)?, args, &mut out),
    };
    match written.and_then(|()| Ok(out.flush()?)) {
        // The reader has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        written => written.map(|()| ExitCode::SUCCESS),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// The letters of all blocks, in lines that begin with the number of their first.
fn block_map(letters: impl Iterator<Item = char>, out: &mut impl Write) -> io::Result<()> {
    let letters: Vec<char> = letters.collect();
    for (row, line) in letters.chunks(MAP_WIDTH).enumerate() {
        writeln!(out, "{:>8}  {}", row * MAP_WIDTH, String::from_iter(line))?;
    }
    Ok(())
}
