//! A chip in an image behaves as a chip in RAM does, and one without host data as one with, whatever is done to both.

use std::collections::BTreeSet;

use crate::common::{PageContents, contents, page_contents, pattern, profile};
use emulator::{BitErrors, Chip, Corruption, FaultConfig};
use nand::{Cause, CellMode, Nand};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Program { block: u32, skip: u32, mode: CellMode, tag: u32, spare: usize, cause: Cause },
    Erase { block: u32 },
    Read { block: u32, page: u32 },
    MarkBad { block: u32 },
    Corrupt { block: u32, page: u32, spare: bool },
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
    let spare = prop_oneof![2 => Just(64usize), 2 => Just(16usize), 1 => 0..64usize];
    let cause = prop_oneof![3 => Just(Cause::Metadata), 2 => Just(Cause::Host), 1 => Just(Cause::Gc)];
    prop_oneof![
        12 => (block.clone(), prop_oneof![6 => Just(0u32), 1 => 0..5u32], mode, 0..1000u32, spare, cause)
            .prop_map(|(block, skip, mode, tag, spare, cause)| Step::Program { block, skip, mode, tag, spare, cause }),
        3 => block.clone().prop_map(|block| Step::Erase { block }),
        4 => (block.clone(), 0..16u32).prop_map(|(block, page)| Step::Read { block, page }),
        1 => (5..8u32).prop_map(|block| Step::MarkBad { block }),
        1 => (block, 0..16u32, any::<bool>())
            .prop_map(|(block, page, spare)| Step::Corrupt { block, page, spare }),
        2 => Just(Step::Barrier),
        1 => (0..3_000_000u64).prop_map(|ns| Step::Idle { ns }),
        2 => (0..6u64).prop_map(|n| Step::Cut { n }),
        1 => Just(Step::CutNow),
        4 => Just(Step::PowerOn),
        1 => Just(Step::FailProgram),
    ]
}

/// What a caller looks at when it reads a page.
type Look<'a> = &'a dyn Fn(&mut Chip, u32, u32) -> PageContents;

/// All of a page, or all but its data where `kept` has it not.
fn kept_contents(kept: &BTreeSet<(u32, u32)>, chip: &mut Chip, block: u32, page: u32) -> PageContents {
    let (data, spare) = page_contents(chip, block, page)?;
    Ok((if kept.contains(&(block, page)) { data } else { Vec::new() }, spare))
}

fn unit_and_mode(chip: &Chip, block: u32, skip: u32, mode: CellMode) -> (u32, CellMode) {
    (chip.next_unit(block) + skip, chip.block_mode(block).unwrap_or(mode))
}

/// The pages that a step programs unless it is refused, and whether they keep their data on every chip.
fn aimed_at(chip: &Chip, step: &Step) -> Option<(Vec<(u32, u32)>, bool)> {
    let Step::Program { block, skip, mode, cause, .. } = *step else { return None };
    let (unit, mode) = unit_and_mode(chip, block, skip, mode);
    let pages = chip.layout(mode).unit_pages(unit).iter().map(|&page| (block, page)).collect();
    Some((pages, cause == Cause::Metadata))
}

/// Does one step and says everything its caller can see of it.
fn apply(chip: &mut Chip, step: &Step, look: Look<'_>) -> String {
    match *step {
        Step::Program { block, skip, mode, tag, spare, cause } => {
            let (unit, mode) = unit_and_mode(chip, block, skip, mode);
            let (data, spare) = (pattern(tag, 4096), pattern(tag + 1, spare));
            format!("{:?}", chip.program(block, unit, mode, &data, &spare, cause))
        }
        Step::Erase { block } => format!("{:?}", chip.erase(block, Cause::Gc)),
        Step::Read { block, page } => format!("{:?}", look(chip, block, page)),
        Step::MarkBad { block } => format!("{:?}", chip.mark_bad(block)),
        Step::Corrupt { block, page, spare } => {
            let corruption = if spare { Corruption::FlipSpareBits(9) } else { Corruption::FlipBits(9) };
            format!("{:?}", chip.faults_mut().corrupt_page(block, page, corruption))
        }
        Step::Barrier => {
            let mut failures = Vec::new();
            format!("{:?} {failures:?}", chip.barrier(&mut failures))
        }
        Step::Idle { ns } => {
            chip.advance_to_ns(chip.now_ns() + ns);
            String::new()
        }
        Step::Cut { n } => {
            chip.faults_mut().cut_power_at(n);
            String::new()
        }
        Step::CutNow => format!("{:?}", chip.cut_power()),
        Step::PowerOn => {
            chip.power_on();
            String::new()
        }
        Step::FailProgram => {
            chip.faults_mut().fail_program_at(1);
            String::new()
        }
    }
}

/// What is known of each block besides what its pages hold.
fn state(chip: &Chip) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    (0..8)
        .map(|b| {
            (chip.erase_count(b), chip.next_unit(b), chip.block_mode(b), chip.is_bad(b), chip.wear(b), chip.cycles(b))
        })
        .collect()
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
        ram.faults_mut().set(faults.clone());
        image.faults_mut().set(faults.clone());
        for step in &steps {
            let (in_ram, in_image) = (apply(&mut ram, step, &page_contents), apply(&mut image, step, &page_contents));
            prop_assert_eq!(in_ram, in_image, "{:?}", step);
            prop_assert_eq!(ram.now_ns(), image.now_ns());
            prop_assert_eq!(ram.counters(), image.counters());
            prop_assert_eq!(ram.operations(), image.operations());
        }
        let mut copy = image.snapshot();
        for chip in [&mut ram, &mut image, &mut copy] {
            chip.faults_mut().cancel_cut();
            chip.power_on();
        }
        prop_assert_eq!(state(&ram), state(&image));
        drop(image);
        let mut image = Chip::open_image(&path, false).unwrap();
        prop_assert_eq!(state(&ram), state(&image));
        let expected = contents(&mut ram);
        prop_assert!(contents(&mut copy) == expected);
        prop_assert!(contents(&mut image) == expected);
    }

    #[test]
    fn a_chip_without_host_data_is_a_chip_with_it_in_all_else(
        steps in prop::collection::vec(step(), 1..120),
        seed in 0..1000u64,
        dies in prop_oneof![Just(1u16), Just(4u16)],
    ) {
        let mut profile = profile();
        profile.geometry.dies_per_chip = dies;
        profile.geometry.spare_ecc = false;
        (profile.errors.slc.fresh, profile.errors.native.fresh) = (1e-3, 1e-3);
        let faults = FaultConfig { bit_errors: BitErrors::Drawn, ..FaultConfig::power_cuts(seed) };
        let mut full = Chip::new(&profile, seed).unwrap();
        let mut bare = Chip::without_data(&profile, seed).unwrap();
        full.faults_mut().set(faults.clone());
        bare.faults_mut().set(faults);
        let mut kept = BTreeSet::new();
        for step in &steps {
            let (target, before) = (aimed_at(&full, step), full.operations());
            let look = |chip: &mut Chip, block, page| kept_contents(&kept, chip, block, page);
            let (with, without) = (apply(&mut full, step, &look), apply(&mut bare, step, &look));
            if let Some((pages, keeps)) = target && full.operations() > before {
                kept.retain(|page| !pages.contains(page));
                kept.extend(pages.into_iter().filter(|_| keeps));
            }
            prop_assert_eq!(with, without, "{:?}", step);
            prop_assert_eq!(full.now_ns(), bare.now_ns());
            prop_assert_eq!(full.counters(), bare.counters());
            prop_assert_eq!(full.operations(), bare.operations());
        }
        let mut copy = bare.snapshot();
        for chip in [&mut full, &mut bare, &mut copy] {
            chip.faults_mut().cancel_cut();
            chip.power_on();
        }
        prop_assert_eq!(state(&full), state(&bare));
        prop_assert_eq!(full.written_pages(), bare.written_pages());
        for (block, page) in (0..8).flat_map(|block| (0..128).map(move |page| (block, page))) {
            let found = page_contents(&mut bare, block, page);
            prop_assert!(page_contents(&mut copy, block, page) == found);
            let mut expected = page_contents(&mut full, block, page);
            if let (Ok((zeros, _)), Ok((data, _))) = (&found, &mut expected)
                && !kept.contains(&(block, page))
                && zeros.iter().all(|&byte| byte == 0)
            {
                data.fill(0);
            }
            prop_assert!(found == expected, "block {} page {}", block, page);
        }
    }
}
