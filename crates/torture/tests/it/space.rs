//! What of a file takes space: holes, reserved chunks and data, against a model that knows every chunk.

use flexfs_core::{Atime, Compression, Error, Fs, Info, Ino, MountOptions, NewNode, Policy, ROOT_INO, SetAttr, kind};
use proptest::prelude::*;
use torture::content::{Fill, Texture};
use torture::crash::{BASE_NS, Emulated, Rig};

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
const CHUNK: u64 = 4096;
/// Chunks of the file that the histories work on.
const CHUNKS: u64 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hole,
    Reserved,
    Data,
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Punch(u64, u64),
    Allocate(u64, u64, bool),
    Zero(u64, u64, bool),
    Truncate(u64),
    Sync,
    Remount,
    /// Lets go of the chip after a sync as a power cut does, and recovers.
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..CHUNKS * CHUNK, 1..12 * CHUNK).prop_map(|(from, len)| (from, len.min(CHUNKS * CHUNK - from)));
    let whole = || (0..CHUNKS, 1..12u64).prop_map(|(from, len)| (from * CHUNK, len.min(CHUNKS - from) * CHUNK));
    let either = || prop_oneof![range(), whole()];
    prop_oneof![
        4 => either().prop_map(|(from, len)| Step::Write(from, len)),
        3 => either().prop_map(|(from, len)| Step::Punch(from, len)),
        3 => (either(), any::<bool>()).prop_map(|((from, len), keep)| Step::Allocate(from, len, keep)),
        2 => (either(), any::<bool>()).prop_map(|((from, len), keep)| Step::Zero(from, len, keep)),
        2 => (0..CHUNKS * CHUNK).prop_map(Step::Truncate),
        1 => Just(Step::Sync),
        1 => Just(Step::Remount),
        1 => Just(Step::Cut),
    ]
}

/// What every chunk of the file is, and what its bytes are.
struct Model {
    states: Vec<State>,
    bytes: Vec<u8>,
}

impl Model {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn grow(&mut self, size: u64) {
        self.bytes.resize(self.bytes.len().max(size as usize), 0);
    }

    fn write(&mut self, from: u64, data: &[u8]) {
        let end = from + data.len() as u64;
        self.grow(end);
        self.bytes[from as usize..end as usize].copy_from_slice(data);
        self.states[(from / CHUNK) as usize..end.div_ceil(CHUNK) as usize].fill(State::Data);
    }

    fn punch(&mut self, from: u64, len: u64) {
        let end = (from + len).min(self.size());
        if from >= end {
            return;
        }
        self.bytes[from as usize..end as usize].fill(0);
        let first = from.div_ceil(CHUNK) as usize;
        let past = if end == self.size() { end.div_ceil(CHUNK) } else { end / CHUNK } as usize;
        if first < past {
            self.states[first..past].fill(State::Hole);
        }
    }

    fn allocate(&mut self, from: u64, len: u64, keep_size: bool) {
        for state in &mut self.states[(from / CHUNK) as usize..(from + len).div_ceil(CHUNK) as usize] {
            if *state == State::Hole {
                *state = State::Reserved;
            }
        }
        if !keep_size {
            self.grow(from + len);
        }
    }

    fn truncate(&mut self, size: u64) {
        if size <= self.size() {
            self.states[size.div_ceil(CHUNK) as usize..].fill(State::Hole);
        }
        self.bytes.resize(size as usize, 0);
    }

    /// Where the next data, or hole, from `offset` on is.
    fn seek(&self, offset: u64, hole: bool) -> Option<u64> {
        let found = (offset..self.size()).find(|&at| (self.states[(at / CHUNK) as usize] == State::Data) != hole);
        found.or((hole && offset < self.size()).then_some(self.size()))
    }

    fn count(&self, wanted: State) -> u64 {
        self.states.iter().filter(|&&state| state == wanted).count() as u64
    }
}

fn apply<N: Emulated>(fs: &mut Fs<N>, ino: Ino, model: &mut Model, step: &Step, turn: u64) -> Result<(), Error> {
    let now_ns = BASE_NS + turn as i64 * 1_000_000;
    match *step {
        Step::Write(from, len) => {
            let data = Fill { seed: turn, start: 0, texture: Texture::Noise }.bytes(len as usize);
            fs.write(ino, from, &data, now_ns)?;
            model.write(from, &data);
        }
        Step::Punch(from, len) => {
            fs.punch(ino, from, len, now_ns)?;
            model.punch(from, len);
        }
        Step::Allocate(from, len, keep_size) => {
            fs.allocate(ino, from, len, keep_size, now_ns)?;
            model.allocate(from, len, keep_size);
        }
        Step::Zero(from, len, keep_size) => {
            fs.zero_range(ino, from, len, keep_size, now_ns)?;
            model.punch(from, len);
            model.allocate(from, len, keep_size);
        }
        Step::Truncate(size) => {
            fs.setattr(ino, SetAttr { size: Some(size), ..SetAttr::default() }, now_ns)?;
            model.truncate(size);
        }
        Step::Sync | Step::Cut => fs.sync()?,
        Step::Remount => {}
    }
    Ok(())
}

fn compare<N: Emulated>(fs: &mut Fs<N>, ino: Ino, model: &Model, stored: bool) -> Result<(), TestCaseError> {
    let attr = fs.getattr(ino).unwrap();
    prop_assert_eq!(attr.size, model.size());
    let taken = model.count(State::Data) + model.count(State::Reserved);
    prop_assert_eq!(attr.blocks, taken * CHUNK / 512, "{:?}", model.states);
    let mut bytes = vec![7; model.bytes.len() + 1];
    prop_assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), model.bytes.len());
    prop_assert!(bytes[..model.bytes.len()] == model.bytes, "the bytes differ");
    for at in (0..=CHUNKS).flat_map(|chunk| [chunk * CHUNK, chunk * CHUNK + 1]) {
        for hole in [false, true] {
            let found = fs.seek(ino, at, hole);
            let expected = model.seek(at, hole).ok_or(Error::PastEnd);
            prop_assert_eq!(found, expected, "from {}, hole {}: {:?}", at, hole, &model.states);
        }
    }
    let report = fs.check().unwrap();
    prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
    // A chunk in memory takes the place of its reservation when it is stored.
    let in_memory = report.reserved_chunks - model.count(State::Reserved);
    prop_assert!(in_memory <= if stored { 0 } else { model.count(State::Data) }, "{in_memory}");
    Ok(())
}

fn history(steps: &[Step], policy: Policy) -> Result<(), TestCaseError> {
    let options = MountOptions { policy, cache_bytes: 64 << 10, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 64, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
    let ino = fs.create(ROOT_INO, b"file", FILE, BASE_NS).unwrap().ino;
    let mut model = Model { states: vec![State::Hole; CHUNKS as usize + 12], bytes: Vec::new() };
    for (turn, step) in (1..).zip(steps) {
        apply(&mut fs, ino, &mut model, step, turn)
            .map_err(|error| TestCaseError::fail(format!("{step:?}: {error}")))?;
        let chip = match step {
            Step::Remount => {
                let (chip, unmounted) = fs.unmount(BASE_NS);
                unmounted.unwrap();
                chip
            }
            Step::Cut => fs.into_chip(),
            _ => {
                compare(&mut fs, ino, &model, matches!(step, Step::Sync))?;
                continue;
            }
        };
        fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap();
        compare(&mut fs, ino, &model, true)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn holes_reservations_and_data_are_where_a_model_of_every_chunk_has_them(
        steps in prop::collection::vec(step(), 1..40),
        native in any::<bool>(),
    ) {
        history(&steps, if native { Policy::NATIVE_ONLY } else { Policy::BASELINE })?;
    }
}

/// Fills the volume to the last byte, by a file beside. A call that finds no space may leave some to the next one, by what
/// it copied ahead of need: it is full when a chunk more finds none after a sync.
fn fill<N: Emulated>(fs: &mut Fs<N>) {
    let ino = fs.create(ROOT_INO, b"rest", FILE, 2).unwrap().ino;
    let noise = Fill { seed: 3, start: 0, texture: Texture::Noise }.bytes(64 << 10);
    let mut at = 0;
    loop {
        for piece in [64 << 10, 4096, 100] {
            while let Ok(count) = fs.write(ino, at, &noise[..piece], 3) {
                at += count as u64;
                if count < piece {
                    break;
                }
            }
        }
        fs.sync().unwrap();
        match fs.write(ino, at.next_multiple_of(CHUNK), &noise[..4096], 5) {
            Err(Error::NoSpace) => return,
            more => at = at.next_multiple_of(CHUNK) + more.unwrap() as u64,
        }
    }
}

fn used<N: Emulated>(fs: &mut Fs<N>) -> (u64, Info) {
    let stat = fs.statfs().unwrap();
    (stat.capacity_bytes - stat.free_bytes, fs.info().unwrap())
}

#[test]
fn what_was_reserved_can_be_written_on_a_full_volume_whatever_came_between() {
    const RESERVED: u64 = 1 << 20;
    for (policy, cut) in
        [(Policy::BASELINE, false), (Policy::BASELINE, true), (Policy::NATIVE_ONLY, true), (Policy::SLC_ONLY, true)]
    {
        let options = MountOptions { policy, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small("flexfs-mlc", 64, 32, options).unwrap();
        let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
        let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
        let (before, _) = used(&mut fs);
        fs.allocate(ino, 0, RESERVED, false, 1).unwrap();
        let (after, info) = used(&mut fs);
        assert!(after >= before + RESERVED, "a reservation counts as used");
        assert_eq!(info.used_bytes, after);
        fill(&mut fs);
        let chip = if cut {
            fs.into_chip()
        } else {
            let (chip, unmounted) = fs.unmount(6);
            unmounted.unwrap();
            chip
        };
        let mut fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap();
        let noise = Fill { seed: 9, start: 0, texture: Texture::Noise }.bytes(RESERVED as usize);
        // Backwards, with a sync each: as many places in the index as there can be.
        for (chunk, data) in noise.chunks(CHUNK as usize).enumerate().rev() {
            let count = fs.write(ino, chunk as u64 * CHUNK, data, 7);
            assert_eq!(count, Ok(CHUNK as usize), "{policy:?}, chunk {chunk}: {:?}", fs.statfs());
            fs.sync().unwrap();
        }
        let mut found = vec![0; RESERVED as usize];
        assert_eq!(fs.read(ino, 0, &mut found), Ok(RESERVED as usize));
        assert!(found == noise, "{policy:?}");
        let report = fs.check().unwrap();
        assert!(report.findings.is_empty() && report.reserved_chunks == 0, "{report:?}");
    }
}

/// Of small chips of large blocks the capacity left out less than the reserve took: with all of it reserved, the last
/// chunks could not be written, nor anything be overwritten.
#[test]
fn all_there_is_can_be_reserved_written_and_overwritten() {
    let chips = [
        (64, 32, Policy::BASELINE),
        (64, 64, Policy::BASELINE),
        (64, 64, Policy::NATIVE_ONLY),
        (40, 128, Policy::SLC_ONLY),
    ];
    for (blocks, pages, policy) in chips {
        let options = MountOptions { policy, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small("flexfs-mlc", blocks, pages, options).unwrap();
        let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
        let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
        let (mut chunks, mut too_many) = (0, fs.statfs().unwrap().free_bytes / CHUNK + 1);
        while chunks + 1 < too_many {
            let half = chunks.midpoint(too_many);
            match fs.allocate(ino, 0, half * CHUNK, false, 1) {
                Ok(()) => chunks = half,
                Err(_) => too_many = half,
            }
        }
        for round in 0..2 {
            // Backwards, with a sync each: as many places in the index as there can be.
            for chunk in (0..chunks).rev() {
                let data = Fill { seed: chunk + round, start: 0, texture: Texture::Noise }.bytes(CHUNK as usize);
                let written = fs.write(ino, chunk * CHUNK, &data, 2).and_then(|count| fs.sync().map(|()| count));
                assert_eq!(written, Ok(CHUNK as usize), "{blocks} x {pages}, {policy:?}: chunk {chunk} of {chunks}");
            }
        }
    }
}

#[test]
fn what_cannot_be_reserved_is_refused_whole() {
    let rig = Rig::small("flexfs-mlc", 64, 16, MountOptions::default()).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
    let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
    let (before, _) = used(&mut fs);
    let capacity = fs.statfs().unwrap().capacity_bytes;
    for len in [capacity, 1 << 40, i64::MAX as u64] {
        assert_eq!(fs.allocate(ino, 0, len, false, 2), Err(Error::NoSpace), "{len}");
        assert_eq!(fs.zero_range(ino, 0, len, true, 2), Err(Error::NoSpace), "{len}");
    }
    assert_eq!(fs.allocate(ino, 1, i64::MAX as u64, false, 2), Err(Error::FileTooLarge));
    assert_eq!(fs.allocate(ino, u64::MAX, 2, false, 2), Err(Error::FileTooLarge));
    assert!(matches!(fs.allocate(ino, 0, 0, false, 2), Err(Error::Invalid(_))));
    let attr = fs.getattr(ino).unwrap();
    assert_eq!((used(&mut fs).0, attr.blocks, attr.size), (before, 0, 0));
}

/// A small write into a reserved chunk gave the whole reservation up; on a full volume the rest could not be written,
/// nor what had been written be overwritten.
#[test]
fn what_was_reserved_can_be_written_bit_by_bit_and_overwritten_on_a_full_volume() {
    for compression in [Compression::None, Compression::Lz4] {
        let options = MountOptions { compression, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small("flexfs-mlc", 64, 32, options).unwrap();
        let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
        let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
        let noise = |seed, len| Fill { seed, start: 0, texture: Texture::Noise }.bytes(len);
        fs.allocate(ino, 0, 64 * CHUNK, false, 1).unwrap();
        for chunk in 0..64 {
            fs.write(ino, chunk * CHUNK, &noise(chunk, 100), 2).unwrap();
        }
        fs.write(ino, 70 * CHUNK, &[7; 4096], 2).unwrap();
        fs.sync().unwrap();
        fill(&mut fs);
        for round in 0..3 {
            for chunk in 0..64 {
                let data = noise(chunk + round, CHUNK as usize - 100);
                assert_eq!(fs.write(ino, chunk * CHUNK + 100, &data, 6), Ok(data.len()), "{compression:?} {chunk}");
                fs.sync().unwrap();
            }
        }
        let report = fs.check().unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
    }
}

/// What was reserved already counted a second time.
#[test]
fn a_range_that_is_reserved_can_be_made_zeros_whatever_is_left() {
    let rig = Rig::small("flexfs-mlc", 64, 32, MountOptions::default()).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
    let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
    let len = fs.statfs().unwrap().capacity_bytes / 10 * 6;
    fs.allocate(ino, 0, len, false, 1).unwrap();
    fs.allocate(ino, 0, len, false, 2).unwrap();
    fs.zero_range(ino, 0, len, false, 3).unwrap();
    assert!(fs.check().unwrap().findings.is_empty());
}

/// Emptying a block full of nodes changes far more of the index than one of data: the checkpoint after it found no
/// blocks, and neither did the recovery at any mount from then on. With times of access, reading alone led there.
#[test]
fn a_full_volume_of_very_many_small_files_can_be_mounted_again_and_emptied() {
    for (blocks, pages, cache_bytes, files) in [
        (256, 32, 256 << 10, 8_000),
        (256, 128, 1 << 20, 40_000),
        (256, 128, 4 << 20, 60_000),
        (256, 32, 4 << 20, 8_000),
    ] {
        let options = MountOptions { cache_bytes, atime: Atime::Relative, ..MountOptions::default() };
        let rig = Rig::small("flexfs-mlc", blocks, pages, options).unwrap();
        let mut fs = rig.format(rig.chip(1).unwrap(), CHUNK).unwrap().fs;
        let what = format!("{blocks} blocks of {pages} pages, {files} files");
        let made = (0..files).map_while(|number| fs.create(ROOT_INO, format!("f{number}").as_bytes(), FILE, 1).ok());
        let inos: Vec<Ino> = made.map(|attr| attr.ino).collect();
        fill(&mut fs);
        let chip = fs.into_chip();
        let mut fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).expect(&what);
        for &ino in &inos {
            fs.accessed(ino, 10).unwrap();
        }
        let (chip, unmounted) = fs.unmount(11);
        unmounted.expect(&what);
        let mut fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).expect(&what);
        assert!(fs.check().unwrap().findings.is_empty(), "{what}");
        fs.unlink(ROOT_INO, b"rest", 12).expect(&what);
        for number in 0..inos.len() {
            fs.unlink(ROOT_INO, format!("f{number}").as_bytes(), 13).expect(&what);
        }
        fs.sync().unwrap();
        assert_eq!(fs.statfs().unwrap().files, 1);
    }
}
