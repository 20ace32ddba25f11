//! `flexfs get`: copies a file or a directory out of an image. Reads only, on the image's side.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::destination::Destinations;
use crate::interrupt::Interrupt;
use crate::tree::Tree;
use crate::tree::take_out::{self, TakeOut};
use crate::{cli, image, output, progress};

/// Some of it could not be read from the image, or be kept on the host.
const INCOMPLETE: u8 = 1;

pub fn run(args: &cli::Get) -> Result<ExitCode> {
    let mut fs = image::probe(&args.image)?.into_files(&args.image)?;
    let mut tree = Tree { fs: &mut fs, image: &args.image };
    let path = args.path.as_bytes();
    let found = tree.find(path)?;
    if args.dest.as_os_str() == "-" {
        take_out::print(&mut tree, path, &found.attr, &mut io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    let dest = match found.entry {
        Some((_, name)) if args.dest.is_dir() => args.dest.join(OsStr::from_bytes(&name)),
        _ => args.dest.clone(),
    };
    let (bar, interrupt) = (progress::bytes(), Interrupt::watch()?);
    let mut copy = TakeOut::new(Destinations::beside(&args.image), &bar, &interrupt);
    let result = copy.copy(&mut tree, path, &found.attr, Path::new(&dest));
    bar.finish_and_clear();
    result?;
    let image = args.image.display();
    for (count, what) in
        [(copy.lost, "could not be read"), (copy.left_out, "could not be kept, attributes that the host refuses")]
    {
        if count > 0 {
            output::complain(&format!("{image}: {} {what}; the rest is copied", output::grouped(count)));
        }
    }
    Ok(if copy.lost + copy.left_out > 0 { ExitCode::from(INCOMPLETE) } else { ExitCode::SUCCESS })
}
