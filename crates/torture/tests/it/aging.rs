//! A medium that grows old: data that fades without power or under many reads is written anew in time, and a chip that
//! is written to death keeps every synced byte.

use emulator::{BitErrors, Chip, FaultConfig};
use flexfs_core::{Ended, Error, Fs, MountOptions, NewNode, Policy, ROOT_INO, SetAttr, kind};
use torture::content::{Fill, Texture, mix};
use torture::crash::Rig;

const CHUNK_BYTES: usize = 4096;
const BLOCKS: u64 = 64;
const MONTH_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

fn rig(policy: Policy) -> Rig {
    let options = MountOptions { policy, cache_bytes: 128 << 10, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", BLOCKS as u32, 16, options).unwrap();
    Rig { faults: FaultConfig { bit_errors: BitErrors::Drawn, ..FaultConfig::default() }, ..rig }
}

fn contents(chunk: u64, version: u64) -> Vec<u8> {
    Fill { seed: mix(chunk ^ mix(version)), start: 0, texture: Texture::Noise }.bytes(CHUNK_BYTES)
}

/// A volume with one synced file of so many chunks.
fn with_file(rig: &Rig, chunks: u64) -> (Fs<Chip>, u64) {
    let mut fs = rig.format(rig.chip(7).unwrap(), 7).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", node, 0).unwrap().ino;
    for chunk in 0..chunks {
        fs.write(ino, chunk * CHUNK_BYTES as u64, &contents(chunk, 0), 0).unwrap();
    }
    fs.sync().unwrap();
    (fs, ino)
}

fn mount(chip: Chip, rig: &Rig, now_ns: i64) -> Fs<Chip> {
    Fs::mount(chip, MountOptions { now_ns, ..rig.options.clone() }).map_err(|(_, error)| error).unwrap()
}

/// Does what a timer would until nothing is left to do.
fn background(fs: &mut Fs<Chip>, now_ns: i64) {
    for _ in 0..10_000 {
        if fs.background(now_ns, now_ns).unwrap().is_none() {
            return;
        }
    }
    panic!("background work does not end");
}

/// Pages of the file that cannot be read.
fn lost(fs: &mut Fs<Chip>, ino: u64, chunks: u64) -> usize {
    let mut found = vec![0; CHUNK_BYTES];
    let unreadable = |chunk: &u64| match fs.read(ino, chunk * CHUNK_BYTES as u64, &mut found) {
        Ok(_) => {
            assert!(found == contents(*chunk, 0), "chunk {chunk} reads wrong");
            false
        }
        Err(Error::Corrupt { .. }) => true,
        Err(error) => panic!("chunk {chunk}: {error}"),
    };
    (0..chunks).filter(unreadable).count()
}

/// Three months without power, a short time with it, and so on for eight years: what is left unreadable.
fn eight_years(policy: Policy, timer: bool) -> usize {
    const CHUNKS: u64 = 200;
    let rig = rig(policy);
    let (fs, ino) = with_file(&rig, CHUNKS);
    let (mut chip, outcome) = fs.unmount(0);
    outcome.unwrap();
    for quarter in 1..=32 {
        let now_ns = 3 * MONTH_NS * quarter;
        chip.advance_to_ns(now_ns);
        let mut fs = mount(chip, &rig, now_ns as i64);
        if timer {
            background(&mut fs, now_ns as i64);
        }
        let (left, outcome) = fs.unmount(now_ns as i64);
        outcome.unwrap();
        chip = left;
    }
    lost(&mut mount(chip, &rig, 0), ino, CHUNKS)
}

#[test]
fn what_fades_without_power_is_written_anew_while_there_is_some() {
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        assert_eq!(eight_years(policy, true), 0, "{policy:?}");
    }
    assert!(eight_years(Policy::NATIVE_ONLY, false) > 0, "the medium does not fade: this proves nothing");
}

#[test]
fn what_reading_wears_out_is_written_anew_before_it_is_lost() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    const CHUNKS: u64 = 40;
    for timer in [true, false] {
        let mut rig = rig(Policy::NATIVE_ONLY);
        rig.profile.errors.native.per_read = 1e-6;
        rig.profile.errors.slc.per_read = 1e-6;
        let (mut fs, ino) = with_file(&rig, CHUNKS);
        let mut unreadable = 0;
        for round in 0..400 {
            let now_ns = round * HOUR_NS;
            unreadable += lost(&mut fs, ino, CHUNKS);
            if timer {
                background(&mut fs, now_ns);
            }
        }
        assert_eq!(unreadable == 0, timer, "{unreadable} reads failed");
    }
}

/// Erases a block endures in these tests.
const ENDURANCE: u32 = 1_000;

/// Writes in one of so many of which the power fails.
const CUT_EVERY: u64 = 503;

/// Writes synced chunks until nothing can be written any more.
struct Life {
    rig: Rig,
    /// There is always one.
    fs: Option<Fs<Chip>>,
    ino: u64,
    /// What each chunk holds, and what it may hold where a write failed.
    versions: Vec<(u64, u64)>,
    /// Chunks that are certainly there: giving up the ones after them may have failed halfway.
    kept: usize,
    writes: u64,
    cuts: u64,
}

/// Mounts of a chip at its end.
const MOUNTS_MAX: usize = 30;

impl Life {
    fn new(policy: Policy) -> Self {
        let mut rig = rig(policy);
        rig.faults = FaultConfig { wear_failures: true, bit_errors: BitErrors::Drawn, ..FaultConfig::power_cuts(7) };
        (rig.profile.endurance.native_erases, rig.profile.endurance.slc_erases) = (ENDURANCE, ENDURANCE);
        let mut probe = rig.format(rig.chip(7).unwrap(), 7).unwrap().fs;
        let chunks = probe.statfs().unwrap().capacity_bytes / 2 / CHUNK_BYTES as u64;
        let (fs, ino) = with_file(&rig, chunks);
        let (versions, kept) = (vec![(0, 0); chunks as usize], chunks as usize);
        Self { rig, fs: Some(fs), ino, versions, kept, writes: 0, cuts: 0 }
    }

    fn fs(&mut self) -> &mut Fs<Chip> {
        self.fs.as_mut().unwrap()
    }

    /// Overwrites a chunk: mostly of a tenth of the file, the rest stays as it is for long.
    fn write(&mut self) -> Result<(), Error> {
        self.writes += 1;
        let chunks = self.versions.len() as u64;
        let draw = mix(self.writes);
        let chunk = if draw.is_multiple_of(50) { (draw >> 32) % chunks } else { (draw >> 32) % (chunks / 10) };
        self.versions[chunk as usize].1 = self.writes;
        if self.writes.is_multiple_of(CUT_EVERY) {
            self.fs().chip_mut().faults_mut().cut_power_at(draw % 5);
        }
        let outcome = self.store(chunk);
        if self.fs().chip_mut().is_powered() {
            self.fs().chip_mut().faults_mut().cancel_cut();
            return outcome;
        }
        self.cuts += 1;
        self.remount();
        // There is time for what a mount looks at first.
        let now_ns = self.writes as i64 * 1_000_000;
        while matches!(self.fs().background(now_ns, now_ns), Ok(Some(_))) {}
        // Whichever of the two it shows stays.
        let mut found = vec![0; CHUNK_BYTES];
        let ino = self.ino;
        self.fs().read(ino, chunk * CHUNK_BYTES as u64, &mut found).unwrap();
        let versions = &mut self.versions[chunk as usize];
        versions.0 = if found == contents(chunk, versions.1) { versions.1 } else { versions.0 };
        Ok(())
    }

    fn store(&mut self, chunk: u64) -> Result<(), Error> {
        let (version, now_ns, ino) = (self.writes, self.writes as i64 * 1_000_000, self.ino);
        self.fs().write(ino, chunk * CHUNK_BYTES as u64, &contents(chunk, version), now_ns)?;
        self.fs().sync()?;
        self.versions[chunk as usize].0 = version;
        if version.is_multiple_of(16) {
            self.fs().background(now_ns, now_ns)?;
        }
        Ok(())
    }

    fn remount(&mut self) {
        let mut chip = self.fs.take().unwrap().into_chip();
        chip.power_on();
        self.fs = Some(mount(chip, &self.rig, 0));
    }

    fn verify(&mut self) {
        let size = self.fs.as_mut().unwrap().getattr(self.ino).unwrap().size as usize;
        assert!(size >= self.kept * CHUNK_BYTES, "{size} bytes are left of {} chunks", self.kept);
        self.versions.truncate(size / CHUNK_BYTES);
        let mut found = vec![0; CHUNK_BYTES];
        for (chunk, &(synced, tried)) in (0u64..).zip(&self.versions) {
            let fs = self.fs.as_mut().unwrap();
            fs.read(self.ino, chunk * CHUNK_BYTES as u64, &mut found).unwrap_or_else(|e| panic!("chunk {chunk}: {e}"));
            assert!(
                found == contents(chunk, synced) || found == contents(chunk, tried),
                "chunk {chunk} is lost after {} writes",
                self.writes
            );
        }
    }
}

/// Cuts the file to so many chunks.
fn give_up(life: &mut Life, left: usize) -> Result<(), Error> {
    let shorter = SetAttr { size: Some((left * CHUNK_BYTES) as u64), ..SetAttr::default() };
    let ino = life.ino;
    life.fs().setattr(ino, shorter, 0)?;
    life.fs().sync()
}

/// Where nothing more fits, the end of the file is given up.
fn live_on(life: &mut Life) -> Error {
    const GIVEN_UP: usize = 8;
    loop {
        let error = loop {
            if let Err(error) = life.write() {
                break error;
            }
        };
        let left = life.versions.len().saturating_sub(GIVEN_UP);
        if error != Error::NoSpace || left < GIVEN_UP {
            return error;
        }
        life.kept = left;
        if let Err(error) = give_up(life, left) {
            return error;
        }
        life.versions.truncate(left);
    }
}

/// The blocks that are written again and again go from die to die, and cold data to the dies that wear fast.
#[test]
fn dies_wear_alike_on_four_lanes() {
    for policy in [Policy::DEFAULT, Policy::NATIVE_ONLY] {
        let options = MountOptions { policy, cache_bytes: 128 << 10, lanes: Some(4), ..MountOptions::default() };
        let mut rig = Rig::small("flexfs-mlc", 3 * BLOCKS as u32, 16, options).unwrap();
        rig.profile.geometry.channels = 4;
        (rig.profile.endurance.native_erases, rig.profile.endurance.slc_erases) = (ENDURANCE, ENDURANCE);
        let mut probe = rig.format(rig.chip(7).unwrap(), 7).unwrap().fs;
        let chunks = probe.statfs().unwrap().capacity_bytes / 2 / CHUNK_BYTES as u64;
        let (mut fs, ino) = with_file(&rig, chunks);
        for write in 0..40_000u64 {
            let (draw, now_ns) = (mix(write), write as i64 * 1_000_000);
            let chunk = if draw.is_multiple_of(50) { (draw >> 32) % chunks } else { (draw >> 32) % (chunks / 10) };
            fs.write(ino, chunk * CHUNK_BYTES as u64, &contents(chunk, write), now_ns).unwrap();
            fs.sync().unwrap();
            if write.is_multiple_of(16) {
                fs.background(now_ns, now_ns).unwrap();
            }
        }
        let erases: Vec<u64> = fs.info().unwrap().dies.iter().map(|die| die.erases).collect();
        let (least, greatest) = (*erases.iter().min().unwrap(), *erases.iter().max().unwrap());
        assert!(erases.len() == 4 && least > 500, "{erases:?}: this proves nothing");
        assert!(greatest * 100 <= least * 135, "{policy:?}: {erases:?}");
    }
}

/// Levelling once moved cold data from one young block to another, again and again: a volume left to itself wore its
/// chip out.
#[test]
fn a_volume_left_to_itself_comes_to_rest_and_its_blocks_are_near_each_other() {
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        let mut rig = rig(policy);
        rig.profile.endurance.native_erases = ENDURANCE;
        let mut probe = rig.format(rig.chip(7).unwrap(), 7).unwrap().fs;
        let chunks = probe.statfs().unwrap().capacity_bytes / 2 / CHUNK_BYTES as u64;
        let (mut fs, ino) = with_file(&rig, chunks);
        for write in 0..16_000u64 {
            let chunk = mix(write) % (chunks / 10);
            fs.write(ino, chunk * CHUNK_BYTES as u64, &contents(chunk, 0), 0).unwrap();
            fs.sync().unwrap();
        }
        let before = fs.info().unwrap();
        background(&mut fs, 0);
        let after = fs.info().unwrap();
        let (gap, rest) = (before.erases_max - before.erases_min, after.erases_total - before.erases_total);
        println!("{policy:?}: blocks {gap} erases apart; {rest} erases until it rests");
        assert!(gap > 30 && rest > 0, "nothing is to be levelled");
        assert!(rest < 2 * BLOCKS, "{rest} erases of {BLOCKS} blocks");
        // What is free now is young: callers go on with that.
        let free = fs.blocks().filter(|block| block.used_as == "free" || block.live_bytes == 0);
        let young = free.filter(|block| block.erases < after.erases_max - gap / 2).count();
        assert!(young > 3, "{young} young blocks are free");
        assert_eq!(lost(&mut fs, ino, chunks), 0);
    }
}

#[test]
fn a_chip_that_is_written_to_death_keeps_every_synced_byte() {
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        let mut life = Life::new(policy);
        let (mut worn, mut first_bad) = (None, None);
        let error = loop {
            if let Err(error) = life.write() {
                break error;
            }
            if life.writes.is_multiple_of(64) {
                let info = life.fs().info().unwrap();
                if info.erases_max >= ENDURANCE * 8 / 10 {
                    worn.get_or_insert(life.writes);
                }
                if info.blocks.bad > 0 {
                    first_bad.get_or_insert((life.writes, info.spare_blocks));
                }
            }
        };
        assert_eq!(error, Error::NoSpace);
        life.verify();
        let full = life.writes;
        let error = live_on(&mut life);
        life.verify();
        let erases: Vec<u32> = life.fs().chip().erase_counts().collect();
        let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
        let spread = erases.iter().map(|&count| (f64::from(count) / mean - 1.0).abs()).fold(0.0, f64::max);
        let info = life.fs().info().unwrap();
        println!(
            "{policy:?}: worn after {worn:?} writes, first bad block and spare ones {first_bad:?}, too small after {full}, \
             {error} after {}, {} chunks left, {} of {} blocks bad, {:?}; {mean:.0} erases on average, {:.1} % from it at most",
            life.writes,
            life.versions.len(),
            info.blocks.bad,
            erases.len(),
            info.ended,
            100.0 * spread
        );
        assert_eq!(error, Error::ReadOnly);
        assert_eq!(info.ended, Some(Ended::NoBlocks), "the volume does not say that it has come to its end");
        // Whoever mounts it again and goes on loses nothing either.
        let mut mounts = 0;
        loop {
            life.remount();
            life.verify();
            mounts += 1;
            if life.fs().info().unwrap().ended.is_some() || mounts == MOUNTS_MAX {
                break;
            }
            live_on(&mut life);
            life.verify();
        }
        let (left, cuts) = (life.versions.len(), life.cuts);
        println!("{policy:?}: read-only from mount {mounts} on, {left} chunks left, {cuts} cuts");
        assert!(life.fs().info().unwrap().ended.is_some(), "it does not end");
        assert!(cuts > 150, "{cuts} cuts");
        assert!(spread < 0.05, "erase counts are up to {:.1} % from their mean", 100.0 * spread);
        assert!(worn.unwrap() < full * 9 / 10 && first_bad.unwrap().1 > 8, "it came without a word");
    }
}
