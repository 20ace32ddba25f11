//! An input of the `image_file` fuzzer: changes to the file that holds an emulated chip, which is then opened and used.
//!
//! The file lives in memory. Header, clock and block records get right checksums again, and a changed profile the
//! figures that follow from it, so that what is behind them is reached. Invariants: any bytes are an input; a file that
//! was opened to be written to can be opened again.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::{Chip, FaultConfig, Profile, Shape};
use flexfs_core::{Fs, MountOptions, NewNode, ROOT_INO, kind};
use rustix::fs::{MemfdFlags, memfd_create};
use torture::crash::{BASE_NS, Rig, VolumeOver};

use crate::exercise::{Use, exercise};
use crate::record::{Record, padded, split};

const EDITS_MAX: usize = 24;
/// Files are not made longer than this.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of the header before the profile's text.
const FIXED_BYTES: usize = 96;
const HEADER_SEALED_FROM: usize = 16;
const ALIGN: u64 = 4096;
const CLOCK_BYTES: usize = 16;
const RECORD_HEAD_BYTES: usize = 64;

/// Offset and bytes of what the header says.
const HEADER: [(usize, usize); 12] =
    [(0, 8), (8, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8), (64, 8), (72, 8), (80, 4), (84, 8)];
/// And of what a block record does.
const BLOCK: [(usize, usize); 9] = [(4, 1), (5, 1), (6, 2), (8, 4), (12, 4), (16, 4), (20, 4), (24, 8), (32, 8)];

const EDGES: [u64; 10] = [0, 1, 2, 16, 255, 65_536, 1 << 28, u32::MAX as u64, i64::MAX as u64, u64::MAX];
const WORDS: [&str; 10] =
    ["-1", "1e308", "nan", "-inf", "[]", "[0, 1, 2, 3]", "true", "\"word_line\"", "\"none\"", "{}"];

/// What to do to the file, and how it is opened and used.
#[derive(Debug)]
pub struct Input {
    read_only: bool,
    usage: Use,
    edits: Vec<Edit>,
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Header {
        field: u16,
        value: u64,
    },
    /// The checksum of the header is left wrong.
    UnsealHeader,
    Clock {
        ns: u64,
        sealed: bool,
    },
    Block {
        block: u16,
        field: u16,
        value: u64,
    },
    PageState {
        block: u16,
        page: u16,
        state: u8,
    },
    CopyBlock {
        from: u16,
        to: u16,
    },
    /// Anywhere; no checksum is put right.
    Bytes {
        offset: u64,
        bytes: [u8; 8],
    },
    Length(u64),
    /// The so-manieth value of the profile.
    Number {
        line: u16,
        value: u64,
    },
    Word {
        line: u16,
        word: u8,
    },
    /// Bytes of the profile's text give way to others.
    Text {
        offset: u16,
        removed: u8,
        bytes: [u8; 8],
        count: u8,
    },
}

impl Edit {
    fn decode(record: &Record) -> Self {
        let (first, second, form) = (record.u16(2), record.u16(4), record.u8(1));
        let value = match form % 4 {
            0 => record.tail_u64(),
            1 => record.tail_u64() & 0xff,
            2 => record.tail_u64() & 0xffff,
            _ => EDGES[record.u8(8) as usize % EDGES.len()],
        };
        match record.u8(0) % 16 {
            0 | 1 => Edit::Header { field: first, value },
            2 => Edit::UnsealHeader,
            3 => Edit::Clock { ns: value, sealed: second % 8 > 0 },
            4..7 => Edit::Block { block: first, field: second, value },
            7 | 8 => Edit::PageState { block: first, page: second, state: form % 6 },
            9 => Edit::CopyBlock { from: first, to: second },
            10 => Edit::Bytes { offset: u64::from(first) << 8 | u64::from(second & 0xff), bytes: record.tail() },
            11 => Edit::Length(value),
            12 | 13 => Edit::Number { line: first, value },
            14 => Edit::Word { line: first, word: form },
            _ => Edit::Text { offset: first, removed: form, bytes: record.tail(), count: second as u8 % 9 },
        }
    }
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let ([open, how, seed, cut], records) = split::<4>(bytes.bytes(bytes.len())?);
        let edits = records.take(EDITS_MAX).map(|record| Edit::decode(&record)).collect();
        Ok(Self { read_only: open % 4 == 1, usage: Use::decode(how, seed, cut), edits })
    }
}

impl Input {
    /// Changes the file, opens it and uses the chip in it.
    pub fn run(&self) {
        static FILE: LazyLock<MemoryFile> = LazyLock::new(MemoryFile::new);
        static WHOLE: LazyLock<Vec<u8>> =
            LazyLock::new(|| make().unwrap_or_else(|error| panic!("making the image: {error}")));
        FILE.put(&ImageBytes::of(&WHOLE).edited(&self.edits));
        let chip = match Chip::open_image(&FILE.path, self.read_only) {
            Ok(chip) => chip,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        chip.snapshot();
        exercise(chip, VolumeOver::Chip, &self.usage);
        if let Err(error) = Chip::open_image(&FILE.path, self.read_only) {
            panic!("what was opened once is refused: {error}");
        }
    }
}

/// A file without a disk under it, and a path that leads to it.
struct MemoryFile {
    file: File,
    path: String,
}

impl MemoryFile {
    fn new() -> Self {
        let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).unwrap_or_else(|error| panic!("{error}")));
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Self { file, path }
    }

    fn put(&self, bytes: &[u8]) {
        let put = self.file.set_len(0).and_then(|()| self.file.write_all_at(bytes, 0));
        put.unwrap_or_else(|error| panic!("writing a file in memory: {error}"));
    }
}

/// The file of a small volume.
fn make() -> std::result::Result<Vec<u8>, String> {
    let mut profile = Profile::default();
    (profile.geometry.blocks, profile.geometry.pages_per_block, profile.geometry.page_bytes) = (24, 8, 2048);
    let file = MemoryFile::new();
    let chip = Chip::replace_image(&file.path, &profile, 1).map_err(|error| error.to_string())?;
    let rig = Rig { profile, faults: FaultConfig::default(), options: MountOptions::default(), over: VolumeOver::Chip };
    let mut fs = rig.format(chip, 1)?.fs;
    fill(&mut fs).map_err(|error| error.to_string())?;
    let (chip, outcome) = fs.unmount(BASE_NS);
    outcome.map_err(|error| error.to_string())?;
    drop(chip);
    let length = file.file.metadata().map_err(|error| error.to_string())?.len();
    let mut bytes = vec![0; length as usize];
    file.file.read_exact_at(&mut bytes, 0).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn fill(fs: &mut Fs<Chip>) -> flexfs_core::Result<()> {
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    for number in 0..6u8 {
        let ino = fs.create(ROOT_INO, &[b'a' + number], node, BASE_NS)?.ino;
        fs.write(ino, 0, &[number; 5000], BASE_NS)?;
        fs.sync()?;
    }
    Ok(())
}

/// An image file in its parts.
struct ImageBytes {
    fixed: [u8; FIXED_BYTES],
    profile: Vec<u8>,
    /// From the clock record on.
    rest: Vec<u8>,
    unsealed: bool,
    length: Option<u64>,
}

impl ImageBytes {
    fn of(bytes: &[u8]) -> Self {
        let fixed: [u8; FIXED_BYTES] = padded(bytes);
        let text_bytes = u32::from_le_bytes(padded(&fixed[80..84])) as usize;
        let (profile, rest) = (&bytes[FIXED_BYTES..FIXED_BYTES + text_bytes], &bytes[header_bytes(text_bytes)..]);
        Self { fixed, profile: profile.to_vec(), rest: rest.to_vec(), unsealed: false, length: None }
    }

    fn edited(mut self, edits: &[Edit]) -> Vec<u8> {
        edits.iter().for_each(|edit| self.edit_profile(edit));
        self.follow_profile();
        edits.iter().for_each(|edit| self.edit(edit));
        let mut bytes = self.fixed.to_vec();
        bytes.extend_from_slice(&self.profile);
        if !self.unsealed {
            let crc = crc32c::crc32c(&bytes[HEADER_SEALED_FROM..]);
            bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        }
        bytes.resize(header_bytes(self.profile.len()), 0);
        bytes.extend_from_slice(&self.rest);
        for edit in edits {
            if let Edit::Bytes { offset, bytes: new } = edit {
                let offset = *offset as usize % bytes.len();
                bytes[offset..].iter_mut().zip(new).for_each(|(to, from)| *to = *from);
            }
        }
        if let Some(length) = self.length {
            bytes.resize(length.min(FILE_BYTES_MAX) as usize, 0);
        }
        bytes
    }

    fn edit_profile(&mut self, edit: &Edit) {
        match *edit {
            Edit::Number { line, value } => self.replace_value(line, &value.to_string()),
            Edit::Word { line, word } => self.replace_value(line, WORDS[usize::from(word) % WORDS.len()]),
            Edit::Text { offset, removed, bytes, count } => {
                let from = usize::from(offset) % (self.profile.len() + 1);
                let to = (from + usize::from(removed % 16)).min(self.profile.len());
                self.profile.splice(from..to, bytes.into_iter().take(usize::from(count)));
            }
            _ => {}
        }
    }

    fn replace_value(&mut self, line: u16, value: &str) {
        let text = String::from_utf8_lossy(&self.profile).into_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut settings: Vec<&mut String> = lines.iter_mut().filter(|line| line.contains(" = ")).collect();
        let number = usize::from(line) % settings.len().max(1);
        if let Some(setting) = settings.get_mut(number)
            && let Some((name, _)) = setting.split_once(" = ")
        {
            **setting = format!("{name} = {value}");
        }
        self.profile = (lines.join("\n") + "\n").into_bytes();
    }

    /// Sets what follows from the profile: its length and, where it describes a chip, all other figures.
    fn follow_profile(&mut self) {
        self.fixed[80..84].copy_from_slice(&(self.profile.len() as u32).to_le_bytes());
        let profile = std::str::from_utf8(&self.profile).ok().and_then(|text| Profile::from_toml(text).ok());
        let Some(Profile { geometry, .. }) = profile else { return };
        let figures = figures(&geometry, header_bytes(self.profile.len()) as u64);
        for (at, figure) in figures {
            self.fixed[at..at + 8].copy_from_slice(&figure.to_le_bytes());
        }
        if let Some((_, length)) = figures.last().filter(|(_, length)| *length <= FILE_BYTES_MAX) {
            self.rest.resize(*length as usize - header_bytes(self.profile.len()), 0);
        }
    }

    fn edit(&mut self, edit: &Edit) {
        match *edit {
            Edit::Header { field, value } => {
                let (at, bytes) = HEADER[usize::from(field) % HEADER.len()];
                self.fixed[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
            Edit::UnsealHeader => self.unsealed = true,
            Edit::Clock { ns, sealed } => {
                let mut clock = [0; CLOCK_BYTES];
                clock[8..].copy_from_slice(&ns.to_le_bytes());
                seal(&mut clock, sealed);
                if let Some(room) = self.rest.get_mut(..CLOCK_BYTES) {
                    room.copy_from_slice(&clock);
                }
            }
            Edit::Block { block, field, value } => {
                let (at, bytes) = BLOCK[usize::from(field) % BLOCK.len()];
                self.change_record(block, |record| {
                    record[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                });
            }
            Edit::PageState { block, page, state } => self.change_record(block, |record| {
                let states = &mut record[RECORD_HEAD_BYTES..];
                let page = usize::from(page) % states.len().max(1);
                states[page..].iter_mut().take(1).for_each(|byte| *byte = state);
            }),
            Edit::CopyBlock { from, to } => {
                let copied = self.record(from).map(|record| record.to_vec()).unwrap_or_default();
                self.change_record(to, |record| record.iter_mut().zip(&copied).for_each(|(to, from)| *to = *from));
            }
            Edit::Length(length) => self.length = Some(length),
            _ => {}
        }
    }

    fn change_record(&mut self, block: u16, change: impl FnOnce(&mut [u8])) {
        if let Some(record) = self.record(block) {
            change(record);
            seal(record, true);
        }
    }

    /// The record of a block, which the profile says where to find.
    fn record(&mut self, block: u16) -> Option<&mut [u8]> {
        let text = std::str::from_utf8(&self.profile).ok()?;
        let shape = Profile::from_toml(text).ok()?.geometry;
        let length = record_bytes(&shape) as usize;
        let at = ALIGN as usize + (u32::from(block) % shape.blocks) as usize * length;
        self.rest.get_mut(at..at + length)
    }
}

/// Writes the checksum of a record in front of it.
fn seal(record: &mut [u8], right: bool) {
    let crc = crc32c::crc32c(&record[4..]) ^ u32::from(!right);
    record[..4].copy_from_slice(&crc.to_le_bytes());
}

fn header_bytes(text_bytes: usize) -> usize {
    (FIXED_BYTES + text_bytes).next_multiple_of(ALIGN as usize)
}

fn record_bytes(shape: &Shape) -> u64 {
    (RECORD_HEAD_BYTES as u64 + u64::from(shape.pages_per_block)).next_power_of_two()
}

/// What the header says of a chip of this shape, and where; the file's length is last.
fn figures(shape: &Shape, header_bytes: u64) -> [(usize, u64); 7] {
    let record_bytes = record_bytes(shape);
    let records_at = header_bytes + ALIGN;
    let data_at = (records_at + u64::from(shape.blocks) * record_bytes).next_multiple_of(ALIGN);
    let slot_bytes = u64::from(shape.page_bytes) + u64::from(shape.spare_bytes);
    let block_bytes = (u64::from(shape.pages_per_block) * slot_bytes).next_multiple_of(ALIGN);
    let file_bytes = data_at + u64::from(shape.blocks) * block_bytes;
    let places = [16, 32, 40, 48, 56, 64, 72];
    let values = [header_bytes, record_bytes, records_at, data_at, slot_bytes, block_bytes, file_bytes];
    std::array::from_fn(|index| (places[index], values[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_put_together_from_its_parts_is_the_same() {
        let whole = make().unwrap();
        assert_eq!(ImageBytes::of(&whole).edited(&[]), whole);
    }

    #[test]
    fn a_changed_record_or_profile_is_still_read() {
        let whole = make().unwrap();
        let file = MemoryFile::new();
        let renamed = Edit::Number { line: 4, value: 2 };
        let worn = Edit::Block { block: 3, field: 3, value: 77 };
        file.put(&ImageBytes::of(&whole).edited(&[renamed, worn]));
        let chip = Chip::open_image(&file.path, true).unwrap();
        assert_eq!((chip.erase_count(3), chip.profile().geometry.dies_per_chip), (77, 2));
    }
}
