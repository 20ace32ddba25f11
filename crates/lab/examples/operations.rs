//! Makes one kind of call so many times on a chip in RAM, for counting instructions:
//!
//! ```sh
//! cargo build --release -p lab --example operations
//! for n in 2000 12000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/operations create $n
//! done
//! ```
//!
//! The difference of the two counts, divided by 10,000, is what one call takes, the emulated chip included. A third argument
//! is a number of lanes, on a chip with as many dies.

use std::process::ExitCode;

use emulator::{Chip, Profile};
use flexfs_core::{Error, FormatOptions, Fs, HOST_CACHE_BYTES, Ino, MountOptions, NewNode, ROOT_INO, kind};
use torture::content::{Fill, Texture, mix};

const CHIP_BYTES: u64 = 256 << 20;
const PAGE: u64 = 4096;
/// Pages of the file that is read and overwritten.
const FILE_PAGES: u64 = 2_000;
const KINDS: &str = "create, write, append, overwrite-sync, read, lookup, unlink";

fn node() -> NewNode {
    NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 }
}

fn name(number: u64) -> Vec<u8> {
    format!("file-{number:06}").into_bytes()
}

fn volume(lanes: u8) -> Result<(Fs<Chip>, Ino), Error> {
    let mut profile = Profile::default().with_capacity(CHIP_BYTES).expect("a size of whole blocks");
    profile.geometry.channels = lanes.into();
    let mut chip = Chip::new(&profile, 1).expect("a built-in chip");
    let label = "count".into();
    let format = FormatOptions { volume_id: [1; 16], label, blank: true, now_ns: 0, ..FormatOptions::default() };
    Fs::format(&mut chip, &format)?;
    let options = MountOptions { cache_bytes: HOST_CACHE_BYTES, lanes: Some(lanes), ..MountOptions::default() };
    let mut fs = Fs::mount(chip, options).map_err(|(_, error)| error)?;
    let ino = fs.create(ROOT_INO, b"file", node(), 0)?.ino;
    let page = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(PAGE as usize);
    for number in 0..FILE_PAGES {
        fs.write(ino, number * PAGE, &page, 0)?;
    }
    for number in 0..20_000 {
        fs.create(ROOT_INO, &name(number), node(), 0)?;
    }
    fs.sync()?;
    Ok((fs, ino))
}

fn run(kind: &str, count: u64, lanes: u8) -> Result<bool, Error> {
    let (mut fs, ino) = volume(lanes)?;
    let page = Fill { seed: 2, start: 0, texture: Texture::Noise }.bytes(PAGE as usize);
    let mut buffer = vec![0; PAGE as usize];
    for number in 0..count {
        match kind {
            "create" => fs.create(ROOT_INO, &name(100_000 + number), node(), 0).map(drop)?,
            "write" => fs.write(ino, mix(number) % FILE_PAGES * PAGE, &page, 0).map(drop)?,
            "append" => fs.write(ino, (FILE_PAGES + number) * PAGE, &page, 0).map(drop)?,
            "overwrite-sync" => {
                fs.write(ino, mix(number) % FILE_PAGES * PAGE, &page, 0)?;
                fs.sync()?;
            }
            "read" => fs.read(ino, mix(number) % FILE_PAGES * PAGE, &mut buffer).map(drop)?,
            "lookup" => fs.lookup(ROOT_INO, &name(mix(number) % 20_000)).map(drop)?,
            "unlink" => fs.unlink(ROOT_INO, &name(number), 0)?,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = args.get(1).and_then(|count| count.parse().ok());
    let lanes = args.get(2).map_or(Some(1), |lanes| lanes.parse().ok());
    match (args.first(), count, lanes) {
        (Some(kind), Some(count), Some(lanes)) => match run(kind, count, lanes) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => complain(&format!("{kind}: no such call; one of {KINDS}")),
            Err(error) => complain(&format!("{kind}: {error}")),
        },
        _ => complain(&format!("usage: operations KIND COUNT [LANES], KIND one of {KINDS}")),
    }
}

fn complain(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::FAILURE
}
