//! Processor time of 4 KiB sequential writes into a chip in RAM, against copying and checksumming the same bytes: the
//! least that any file system with checksums must do.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use emulator::{Chip, Profile};
use flexfs_core::{FormatOptions, Fs, MountOptions, NewNode, ROOT_INO, kind};
use torture::content::{Fill, Texture};

const WRITE_BYTES: usize = 4 << 10;
const FILE_BYTES: usize = 32 << 20;
const CHIP_BYTES: u64 = 128 << 20;

/// The best time for the whole file that any round of a benchmark took.
struct Best(Cell<Duration>);

impl Best {
    fn new() -> Self {
        Self(Cell::new(Duration::MAX))
    }

    /// Runs `round`, which times itself, so many times.
    fn of(&self, rounds: u64, mut round: impl FnMut() -> Duration) -> Duration {
        (0..rounds)
            .map(|_| {
                let took = round();
                self.0.set(self.0.get().min(took));
                took
            })
            .sum()
    }
}

fn volume(chip: &Chip) -> (Fs<Chip>, u64) {
    let mut fs = Fs::mount(chip.snapshot(), MountOptions::default()).map_err(|(_, error)| error).unwrap();
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", node, 0).unwrap().ino;
    (fs, ino)
}

fn main() {
    let data = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(FILE_BYTES);
    let mut chip = Chip::new(&Profile::default().with_capacity(CHIP_BYTES).unwrap(), 1).unwrap();
    let label = "bench".into();
    let format = FormatOptions { volume_id: [1; 16], label, blank: true, now_ns: 0, ..FormatOptions::default() };
    Fs::format(&mut chip, &format).unwrap();

    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let mut group = criterion.benchmark_group("core_cpu");
    group.throughput(Throughput::Bytes(FILE_BYTES as u64));

    let floor = Best::new();
    let mut copy = vec![0u8; FILE_BYTES];
    group.bench_function("memcpy + CRC-32C", |bencher| {
        bencher.iter_custom(|rounds| {
            floor.of(rounds, || {
                let start = Instant::now();
                for (to, from) in copy.chunks_exact_mut(WRITE_BYTES).zip(data.chunks_exact(WRITE_BYTES)) {
                    to.copy_from_slice(from);
                    black_box(crc32c::crc32c(to));
                }
                start.elapsed()
            })
        });
    });

    let core = Best::new();
    group.bench_function("4 KiB sequential writes", |bencher| {
        bencher.iter_custom(|rounds| {
            core.of(rounds, || {
                let (mut fs, ino) = volume(&chip);
                let start = Instant::now();
                for (index, page) in data.chunks_exact(WRITE_BYTES).enumerate() {
                    fs.write(ino, (index * WRITE_BYTES) as u64, page, 0).unwrap();
                }
                fs.sync().unwrap();
                start.elapsed()
            })
        });
    });
    group.finish();
    criterion.final_summary();

    let (floor, core) = (floor.0.get(), core.0.get());
    if core < Duration::MAX && floor < Duration::MAX {
        let ratio = floor.as_secs_f64() / core.as_secs_f64();
        println!("core_cpu: {floor:?} against {core:?} for {} MiB: ratio {ratio:.3} (bar 0.4)", FILE_BYTES >> 20);
    }
}
