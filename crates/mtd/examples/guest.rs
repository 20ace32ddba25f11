//! What `suites/mtd` runs on a file system inside its machine: workloads that are counted, and synced changes that are
//! checked after a power cut.
//!
//! Each change of `change` is written to a log on the host before it is made, and once more when its sync has returned.
//! Invariant: `check` accepts what the acknowledged changes left, and of the change under way any part.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Files that change, in so many directories.
const FILES: u64 = 200;
const DIRECTORIES: u64 = 7;
/// The longest file, and the longest of most.
const LONG_BYTES: u64 = 40_000;
const SHORT_BYTES: u64 = 5_000;

/// Numbers that follow from a seed.
struct GuestDice(u64);

impl GuestDice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The bytes of a version of a file.
fn content(file: u64, version: u64, bytes: u64) -> Vec<u8> {
    let mut dice = GuestDice(file * 1_000_003 + version * 7_919 + 12_345);
    let words = (0..bytes.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes());
    words.take(bytes as usize).collect()
}

fn path_of(root: &Path, file: u64) -> PathBuf {
    root.join(format!("d{}", file % DIRECTORIES)).join(format!("f{file}"))
}

/// Changes files until `count` changes are made, or a change fails.
fn change(root: &Path, log: &Path, seed: u64, count: u64) -> io::Result<()> {
    let mut log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut dice = GuestDice(0x9E37_79B9_7F4A_7C15 ^ (seed + 1));
    let mut there = BTreeMap::new();
    for version in 1..=count {
        let file = dice.below(FILES);
        let removes = there.contains_key(&file) && dice.below(6) == 0;
        let longest = if dice.below(4) == 0 { LONG_BYTES } else { SHORT_BYTES };
        let bytes = if removes { 0 } else { 1 + dice.below(longest) };
        log.write_all(format!("began {file} {version} {bytes}\n").as_bytes())?;
        let path = path_of(root, file);
        let directory = path.parent().unwrap_or(root);
        if removes {
            fs::remove_file(&path)?;
            File::open(directory)?.sync_all()?;
            there.remove(&file);
        } else {
            fs::create_dir_all(directory)?;
            let opened = OpenOptions::new().create(true).write(true).truncate(false).open(&path)?;
            opened.set_len(bytes)?;
            opened.write_all_at(&content(file, version, bytes), 0)?;
            opened.sync_all()?;
            there.insert(file, version);
        }
        log.write_all(format!("synced {file} {version} {bytes}\n").as_bytes())?;
    }
    Ok(())
}

/// A version of a file; 0 bytes: it is removed.
#[derive(Clone, Copy, Default)]
struct FileVersion {
    number: u64,
    bytes: u64,
}

/// The content of a log: the synced version of each file, and the change under way at its end.
#[derive(Default)]
struct ChangeLog {
    synced: BTreeMap<u64, FileVersion>,
    under_way: Option<(u64, FileVersion)>,
    count: u64,
}

/// Reads a log. A last line without its end was being written when the power failed, and counts for nothing.
fn read_log(log: &Path) -> io::Result<ChangeLog> {
    let mut told = ChangeLog::default();
    let text = fs::read_to_string(log)?;
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[word, file, number, bytes] = fields.as_slice() else { continue };
        let parse = |text: &str| text.parse::<u64>().map_err(io::Error::other);
        let (file, version) = (parse(file)?, FileVersion { number: parse(number)?, bytes: parse(bytes)? });
        if word == "began" {
            told.under_way = Some((file, version));
        } else {
            told.synced.insert(file, version);
            told.under_way = None;
            told.count += 1;
        }
    }
    Ok(told)
}

/// What is wrong with a file, if anything is.
fn fault(root: &Path, told: &ChangeLog, file: u64) -> Option<String> {
    let synced = told.synced.get(&file).copied().unwrap_or_default();
    let under_way = told.under_way.filter(|&(changed, _)| changed == file).map(|(_, version)| version);
    let found = match fs::read(path_of(root, file)) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let may_be_gone = synced.bytes == 0 || under_way.is_some_and(|version| version.bytes == 0);
            return (!may_be_gone).then(|| format!("missing, version {} of it was synced", synced.number));
        }
        Err(error) => return Some(format!("cannot be read: {error}")),
    };
    let old = content(file, synced.number, synced.bytes);
    let Some(version) = under_way else {
        return match () {
            () if synced.bytes == 0 => {
                Some(format!("is there with {} bytes, and was removed or never made", found.len()))
            }
            () if found != old => Some(format!("has other bytes than its version {}", synced.number)),
            () => None,
        };
    };
    let new = content(file, version.number, version.bytes);
    let fits = |(at, &byte): (usize, &u8)| byte == 0 || old.get(at) == Some(&byte) || new.get(at) == Some(&byte);
    let wrong = found.iter().enumerate().position(|at| !fits(at))?;
    Some(format!("byte {wrong} belongs to neither version"))
}

fn check(root: &Path, log: &Path) -> io::Result<bool> {
    let told = read_log(log)?;
    let faults: Vec<String> =
        (0..FILES).filter_map(|file| Some(format!("f{file}: {}", fault(root, &told, file)?))).collect();
    faults.iter().for_each(|fault| println!("LOST {fault}"));
    println!("checked: {} synced changes, {} files wrong", told.count, faults.len());
    Ok(faults.is_empty())
}

/// New files of 4 KiB, each synced.
fn small(root: &Path, count: u64) -> io::Result<()> {
    for number in 0..count {
        let mut file = File::create_new(root.join(format!("s{number}")))?;
        file.write_all(&content(number, 1, 4096))?;
        file.sync_all()?;
    }
    Ok(())
}

/// A file of so many MiB.
fn prepare(root: &Path, mebibytes: u64) -> io::Result<()> {
    let mut file = File::create(root.join("over"))?;
    for number in 0..mebibytes {
        file.write_all(&content(number, 1, 1 << 20))?;
    }
    file.sync_all()
}

/// Pages of that file written over by chance, each synced.
fn over(root: &Path, count: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(root.join("over"))?;
    let pages = file.seek(SeekFrom::End(0))? / 4096;
    let mut dice = GuestDice(0x1234_5678_9ABC_DEF1);
    for number in 0..count {
        file.write_all_at(&content(number, 2, 4096), dice.below(pages) * 4096)?;
        file.sync_data()?;
    }
    Ok(())
}

/// A file until the volume is so full, in percent.
fn fill(root: &Path, percent: u64) -> io::Result<()> {
    let stat = rustix::fs::statvfs(root)?;
    let bytes = stat.f_bavail * stat.f_frsize * percent / 100;
    let mut file = File::create(root.join("seq"))?;
    for number in 0..bytes >> 20 {
        file.write_all(&content(number, 1, 1 << 20))?;
    }
    file.sync_all()
}

fn read_all(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        File::open(entry?.path())?.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn run(words: &[String]) -> io::Result<bool> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    match words.as_slice() {
        ["change", root, log, seed, count] => change(root.as_ref(), log.as_ref(), number(seed)?, number(count)?)?,
        ["check", root, log] => return check(root.as_ref(), log.as_ref()),
        ["small", root, count] => small(root.as_ref(), number(count)?)?,
        ["prepare", root, mebibytes] => prepare(root.as_ref(), number(mebibytes)?)?,
        ["over", root, count] => over(root.as_ref(), number(count)?)?,
        ["fill", root, percent] => fill(root.as_ref(), number(percent)?)?,
        ["read", root] => read_all(root.as_ref())?,
        _ => return Err(io::Error::other("usage: guest change|check|small|prepare|over|fill|read DIR ...")),
    }
    Ok(true)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("guest {}: {error}", words.join(" "));
            ExitCode::from(2)
        }
    }
}
