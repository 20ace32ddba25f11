//! Faults: what power cuts tear, what failures leave, and how bit errors show.

use crate::common::{self, barrier, chip, contents, four_dies, pattern, program, program_tagged, read, read_spare};
use emulator::{BitErrors, Chip, Corruption, EmulatorError, FaultConfig, PairedLoss, Profile, TornKind};
use nand::CellMode::{Native, Slc};
use nand::{Cause, Failure, Nand, NandError};

fn torn(kind: TornKind, seed: u64) -> FaultConfig {
    FaultConfig { seed, torn: kind, ..FaultConfig::default() }
}

/// A chip whose program of block 0 unit 1 was torn.
fn torn_program(kind: TornKind, seed: u64) -> Chip {
    let mut chip = chip();
    chip.faults_mut().set(torn(kind, seed));
    program(&mut chip, 0, 0, Native).unwrap();
    barrier(&mut chip);
    chip.faults_mut().cut_power_at(0);
    assert_eq!(program(&mut chip, 0, 1, Native), Err(NandError::PowerOff));
    chip.power_on();
    assert_eq!(read(&mut chip, 0, 0).unwrap(), pattern(0, 4096), "a page of another word line is untouched");
    chip
}

/// A chip whose erase of block 0, half programmed, was torn.
fn torn_erase(kind: TornKind, seed: u64) -> Chip {
    let mut chip = chip();
    chip.faults_mut().set(torn(kind, seed));
    for unit in 0..64 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    barrier(&mut chip);
    chip.faults_mut().cut_power_at(0);
    assert_eq!(chip.erase(0, Cause::Gc), Err(NandError::PowerOff));
    chip.power_on();
    chip
}

fn uncorrectable<T>(result: &Result<T, NandError>) -> bool {
    matches!(result, Err(NandError::Uncorrectable { .. }))
}

#[test]
fn nothing_works_without_power() {
    let mut chip = chip();
    chip.faults_mut().cut_power_at(1);
    program(&mut chip, 0, 0, Native).unwrap();
    assert_eq!(chip.erase(1, Cause::Gc), Err(NandError::PowerOff));
    assert!(!chip.is_powered());
    assert_eq!(read(&mut chip, 0, 0).unwrap_err(), NandError::PowerOff);
    assert_eq!(program(&mut chip, 0, 1, Native), Err(NandError::PowerOff));
    assert_eq!(chip.barrier(&mut Vec::new()), Err(NandError::PowerOff));
    assert_eq!(chip.mark_bad(0), Err(NandError::PowerOff));
    chip.power_on();
    read(&mut chip, 0, 0).unwrap();
    assert_eq!((chip.operations(), chip.counters().power_cuts), (2, 1));
}

#[test]
fn a_cut_counts_reads_only_where_asked() {
    let mut chip = chip();
    chip.faults_mut().cut_power_at(0);
    read(&mut chip, 0, 0).unwrap();
    chip.faults_mut().set(FaultConfig { cut_counts_reads: true, ..FaultConfig::default() });
    assert_eq!(read(&mut chip, 0, 0).unwrap_err(), NandError::PowerOff);
    chip.power_on();
    chip.faults_mut().cut_power_at(0);
    chip.faults_mut().cancel_cut();
    read(&mut chip, 0, 0).unwrap();
}

#[test]
fn a_program_torn_as_old_may_be_done_again() {
    let mut chip = torn_program(TornKind::Old, 0);
    assert!(chip.is_erased(0, 1));
    program(&mut chip, 0, 1, Native).unwrap();
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(1, 4096));
}

#[test]
fn a_program_torn_as_full_is_all_there() {
    let mut chip = torn_program(TornKind::Full, 0);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(1, 4096));
}

#[test]
fn an_unstable_page_reads_well_exactly_once() {
    let mut chip = torn_program(TornKind::Unstable, 0);
    assert_eq!(read_spare(&mut chip, 0, 1).unwrap(), pattern(2, 64));
    assert!(uncorrectable(&read(&mut chip, 0, 1)));
    assert!(uncorrectable(&read(&mut chip, 0, 1)));
}

#[test]
fn a_page_torn_as_uncorrectable_cannot_be_programmed_again() {
    let mut chip = torn_program(TornKind::Uncorrectable, 0);
    assert!(uncorrectable(&read(&mut chip, 0, 1)));
    assert!(matches!(program(&mut chip, 0, 1, Native), Err(NandError::Misuse { .. })));
    program(&mut chip, 0, 2, Native).unwrap();
}

#[test]
fn a_weak_page_reads_as_erased_and_loses_what_is_programmed_there() {
    let mut chip = torn_program(TornKind::Weak, 0);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), vec![0xFF; 4096]);
    assert!(!chip.is_erased(0, 1));
    program(&mut chip, 0, 1, Native).unwrap();
    assert!(uncorrectable(&read(&mut chip, 0, 1)));
}

#[test]
fn garbage_is_mixed_bytes_for_some_seeds_and_uncorrectable_for_others() {
    let (mut mixed, mut lost, mut whole_spare) = (0, 0, 0);
    for seed in 0..40 {
        let mut chip = torn_program(TornKind::Garbage, seed);
        match read(&mut chip, 0, 1) {
            Ok(data) => {
                let new = pattern(1, 4096);
                assert_ne!(data, new);
                assert!(data.iter().zip(&new).all(|(got, new)| got & new == *new), "programming only clears bits");
                mixed += 1;
                whole_spare += u32::from(read_spare(&mut chip, 0, 1).unwrap() == pattern(2, 64));
            }
            error => {
                assert!(uncorrectable(&error));
                lost += 1;
            }
        }
    }
    assert!(mixed >= 10 && lost >= 5 && whole_spare >= 3, "{mixed} {lost} {whole_spare}");
}

#[test]
fn a_seeded_tear_shows_every_kind() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let mut chip = torn_program(TornKind::Seeded, seed);
        let first = read(&mut chip, 0, 1);
        let again = read(&mut chip, 0, 1);
        outcomes.insert(match (first, again) {
            (Ok(data), Err(_)) if data == pattern(1, 4096) => "unstable",
            (Err(_), _) => "uncorrectable",
            (Ok(data), _) if data == pattern(1, 4096) => "full",
            (Ok(data), _) if data == vec![0xFF; 4096] && chip.is_erased(0, 1) => "old",
            (Ok(data), _) if data == vec![0xFF; 4096] => "weak",
            _ => "garbage",
        });
    }
    assert_eq!(outcomes.len(), 6, "{outcomes:?}");
}

#[test]
fn a_torn_msb_page_takes_its_lsb_page_with_it() {
    let destroyed = |loss: PairedLoss, seed: u64| {
        let mut chip = chip();
        chip.faults_mut().set(FaultConfig { paired_loss: loss, ..torn(TornKind::Uncorrectable, seed) });
        for unit in 0..8 {
            program(&mut chip, 0, unit, Native).unwrap();
        }
        barrier(&mut chip);
        chip.faults_mut().cut_power_at(0);
        program(&mut chip, 0, 8, Native).unwrap_err();
        chip.power_on();
        (0..8u32).filter(|&page| read(&mut chip, 0, page) != Ok(pattern(page, 4096))).collect::<Vec<_>>()
    };
    assert_eq!(destroyed(PairedLoss::Off, 0), [0_u32; 0]);
    assert_eq!(destroyed(PairedLoss::Always, 0), [2]);
    let lost = (0..40).filter(|&seed| destroyed(PairedLoss::Seeded, seed) == [2]).count();
    assert!((8..32).contains(&lost), "{lost} of 40");
}

#[test]
fn slc_mode_has_no_pairs_to_lose() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { paired_loss: PairedLoss::Always, ..torn(TornKind::Uncorrectable, 0) });
    for unit in 0..4 {
        program(&mut chip, 0, unit, Slc).unwrap();
    }
    chip.faults_mut().cut_power_at(0);
    program(&mut chip, 0, 4, Slc).unwrap_err();
    chip.power_on();
    assert!((0..4).all(|page| read(&mut chip, 0, page) == Ok(pattern(page, 4096))));
}

#[test]
fn an_erase_torn_as_old_or_full_is_not_begun_or_done() {
    let mut chip = torn_erase(TornKind::Old, 0);
    assert_eq!(read(&mut chip, 0, 63).unwrap(), pattern(63, 4096));
    assert_eq!((chip.erase_count(0), chip.next_unit(0)), (0, 64));
    let mut chip = torn_erase(TornKind::Full, 0);
    assert!((0..128).all(|page| chip.is_erased(0, page)));
    program(&mut chip, 0, 0, Slc).unwrap();
}

#[test]
fn an_erase_torn_as_uncorrectable_or_unstable_needs_another_erase() {
    let mut chip = torn_erase(TornKind::Uncorrectable, 0);
    assert!(uncorrectable(&read(&mut chip, 0, 5)));
    assert!(matches!(program(&mut chip, 0, 0, Native), Err(NandError::Misuse { .. })));
    chip.erase(0, Cause::Gc).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    assert_eq!(chip.erase_count(0), 2);
    let mut chip = torn_erase(TornKind::Unstable, 0);
    assert_eq!(read(&mut chip, 0, 5).unwrap(), pattern(5, 4096));
    assert!(uncorrectable(&read(&mut chip, 0, 5)));
    assert_eq!(chip.erase_count(0), 1);
}

#[test]
fn a_half_erased_block_that_looks_blank_betrays_whoever_programs_it() {
    let mut chip = torn_erase(TornKind::Weak, 0);
    assert!((0..128).all(|page| read(&mut chip, 0, page) == Ok(vec![0xFF; 4096])));
    for unit in 0..128 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    assert!((0..128).all(|page| uncorrectable(&read(&mut chip, 0, page))));
    chip.erase(0, Cause::Gc).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    read(&mut chip, 0, 0).unwrap();
}

#[test]
fn a_half_erased_block_is_garbage() {
    let mut chip = torn_erase(TornKind::Garbage, 3);
    let (mut mixed, mut lost) = (0, 0);
    for page in 0..64 {
        match read(&mut chip, 0, page) {
            Ok(data) => {
                assert_ne!(data, pattern(page, 4096));
                mixed += 1;
            }
            Err(_) => lost += 1,
        }
    }
    assert!(mixed > 20 && lost > 5, "{mixed} {lost}");
    assert_eq!(read(&mut chip, 0, 100).unwrap(), vec![0xFF; 4096]);
    assert!(!chip.is_erased(0, 100), "pages never programmed are half erased all the same");
}

#[test]
fn a_cut_loses_a_subset_of_what_other_dies_have_in_flight() {
    let mut subsets = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let mut chip = four_dies();
        program(&mut chip, 0, 0, Native).unwrap();
        barrier(&mut chip);
        chip.faults_mut().set(torn(TornKind::Uncorrectable, seed));
        for block in 1..4 {
            program(&mut chip, block, 0, Native).unwrap();
        }
        chip.faults_mut().cut_power_at(0);
        program(&mut chip, 0, 1, Native).unwrap_err();
        chip.power_on();
        read(&mut chip, 0, 0).unwrap();
        assert!(uncorrectable(&read(&mut chip, 0, 1)));
        subsets.insert((1..4).map(|block| read(&mut chip, block, 0).is_ok()).collect::<Vec<_>>());
    }
    assert_eq!(subsets.len(), 8, "every subset of three");
}

#[test]
fn what_a_barrier_waited_for_survives_a_cut() {
    for seed in 0..20 {
        let mut chip = four_dies();
        chip.faults_mut().set(torn(TornKind::Uncorrectable, seed));
        for block in 0..4 {
            program(&mut chip, block, 0, Native).unwrap();
        }
        barrier(&mut chip);
        chip.cut_power().unwrap();
        chip.power_on();
        assert!((0..4).all(|block| read(&mut chip, block, 0).is_ok()));
    }
}

#[test]
fn an_erase_in_flight_on_another_die_may_be_undone() {
    let mut kept = 0;
    for seed in 0..20 {
        let mut chip = four_dies();
        program(&mut chip, 1, 0, Native).unwrap();
        barrier(&mut chip);
        chip.faults_mut().set(torn(TornKind::Old, seed));
        chip.erase(1, Cause::Gc).unwrap();
        chip.cut_power().unwrap();
        chip.power_on();
        kept += u32::from(read(&mut chip, 1, 0).unwrap() == pattern(1000, 4096));
    }
    assert!((4..17).contains(&kept), "{kept} of 20");
}

#[test]
fn a_failed_program_is_known_at_the_barrier_and_the_block_stays_readable() {
    let mut chip = chip();
    program(&mut chip, 2, 0, Native).unwrap();
    chip.faults_mut().fail_program_at(1);
    program(&mut chip, 3, 0, Native).unwrap();
    program(&mut chip, 2, 1, Native).unwrap();
    program(&mut chip, 2, 2, Native).unwrap();
    assert_eq!(barrier(&mut chip), [Failure { block: 2, unit: Some(1) }, Failure { block: 2, unit: Some(2) }]);
    assert_eq!(barrier(&mut chip), []);
    assert_eq!(read(&mut chip, 2, 0).unwrap(), pattern(2000, 4096));
    assert!(uncorrectable(&read(&mut chip, 2, 1)));
    chip.erase(2, Cause::Gc).unwrap();
    assert_eq!(barrier(&mut chip), [Failure { block: 2, unit: None }]);
    assert_eq!(read(&mut chip, 2, 0).unwrap(), pattern(2000, 4096), "a failed erase changes nothing");
    assert_eq!((chip.counters().program_failures, chip.counters().erase_failures), (2, 1));
}

#[test]
fn a_chip_that_refuses_writes_leaves_every_block_as_it_is() {
    let mut chip = chip();
    program(&mut chip, 2, 0, Native).unwrap();
    chip.faults_mut().refuse_writes(2);
    program(&mut chip, 2, 1, Native).unwrap();
    chip.erase(2, Cause::Gc).unwrap();
    assert_eq!(barrier(&mut chip), [Failure { block: 2, unit: Some(1) }, Failure { block: 2, unit: None }]);
    assert!(chip.is_erased(2, 1) && !chip.has_failed(2));
    assert_eq!(read(&mut chip, 2, 0).unwrap(), pattern(2000, 4096));
    // Two were refused; until it is told otherwise, the next are not.
    program(&mut chip, 2, 1, Native).unwrap();
    chip.faults_mut().refuse_writes(u64::MAX);
    for _ in 0..100 {
        chip.erase(2, Cause::Gc).unwrap();
    }
    chip.faults_mut().refuse_writes(0);
    chip.erase(2, Cause::Gc).unwrap();
    assert_eq!((barrier(&mut chip).len(), chip.refused_writes(), chip.cycles(2)), (100, 102, 1));
}

#[test]
fn a_failure_may_be_reported_at_once() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { fail_at_once: true, ..FaultConfig::default() });
    chip.faults_mut().fail_erase_at(0);
    assert_eq!(chip.erase(1, Cause::Gc), Err(NandError::EraseFailed { block: 1 }));
    assert_eq!(program(&mut chip, 1, 0, Slc), Err(NandError::ProgramFailed { block: 1, unit: 0 }));
    assert_eq!(barrier(&mut chip), []);
    program(&mut chip, 2, 0, Slc).unwrap();
}

#[test]
fn blocks_fail_only_past_their_endurance() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { wear_failures: true, ..FaultConfig::default() });
    chip.faults_mut().age_block(0, Native, 10_000).unwrap();
    chip.faults_mut().age_block(1, Slc, 60_000).unwrap();
    assert_eq!((chip.wear(0), chip.wear(1)), (1.0, 6.0));
    let failures = |chip: &mut Chip, block| {
        for _ in 0..20 {
            chip.erase(block, Cause::Gc).unwrap();
        }
        barrier(chip).len()
    };
    assert_eq!(failures(&mut chip, 0), 0);
    assert!(failures(&mut chip, 1) > 0);
    assert_eq!(failures(&mut chip, 2), 0);
}

#[test]
fn bit_errors_grow_with_age_until_the_ecc_gives_up() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { bit_errors: BitErrors::Drawn, ..FaultConfig::default() });
    chip.faults_mut().age_block(0, Native, 20_000).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    program(&mut chip, 1, 0, Slc).unwrap();
    let sense = |chip: &mut Chip, block| {
        chip.read(block, 0, 0, &mut [0; 4096], &mut [], Cause::Host).map(|info| info.corrected_bits)
    };
    let mut data = vec![0; 4096];
    let info = chip.read(0, 0, 0, &mut data, &mut [], Cause::Host).unwrap();
    assert!((1..=24).contains(&info.corrected_bits) && info.correctable_bits == 24, "{info:?}");
    assert_eq!(data, pattern(0, 4096), "what is corrected is right");
    assert!(chip.counters().corrected_bits > 0);
    let fresh_rate = chip.raw_bit_error_rate(0);
    chip.advance_to_ns(20 * 365 * 86_400_000_000_000);
    assert!(chip.raw_bit_error_rate(0) > 10.0 * fresh_rate);
    assert!(uncorrectable(&sense(&mut chip, 0)));
    assert_eq!(chip.counters().uncorrectable_reads, 1);
    assert!(sense(&mut chip, 1).unwrap() <= 6, "SLC mode keeps its data");
}

#[test]
fn bit_errors_stay_within_what_the_ecc_corrects_where_that_is_asked_for() {
    let mut profile = common::profile();
    profile.errors.native.fresh = 2e-3;
    let mut chip = Chip::new(&profile, 5).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    let mut sense = |bit_errors| {
        chip.faults_mut().set(FaultConfig { bit_errors, ..FaultConfig::default() });
        let reads = (0..200).map(|_| chip.read(0, 0, 0, &mut [0; 4096], &mut [], Cause::Host));
        reads.filter_map(|read| Some(read.ok()?.corrected_bits)).collect::<Vec<_>>()
    };
    assert_eq!(sense(BitErrors::Off), [0; 200]);
    let drawn = sense(BitErrors::Drawn);
    assert!((1..200).contains(&drawn.len()), "{} of 200 reads were corrected", drawn.len());
    let kept = sense(BitErrors::Correctable);
    assert!(kept.len() == 200 && kept.iter().all(|bits| (1..=24).contains(bits)), "{kept:?}");
    assert!(kept.iter().filter(|&&bits| bits == 24).count() > 20, "what is drawn beyond that counts as much: {kept:?}");
}

#[test]
fn spare_bytes_that_the_ecc_leaves_out_come_back_wrong() {
    let mut profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(1 << 20).unwrap();
    profile.errors.native.fresh = 1e-3;
    profile.ecc.correctable_bits = 100;
    let mut chip = Chip::new(&profile, 5).unwrap();
    chip.faults_mut().set(FaultConfig { bit_errors: BitErrors::Drawn, ..FaultConfig::default() });
    program_tagged(&mut chip, 0, 0, Native, 1).unwrap();
    let wrong: u32 = (0..100)
        .map(|_| {
            let spare = read_spare(&mut chip, 0, 0).unwrap();
            spare.iter().zip(pattern(2, 16)).map(|(got, want)| (got ^ want).count_ones()).sum::<u32>()
        })
        .sum();
    assert!((4..40).contains(&wrong), "{wrong} wrong bits where 12.8 are expected");
    assert_eq!(read(&mut chip, 0, 0).unwrap(), pattern(1, 512));
}

#[test]
fn a_page_is_corrupted_silently_or_not() {
    let mut chip = chip();
    for unit in 0..4 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    chip.faults_mut().corrupt_page(0, 0, Corruption::FlipBits(3)).unwrap();
    let wrong: u32 =
        read(&mut chip, 0, 0).unwrap().iter().zip(pattern(0, 4096)).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(wrong, 3);
    chip.faults_mut().corrupt_page(0, 1, Corruption::FlipSpareBits(1)).unwrap();
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(1, 4096));
    assert_ne!(read_spare(&mut chip, 0, 1).unwrap(), pattern(2, 64));
    chip.faults_mut().corrupt_page(0, 2, Corruption::Uncorrectable).unwrap();
    assert!(uncorrectable(&read(&mut chip, 0, 2)));
    chip.faults_mut().corrupt_page(0, 3, Corruption::Unstable).unwrap();
    assert!(read(&mut chip, 0, 3).is_ok() && read(&mut chip, 0, 3).is_err());
    chip.faults_mut().corrupt_page(0, 9, Corruption::FlipBits(1)).unwrap();
    assert!(!chip.is_erased(0, 9));
    assert!(chip.faults_mut().corrupt_page(0, 128, Corruption::FlipBits(1)).is_err());
}

#[test]
fn factory_bad_blocks_are_seeded_and_spare_the_first_two() {
    let profile = Profile::default();
    let mut chip = Chip::new(&profile, 7).unwrap();
    let bad = chip.faults_mut().scatter_bad_blocks(0.02).unwrap();
    assert!((5..50).contains(&bad.len()) && bad.iter().all(|&block| chip.is_bad(block)));
    assert_eq!(Chip::new(&profile, 7).unwrap().faults_mut().scatter_bad_blocks(0.02).unwrap(), bad);
    assert_eq!(chip.faults_mut().scatter_bad_blocks(1.0).unwrap().len(), 1022);
    assert!(!chip.is_bad(0) && !chip.is_bad(1));
    assert!(matches!(chip.faults_mut().set_factory_bad(&[1]), Err(EmulatorError::FactoryBad { block: 1, .. })));
}

#[test]
fn one_seed_and_one_history_give_the_same_bytes() {
    let run = |chip_seed, fault_seed| {
        let mut chip = Chip::new(&common::profile(), chip_seed).unwrap();
        chip.faults_mut().set(FaultConfig { bit_errors: BitErrors::Drawn, ..FaultConfig::power_cuts(fault_seed) });
        for cut in 0..12 {
            chip.faults_mut().cut_power_at(cut);
            for step in 0..=cut as u32 {
                let (block, unit) = (step % 3, 10 * cut as u32 + step);
                let _ =
                    if step % 5 == 4 { chip.erase(block, Cause::Gc) } else { program(&mut chip, block, unit, Native) };
            }
            chip.power_on();
        }
        (contents(&mut chip), chip.now_ns(), *chip.counters())
    };
    assert!(run(1, 2) == run(1, 2));
    assert!(run(1, 2).0 != run(1, 3).0);
    assert!(run(1, 2).0 != run(2, 2).0);
}

#[test]
fn a_failing_medium_leaves_the_chip_as_it_was() {
    let mut chip = chip();
    program(&mut chip, 0, 0, Native).unwrap();
    let before = contents(&mut chip.snapshot());
    chip.faults_mut().set(FaultConfig { medium_errno: Some(28), ..FaultConfig::default() });
    assert!(matches!(program(&mut chip, 0, 1, Native), Err(NandError::Medium { errno: 28, .. })));
    assert!(matches!(chip.erase(0, Cause::Gc), Err(NandError::Medium { errno: 28, .. })));
    assert!(matches!(chip.mark_bad(0), Err(NandError::Medium { errno: 28, .. })));
    chip.faults_mut().set(FaultConfig::default());
    assert!(contents(&mut chip.snapshot()) == before && !chip.is_bad(0) && chip.erase_count(0) == 0);
    program(&mut chip, 0, 1, Native).unwrap();
}
