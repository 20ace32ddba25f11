//! How much CPU a chip in RAM takes: the price of every emulated operation and of every power cut tried.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use emulator::{Chip, Profile};
use nand::{Cause, CellMode, Nand};

const SIZE_BYTES: u64 = 64 << 20;

fn chip() -> Chip {
    let profile = Profile::default().with_capacity(SIZE_BYTES).expect("a multiple of the block");
    Chip::new(&profile, 1).expect("a valid profile")
}

/// Programs native pages in order, block after block, erasing each block before it is used again.
fn program_4k_ram(c: &mut Criterion) {
    let mut chip = chip();
    let (data, spare) = (vec![0x5A; 4096], [0xA5; 32]);
    let (mut block, mut unit) = (0, 0);
    c.bench_function("program_4k_ram", |b| {
        b.iter(|| {
            if unit == 128 {
                (block, unit) = ((block + 1) % 128, 0);
                chip.erase(block, Cause::Gc).expect("erases");
            }
            chip.program(block, unit, CellMode::Native, black_box(&data), &spare, Cause::Host).expect("programs");
            unit += 1;
        });
    });
}

fn read_4k_ram(c: &mut Criterion) {
    let mut chip = chip();
    chip.program(0, 0, CellMode::Native, &[7; 4096], &[], Cause::Host).expect("programs");
    let mut data = vec![0; 4096];
    c.bench_function("read_4k_ram", |b| {
        b.iter(|| chip.read(0, 0, 0, black_box(&mut data), &mut [], Cause::Host).expect("reads"));
    });
}

fn full_chip() -> Chip {
    let mut chip = chip();
    for block in 0..128 {
        for unit in 0..128 {
            chip.program(block, unit, CellMode::Native, &[7; 4096], &[1; 32], Cause::Host).expect("programs");
        }
    }
    chip
}

fn snapshot_64mib(c: &mut Criterion) {
    let chip = full_chip();
    c.bench_function("snapshot_64mib", |b| b.iter(|| black_box(chip.snapshot())));
}

/// A snapshot and one erase and program in it: what one tried power cut costs at least.
fn snapshot_and_program(c: &mut Criterion) {
    let mut chip = full_chip();
    chip.erase(5, Cause::Gc).expect("erases");
    for unit in 0..64 {
        chip.program(5, unit, CellMode::Native, &[7; 4096], &[1; 32], Cause::Host).expect("programs");
    }
    c.bench_function("snapshot_and_program", |b| {
        b.iter(|| {
            let mut copy = chip.snapshot();
            copy.program(5, 64, CellMode::Native, &[7; 4096], &[1; 32], Cause::Host).expect("programs");
            copy
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots();
    targets = program_4k_ram, read_4k_ram, snapshot_64mib, snapshot_and_program
}
criterion_main!(benches);
