//! A chip in an image behaves as a chip in RAM does, whatever is done to both.

use crate::common::{contents, profile, program_tagged, read};
use emulator::{Chip, Corruption, FaultConfig};
use nand::{Cause, CellMode, Nand};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Program { block: u32, skip: u32, mode: CellMode, tag: u32 },
    Erase { block: u32 },
    Read { block: u32, page: u32 },
    MarkBad { block: u32 },
    Corrupt { block: u32, page: u32 },
    Barrier,
    Idle { ns: u64 },
    Cut { n: u64 },
    CutNow,
    PowerOn,
    FailProgram,
}

fn step() -> impl Strategy<Value = Step> {
    let block = 0..8u32;
    let mode = prop_oneof![Just(CellMode::Slc), Just(CellMode::Native)];
    prop_oneof![
        12 => (block.clone(), prop_oneof![6 => Just(0u32), 1 => 0..5u32], mode, 0..1000u32)
            .prop_map(|(block, skip, mode, tag)| Step::Program { block, skip, mode, tag }),
        3 => block.clone().prop_map(|block| Step::Erase { block }),
        4 => (block.clone(), 0..16u32).prop_map(|(block, page)| Step::Read { block, page }),
        1 => (5..8u32).prop_map(|block| Step::MarkBad { block }),
        1 => (block, 0..16u32).prop_map(|(block, page)| Step::Corrupt { block, page }),
        2 => Just(Step::Barrier),
        1 => (0..3_000_000u64).prop_map(|ns| Step::Idle { ns }),
        2 => (0..6u64).prop_map(|n| Step::Cut { n }),
        1 => Just(Step::CutNow),
        4 => Just(Step::PowerOn),
        1 => Just(Step::FailProgram),
    ]
}

/// Does one step and says everything its caller can see of it.
fn apply(chip: &mut Chip, step: &Step) -> String {
    match *step {
        Step::Program { block, skip, mode, tag } => {
            let unit = chip.next_unit(block) + skip;
            let mode = chip.block_mode(block).unwrap_or(mode);
            format!("{:?}", program_tagged(chip, block, unit, mode, tag))
        }
        Step::Erase { block } => format!("{:?}", chip.erase(block, Cause::Gc)),
        Step::Read { block, page } => format!("{:?}", read(chip, block, page)),
        Step::MarkBad { block } => format!("{:?}", chip.mark_bad(block)),
        Step::Corrupt { block, page } => format!("{:?}", chip.corrupt_page(block, page, Corruption::FlipBits(9))),
        Step::Barrier => {
            let mut failures = Vec::new();
            format!("{:?} {failures:?}", chip.barrier(&mut failures))
        }
        Step::Idle { ns } => {
            chip.advance_to_ns(chip.now_ns() + ns);
            String::new()
        }
        Step::Cut { n } => {
            chip.cut_power_at(n);
            String::new()
        }
        Step::CutNow => format!("{:?}", chip.cut_power()),
        Step::PowerOn => {
            chip.power_on();
            String::new()
        }
        Step::FailProgram => {
            chip.fail_program_at(1);
            String::new()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chip_in_an_image_behaves_as_one_in_ram(
        steps in prop::collection::vec(step(), 1..120),
        seed in 0..1000u64,
        dies in prop_oneof![Just(1u16), Just(4u16)],
    ) {
        let mut profile = profile();
        profile.geometry.dies_per_chip = dies;
        let faults = FaultConfig::power_cuts(seed);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chip.img");
        let mut ram = Chip::new(&profile, seed).unwrap();
        let mut image = Chip::create_image(&path, &profile, seed).unwrap();
        ram.set_faults(faults.clone());
        image.set_faults(faults.clone());
        for step in &steps {
            prop_assert_eq!(apply(&mut ram, step), apply(&mut image, step), "{:?}", step);
            prop_assert_eq!(ram.now_ns(), image.now_ns());
            prop_assert_eq!(ram.counters(), image.counters());
            prop_assert_eq!(ram.operations(), image.operations());
        }
        let mut copy = image.snapshot();
        for chip in [&mut ram, &mut image, &mut copy] {
            chip.cancel_cut();
            chip.power_on();
        }
        let state = |chip: &Chip| {
            (0..8).map(|b| (chip.erase_count(b), chip.next_unit(b), chip.block_mode(b), chip.is_bad(b), chip.wear(b)))
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(state(&ram), state(&image));
        drop(image);
        let mut image = Chip::open_image(&path, false).unwrap();
        prop_assert_eq!(state(&ram), state(&image));
        let expected = contents(&mut ram);
        prop_assert!(contents(&mut copy) == expected);
        prop_assert!(contents(&mut image) == expected);
    }
}
