//! `flexfs ls`: what is at a path inside an image. Reads only.
//!
//! Invariant: a line is one entry and shows no control character, whatever its name is made of: bytes that are no
//! printable text appear as in `ls -b`.

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::{Error, Result};
use flexfs_core::{Attr, kind};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::tree::{Step, Tree, is_dir, join, shown};
use crate::{cli, image, output};

/// Something listed: its path from the listed directory on, what it is, and where it links to.
struct Entry {
    path: Vec<u8>,
    attr: Attr,
    target: Option<Vec<u8>>,
}

/// What is there, and why it is not all.
#[derive(Default)]
struct Listed {
    entries: Vec<Entry>,
    lost: Vec<Error>,
}

impl Listed {
    fn add(&mut self, entry: Result<Entry>) {
        match entry {
            Ok(entry) => self.entries.push(entry),
            Err(error) => self.lost.push(error),
        }
    }
}

/// Some of it could not be read.
const INCOMPLETE: u8 = 1;

pub fn run(args: &cli::Ls) -> Result<ExitCode> {
    let mut fs = image::probe(&args.image)?.into_files(&args.image)?;
    let mut tree = Tree { fs: &mut fs, image: &args.image };
    let path = args.path.as_bytes();
    let Listed { entries, lost } = list(&mut tree, path, args.recursive)?;
    if args.json {
        let entries: Vec<Value> = entries.iter().map(to_json).collect();
        output::say(&json!({ "image": args.image, "path": shown(path), "entries": entries }).to_string())?;
    } else if !entries.is_empty() {
        output::say(&if args.long { long(&entries) } else { short(&entries) })?;
    }
    lost.iter().for_each(|error| output::complain(&format!("{error:#}")));
    Ok(if lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

fn list(tree: &mut Tree, path: &[u8], recursive: bool) -> Result<Listed> {
    let found = tree.find(path)?;
    let mut listed = Listed::default();
    if !is_dir(&found.attr) {
        listed.entries.push(entry(tree, path, path.to_vec(), found.attr)?);
    } else if recursive {
        tree.walk(found.attr.ino, path, &mut |tree, step| {
            match step {
                Step::Enter(visited) | Step::Leaf(visited) => {
                    let full = join(path, &visited.path);
                    listed.add(entry(tree, &full, visited.path.clone(), visited.attr));
                }
                Step::Leave(_) => {}
                Step::Lost(_, error) => listed.lost.push(error),
            }
            Ok(())
        })?;
    } else {
        let (names, lost) = tree.names(found.attr.ino, path);
        for name in names {
            let full = join(path, &name);
            let attr = tree.fs.lookup(found.attr.ino, &name);
            listed.add(tree.told(&full, attr).and_then(|attr| entry(tree, &full, name, attr)));
        }
        listed.lost.extend(lost);
    }
    Ok(listed)
}

fn entry(tree: &mut Tree, full: &[u8], path: Vec<u8>, attr: Attr) -> Result<Entry> {
    let target = if attr.mode & kind::MASK == kind::SYMLINK {
        let target = tree.fs.readlink(attr.ino);
        Some(tree.told(full, target)?)
    } else {
        None
    };
    Ok(Entry { path, attr, target })
}

fn short(entries: &[Entry]) -> String {
    entries.iter().map(|entry| printable(&entry.path)).collect::<Vec<_>>().join("\n")
}

/// As `ls -l` does, with numbers for owners and the time of modification in UTC.
fn long(entries: &[Entry]) -> String {
    let rows: Vec<[String; 4]> = entries
        .iter()
        .map(|Entry { attr, .. }| {
            let device = matches!(attr.mode & kind::MASK, kind::CHAR | kind::BLOCK);
            let dev = attr.rdev.into();
            let size = match device {
                true => format!("{}, {}", rustix::fs::major(dev), rustix::fs::minor(dev)),
                false => attr.size.to_string(),
            };
            [attr.nlink.to_string(), attr.uid.to_string(), attr.gid.to_string(), size]
        })
        .collect();
    let widths: [usize; 4] =
        std::array::from_fn(|column| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0));
    let [links, users, groups, sizes] = widths;
    let lines = entries.iter().zip(&rows).map(|(entry, [nlink, uid, gid, size])| {
        let mode = unix_mode::to_string(entry.attr.mode);
        let target = entry.target.as_ref().map_or(String::new(), |target| format!(" -> {}", printable(target)));
        let (time, name) = (time(entry.attr.mtime_ns), printable(&entry.path));
        format!("{mode} {nlink:>links$} {uid:>users$} {gid:>groups$} {size:>sizes$} {time} {name}{target}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn time(ns: i64) -> String {
    // Every count of nanoseconds that fits lies within the years that can be written.
    Timestamp::from_nanosecond(ns.into()).map_or_else(|_| ns.to_string(), |time| time.strftime("%F %T").to_string())
}

/// Bytes as text on one line: a backslash and what is no printable text as in `ls -b`.
fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                out.push_str("\\\\");
            } else if character.is_control() {
                let mut utf8 = [0; 4];
                character.encode_utf8(&mut utf8).bytes().for_each(|byte| out.push_str(&octal(byte)));
            } else {
                out.push(character);
            }
        }
        chunk.invalid().iter().for_each(|&byte| out.push_str(&octal(byte)));
    }
    out
}

fn octal(byte: u8) -> String {
    format!("\\{byte:03o}")
}

fn to_json(entry: &Entry) -> Value {
    let Entry { path, attr, target } = entry;
    let mut object = json!({
        "path": String::from_utf8_lossy(path),
        "type": type_name(attr.mode),
        "ino": attr.ino,
        "mode": attr.mode & 0o7777,
        "nlink": attr.nlink,
        "uid": attr.uid,
        "gid": attr.gid,
        "rdev": attr.rdev,
        "bytes": attr.size,
        "stored_bytes": attr.blocks.saturating_mul(512),
        "atime_ns": attr.atime_ns,
        "mtime_ns": attr.mtime_ns,
        "ctime_ns": attr.ctime_ns,
        "btime_ns": attr.btime_ns,
    });
    // JSON has no strings of other bytes than text; where a name is none, it is here once more.
    if std::str::from_utf8(path).is_err() {
        object["path_bytes"] = json!(path);
    }
    if let Some(target) = target {
        object["target"] = json!(String::from_utf8_lossy(target));
    }
    object
}

fn type_name(mode: u32) -> &'static str {
    match mode & kind::MASK {
        kind::FIFO => "fifo",
        kind::CHAR => "char",
        kind::DIR => "directory",
        kind::BLOCK => "block",
        kind::SYMLINK => "symlink",
        kind::SOCKET => "socket",
        _ => "file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_bytes_is_shown_on_one_line() {
        assert_eq!(printable("größe".as_bytes()), "größe");
        assert_eq!(printable(b"a\nb\x1b[1m\\\xff"), "a\\012b\\033[1m\\\\\\377");
    }

    #[test]
    fn times_are_shown_in_utc_before_and_after_1970() {
        assert_eq!(time(1_000_000_000_000_000_000), "2001-09-09 01:46:40");
        assert_eq!(time(-1), "1969-12-31 23:59:59");
    }
}
