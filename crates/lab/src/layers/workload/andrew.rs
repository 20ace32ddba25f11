//! The Andrew benchmark on ext2: directories are made, files copied, scanned, read, and compiled. Invariant: the parameters are
//! those of docs/FTL.md.

use super::ext2::Ext2;
use super::{Requests, Timed};
use torture::ops::Supply;

const SECOND_NS: u64 = 1_000_000_000;
/// The benchmark's tree.
const DIRECTORIES: u64 = 20;
const FILES: u64 = 70;
/// KiB of a file in the mean, and of what the compiler makes of it.
const FILE_KIB: u64 = 8;
const OBJECT_KIB: u64 = 24;
/// Rounds of the benchmark.
const ROUNDS: u64 = 4;
/// Files between two write-backs.
const FILES_PER_FLUSH: u64 = 30;
/// Time between two write-backs.
const FLUSH_NS: u64 = 5 * SECOND_NS;

pub fn requests(seed: u64) -> Vec<Timed> {
    let (mut dice, mut out, mut ext2) = (Supply::new(seed), Requests::default(), Ext2::new());
    for _ in 0..ROUNDS {
        let directories: Vec<u64> = (0..DIRECTORIES).map(|_| ext2.create(1, 140) + 1).collect();
        flush(&mut ext2, &mut out);
        let directory = |dice: &mut Supply| directories.get(dice.below(DIRECTORIES) as usize).copied().unwrap_or(140);
        let first = ext2.inodes();
        for kib in [FILE_KIB, OBJECT_KIB] {
            for file in 0..FILES {
                let size = kib / 2 + dice.below(kib + 1);
                let directory = directory(&mut dice);
                ext2.create(size.max(1), directory);
                if (file + 1) % FILES_PER_FLUSH == 0 {
                    flush(&mut ext2, &mut out);
                }
            }
            // All files are looked at, and read: times of access are written back.
            (first..first + FILES).for_each(|inode| ext2.touch(inode));
            flush(&mut ext2, &mut out);
        }
    }
    out.all
}

fn flush(ext2: &mut Ext2, out: &mut Requests) {
    out.pause(FLUSH_NS);
    ext2.flush(out);
}
