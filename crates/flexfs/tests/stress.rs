//! Eight processes at once make, change, move and remove files on one mount; afterwards the volume is clean, after
//! a remount the tree is what each of them recorded, and `stat` says what it said before.
//!
//! `FLEXFS_STRESS_SECONDS` says for how long (5 unless set), with and without the kernel's writeback cache. Each process works in a directory of its own, which it
//! knows to the last byte, and now and then in one that all share. It is a program of its own, which runs itself as
//! the processes.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use common::{Dice, Mount, assert_clean, assert_same_stats, drop_caches, image, stats};
use rustix::fs::{FallocateFlags, XattrFlags};

const PROCESSES: u64 = 8;
const SECONDS: u64 = 5;
const FILE_BYTES: u64 = 256 << 10;
/// Entries of a process's tree past which it rather removes.
const ENTRIES: usize = 120;
const ATTRIBUTE: &str = "user.stress";

fn main() -> ExitCode {
    let seconds = std::env::var("FLEXFS_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("--process") => Process::new(&args[2], args[3].parse().unwrap()).run(Duration::from_secs(seconds)),
        Some("--list") => {}
        _ => ["rw", "writethrough"].into_iter().for_each(|manner| stress(seconds, manner)),
    }
    ExitCode::SUCCESS
}

fn stress(seconds: u64, manner: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::with(&image(dir.path(), "512MiB"), &["-o", manner]);
    fs::create_dir(mount.join("shared")).unwrap();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.arg("--process").arg(&mount.path).arg(number.to_string());
            (number, command.spawn().unwrap())
        })
        .collect();
    for (number, mut process) in processes {
        assert!(process.wait().unwrap().success(), "process {number} found something wrong");
    }
    let records = (0..PROCESSES).map(|number| fs::read_to_string(record_path(&mount.path, number)).unwrap());
    let records: Vec<String> = records.collect();
    rustix::fs::sync();
    let said = stats(&mount.path);
    drop_caches();
    assert_same_stats(&said, &stats(&mount.path), "after the kernel forgot");
    let image = mount.image.clone();
    mount.unmount();
    assert_clean(&image);
    let mount = Mount::with(&image, &["-o", manner]);
    assert_same_stats(&said, &stats(&mount.path), "after a remount");
    for (number, recorded) in (0..).zip(&records) {
        let found = describe(&mount.join(number.to_string()));
        assert!(found.lines().eq(recorded.lines()), "process {number} recorded\n{recorded}\nfound\n{found}");
    }
    mount.unmount();
    let operations: u64 = records.iter().map(|record| record.lines().count() as u64).sum();
    println!("test stress, {manner}: {PROCESSES} processes for {seconds} s, {operations} entries as recorded ... ok");
}

/// Records stand beside the mount: what is to be compared must not come from it.
fn record_path(mount: &Path, number: u64) -> PathBuf {
    mount.with_file_name(format!("record-{number}"))
}

/// One line for everything below `root`, in order.
fn describe(root: &Path) -> String {
    let mut lines = Vec::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if meta.is_dir() {
                lines.push(format!("{name}: directory"));
                dirs.push(path);
            } else if meta.is_symlink() {
                lines.push(format!("{name}: to {}", fs::read_link(&path).unwrap().display()));
            } else {
                let mut value = [0; 64];
                let attribute = rustix::fs::getxattr(&path, ATTRIBUTE, &mut value[..]).map(|len| value[..len].to_vec());
                let mode = meta.permissions().mode() & 0o777;
                lines.push(file_line(&name, mode, meta.nlink(), &fs::read(&path).unwrap(), attribute.ok()));
            }
        }
    }
    lines.sort();
    lines.join("\n")
}

fn file_line(name: &str, mode: u32, links: u64, bytes: &[u8], attribute: Option<Vec<u8>>) -> String {
    let (len, crc) = (bytes.len(), crc32c::crc32c(bytes));
    format!("{name}: {mode:o}, {links} links, {len} bytes, {crc:08x}, {attribute:?}")
}

/// What a process knows of a file, under however many names.
struct Known {
    bytes: Vec<u8>,
    mode: u32,
    attribute: Option<Vec<u8>>,
}

#[derive(Clone)]
enum Entry {
    Dir,
    File(u64),
    Link(String),
}

/// A process, its directory, and all it knows of it.
struct Process {
    mount: PathBuf,
    root: PathBuf,
    number: u64,
    dice: Dice,
    files: BTreeMap<u64, Known>,
    entries: BTreeMap<String, Entry>,
    made: u64,
}

impl Process {
    fn new(mount: &str, number: u64) -> Self {
        let (mount, root) = (PathBuf::from(mount), Path::new(mount).join(number.to_string()));
        fs::create_dir(&root).unwrap();
        let dice = Dice::new(number + 1);
        Self { mount, root, number, dice, files: BTreeMap::new(), entries: BTreeMap::new(), made: 0 }
    }

    fn run(mut self, duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration {
            self.step();
        }
        let line = |(name, entry): (&String, &Entry)| match entry {
            Entry::Dir => format!("{name}: directory"),
            Entry::Link(target) => format!("{name}: to {target}"),
            Entry::File(id) => {
                let links = self.names(|entry| matches!(entry, Entry::File(other) if other == id)).len() as u64;
                let file = &self.files[id];
                file_line(name, file.mode, links, &file.bytes, file.attribute.clone())
            }
        };
        let mut lines: Vec<String> = self.entries.iter().map(line).collect();
        lines.sort();
        fs::write(record_path(&self.mount, self.number), lines.join("\n")).unwrap();
    }

    fn names(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        self.entries.iter().filter(|(_, entry)| wanted(entry)).map(|(name, _)| name.clone()).collect()
    }

    fn pick(&mut self, names: &[String]) -> Option<String> {
        if names.is_empty() { None } else { Some(names[self.dice.below(names.len() as u64) as usize].clone()) }
    }

    fn pick_file(&mut self) -> Option<(PathBuf, u64)> {
        let names = self.names(|entry| matches!(entry, Entry::File(_)));
        let name = self.pick(&names)?;
        match self.entries[&name] {
            Entry::File(id) => Some((self.root.join(name), id)),
            _ => None,
        }
    }

    /// Lets go of the contents of files that have lost their last name.
    fn forget_nameless(&mut self) {
        let named = |id: &u64| self.entries.values().any(|entry| matches!(entry, Entry::File(other) if other == id));
        let gone: Vec<u64> = self.files.keys().filter(|id| !named(id)).copied().collect();
        gone.iter().for_each(|id| drop(self.files.remove(id)));
    }

    /// A name that is not taken, in any directory.
    fn new_name(&mut self) -> String {
        self.made += 1;
        let mut dirs = self.names(|entry| matches!(entry, Entry::Dir));
        dirs.push(String::new());
        let dir = self.pick(&dirs).unwrap_or_default();
        if dir.is_empty() { format!("n{}", self.made) } else { format!("{dir}/n{}", self.made) }
    }

    fn step(&mut self) {
        let crowded = self.entries.len() > ENTRIES;
        match self.dice.below(24) {
            0..3 if !crowded => self.create(),
            3 if !crowded => {
                let name = self.new_name();
                fs::create_dir(self.root.join(&name)).unwrap();
                self.entries.insert(name, Entry::Dir);
            }
            4 if !crowded => {
                let (name, target) = (self.new_name(), format!("target-{}", self.made));
                symlink(&target, self.root.join(&name)).unwrap();
                self.entries.insert(name, Entry::Link(target));
            }
            5 if !crowded => self.link(),
            6..9 => self.rename(),
            0..12 => self.remove(),
            12..18 => self.change(),
            18 => self.check(),
            19 => self.sync(),
            20 => self.attributes(),
            21 => self.list(),
            _ => self.share(),
        }
    }

    fn create(&mut self) {
        let name = self.new_name();
        let len = self.dice.below(20_000) as usize;
        let bytes = self.dice.bytes(len);
        let path = self.root.join(&name);
        fs::write(&path, &bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        self.files.insert(self.made, Known { bytes, mode: 0o644, attribute: None });
        self.entries.insert(name, Entry::File(self.made));
    }

    fn link(&mut self) {
        let Some((path, id)) = self.pick_file() else { return };
        let name = self.new_name();
        fs::hard_link(path, self.root.join(&name)).unwrap();
        self.entries.insert(name, Entry::File(id));
    }

    /// To a new name, or over an existing one.
    fn rename(&mut self) {
        let names = self.names(|_| true);
        let Some(from) = self.pick(&names) else { return };
        let is_dir = matches!(self.entries[&from], Entry::Dir);
        let others = self.names(|entry| !matches!(entry, Entry::Dir));
        let to = match self.pick(&others) {
            Some(to) if !is_dir && self.dice.below(3) == 0 => to,
            _ => self.new_name(),
        };
        let below = format!("{from}/");
        if from == to || to.starts_with(&below) {
            return;
        }
        fs::rename(self.root.join(&from), self.root.join(&to)).unwrap();
        if let (Entry::File(one), Some(Entry::File(other))) = (&self.entries[&from], self.entries.get(&to))
            && one == other
        {
            return; // Two names of one file: POSIX has rename leave both.
        }
        let moved: Vec<String> =
            self.entries.keys().filter(|name| **name == from || name.starts_with(&below)).cloned().collect();
        for name in moved {
            if let Some(entry) = self.entries.remove(&name) {
                self.entries.insert(format!("{to}{}", &name[from.len()..]), entry);
            }
        }
        self.forget_nameless();
    }

    fn remove(&mut self) {
        let names = self.names(|_| true);
        let Some(name) = self.pick(&names) else { return };
        let path = self.root.join(&name);
        if matches!(self.entries[&name], Entry::Dir) {
            let below = format!("{name}/");
            let empty = !self.entries.keys().any(|other| other.starts_with(&below));
            match fs::remove_dir(path) {
                Ok(()) => assert!(empty, "{name} was removed with what was in it"),
                Err(error) => {
                    assert!(!empty && error.kind() == ErrorKind::DirectoryNotEmpty, "{name}: {error}");
                    return;
                }
            }
        } else {
            fs::remove_file(path).unwrap();
        }
        self.entries.remove(&name);
        self.forget_nameless();
    }

    /// Changes bytes in the middle, at the end, or makes them holes.
    fn change(&mut self) {
        let Some((path, id)) = self.pick_file() else { return };
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let (offset, len) = (self.dice.below(FILE_BYTES), 1 + self.dice.below(30_000));
        let data = self.dice.bytes(len as usize);
        let how = self.dice.below(6);
        let bytes = &mut self.files.get_mut(&id).unwrap().bytes;
        let grow = |bytes: &mut Vec<u8>, len: usize| bytes.resize(bytes.len().max(len), 0);
        let zero = |bytes: &mut Vec<u8>| {
            let end = bytes.len().min((offset + len) as usize);
            bytes[end.min(offset as usize)..end].fill(0);
        };
        match how {
            0 => {
                file.set_len(offset).unwrap();
                bytes.resize(offset as usize, 0);
            }
            1 => {
                rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
                    .unwrap();
                zero(bytes);
            }
            2 => {
                rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, offset, len).unwrap();
                zero(bytes);
                grow(bytes, (offset + len) as usize);
            }
            _ => {
                let offset = if how == 3 { bytes.len() as u64 } else { offset };
                file.write_all_at(&data, offset).unwrap();
                grow(bytes, (offset + len) as usize);
                bytes[offset as usize..(offset + len) as usize].copy_from_slice(&data);
            }
        }
    }

    fn check(&mut self) {
        let Some((path, id)) = self.pick_file() else { return };
        assert!(fs::read(&path).unwrap() == self.files[&id].bytes, "{} is not what was written", path.display());
    }

    fn sync(&mut self) {
        if let Some((path, _)) = self.pick_file() {
            File::open(path).unwrap().sync_all().unwrap();
        }
    }

    fn attributes(&mut self) {
        let Some((path, id)) = self.pick_file() else { return };
        let (mode, value) = (0o600 + self.dice.below(0o100) as u32, self.dice.bytes(20));
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        rustix::fs::setxattr(&path, ATTRIBUTE, &value, XattrFlags::empty()).unwrap();
        let file = self.files.get_mut(&id).unwrap();
        (file.mode, file.attribute) = (mode, Some(value));
    }

    fn list(&mut self) {
        let found = fs::read_dir(&self.root).unwrap().count();
        assert_eq!(found, self.entries.keys().filter(|name| !name.contains('/')).count());
    }

    /// Where all meet: whatever the others do meanwhile, nothing but what they may bring about comes back.
    fn share(&mut self) {
        let name = |dice: &mut Dice| format!("s{}", dice.below(12));
        let at = self.mount.join("shared").join(name(&mut self.dice));
        let other = self.mount.join("shared").join(name(&mut self.dice));
        let outcome = match self.dice.below(5) {
            0 => fs::write(&at, self.dice.bytes(5_000)),
            1 => fs::rename(&at, &other),
            2 => fs::remove_file(&at),
            3 => fs::hard_link(&at, &other),
            _ => fs::read(&at).map(|bytes| assert!(bytes.len() <= 5_000)),
        };
        if let Err(error) = outcome {
            let expected = [ErrorKind::NotFound, ErrorKind::AlreadyExists];
            assert!(expected.contains(&error.kind()), "{}: {error}", at.display());
        }
    }
}
