//! The FlexFS paper's worked examples, on a real volume: Figure 4 (what migration gains) and Figure 8 (what it costs of
//! the writing budget).

use emulator::{Chip, Profile};
use flexfs_core::{BlockCounts, FormatOptions, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind, wear};
use nand::{CellMode, Nand};
use torture::content::{Fill, Texture};

const CHUNK_BYTES: u64 = 4096;
const KIB: u64 = 1024;

/// Blocks of the chip: few, so that they are written in a moment.
const BLOCKS: u64 = 24;

/// Free blocks that are left when idle time begins.
const FREE: u32 = 8;

struct Volume {
    fs: Fs<Chip>,
    file: Ino,
    written: u64,
}

impl Volume {
    /// The paper's chip, its blocks of 128 pages of 4 KiB.
    fn new(policy: Policy) -> Self {
        let profile = Profile::default();
        let profile = profile.with_capacity(BLOCKS * profile.block_bytes()).unwrap();
        let mut chip = Chip::new(&profile, 1).unwrap();
        let label = "paper".into();
        let options = FormatOptions { volume_id: [1; 16], label, blank: true, now_ns: 0, ..FormatOptions::default() };
        Fs::format(&mut chip, &options).unwrap();
        let options = MountOptions { policy, ..MountOptions::default() };
        let mut fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let file = fs.create(ROOT_INO, b"data", node, 0).unwrap().ino;
        fs.sync().unwrap();
        Self { fs, file, written: 0 }
    }

    fn blocks(&mut self) -> BlockCounts {
        self.fs.info().unwrap().blocks
    }

    /// Appends one chunk.
    fn append(&mut self) {
        let data = Fill { seed: self.written, start: 0, texture: Texture::Noise }.bytes(CHUNK_BYTES as usize);
        self.fs.write(self.file, self.written * CHUNK_BYTES, &data, 0).unwrap();
        self.written += 1;
    }

    /// Fills the volume until few blocks are free. Every page of every full SLC block is valid then.
    fn fill(&mut self) -> BlockCounts {
        while self.blocks().free >= FREE {
            self.append();
        }
        self.fs.sync().unwrap();
        self.blocks()
    }

    /// Lets background work run until two more SLC blocks have been emptied.
    fn migrate_two(&mut self) -> BlockCounts {
        let before = self.blocks();
        let mut now_ns = 0;
        while before.slc - self.blocks().slc < 2 {
            now_ns = self.fs.background(now_ns, now_ns).unwrap().expect("SLC blocks are left");
        }
        self.blocks()
    }

    /// Native blocks of which every unit is programmed.
    fn full_native_blocks(&self) -> u32 {
        let chip = self.fs.chip();
        let units = chip.layout(CellMode::Native).units();
        let native = (0..chip.geometry().blocks).filter(|&block| chip.block_mode(block) == Some(CellMode::Native));
        native.filter(|&block| chip.next_unit(block) == units).count() as u32
    }
}

/// The block that a third SLC block's pages are about to move to is not part of the figure: it is counted as free.
#[test]
fn figure_4_two_full_slc_blocks_and_one_free_block_become_two_free_blocks() {
    let mut volume = Volume::new(Policy::BM);
    let before = volume.fill();
    assert_eq!(before.native, 0, "nothing was migrated yet");
    let after = volume.migrate_two();
    let full = volume.full_native_blocks();
    println!("before {before:?}, after {after:?}, of the native blocks {full} full");
    assert_eq!(before.slc - after.slc, 2, "two SLC blocks were emptied");
    assert_eq!(full, 1, "into one native block");
    assert_eq!(after.free + after.native - full, before.free + 1, "where one block was free, two are");
}

#[test]
fn figure_8_a_budget_of_three_two_or_one_blocks_for_512_kib() {
    assert_eq!(wear::output_bytes(512 * KIB, 1.0, 2), 1536 * KIB);
    assert_eq!(wear::output_bytes(512 * KIB, 0.5, 2), 1024 * KIB);
    assert_eq!(wear::output_bytes(512 * KIB, 0.0, 2), 512 * KIB);
    assert_eq!(wear::wear_index(1536 * KIB, 512 * KIB, 2), 1.0);
    assert_eq!(wear::wear_index(1024 * KIB, 512 * KIB, 2), 0.5);
    assert_eq!(wear::wear_index(512 * KIB, 512 * KIB, 2), 0.0);
}

/// A block's worth of data, all of it through SLC blocks and then migrated: δ = 1.
#[test]
fn figure_8a_data_that_goes_through_slc_uses_three_blocks_for_each_block_of_it() {
    let mut volume = Volume::new(Policy::BM);
    let before = volume.fill();
    let after = volume.migrate_two();
    let (slc_used, native_used) = (before.slc - after.slc, volume.full_native_blocks());
    let block_bytes = Profile::default().block_bytes();
    let (input_bytes, used_bytes) =
        (u64::from(slc_used) * block_bytes / 2, u64::from(slc_used + native_used) * block_bytes);
    assert_eq!((input_bytes, used_bytes), (512 * KIB, 1536 * KIB));
    assert_eq!(wear::output_bytes(input_bytes, 1.0, 2), used_bytes);
}

/// The same data written natively at once: δ = 0.
#[test]
fn figure_8c_data_that_is_written_natively_uses_one_block_for_each_block_of_it() {
    let mut volume = Volume::new(Policy::NATIVE_ONLY);
    while volume.blocks().native < 2 {
        volume.append();
    }
    let start = volume.written;
    while volume.blocks().native < 3 {
        volume.append();
    }
    let chunks = volume.written - start;
    let block_bytes = Profile::default().block_bytes();
    println!("one native block took {chunks} chunks");
    assert!((block_bytes / CHUNK_BYTES - 1..=block_bytes / CHUNK_BYTES).contains(&chunks));
    assert_eq!(wear::output_bytes(block_bytes, 0.0, 2), block_bytes);
}
