//! The contract's rules: what a chip refuses, what it costs, and what it counts.

use crate::common::{self, barrier, chip, four_dies, pattern, profile, program, read, read_spare};
use emulator::{Chip, Profile, TraceOp};
use nand::CellMode::{Native, Slc};
use nand::{Cause, Nand, NandError};

#[track_caller]
fn misuse(result: Result<(), NandError>, word: &str) {
    match result {
        Err(NandError::Misuse { rule, .. }) => assert!(rule.contains(word), "{rule}"),
        other => panic!("expected a misuse, got {other:?}"),
    }
}

#[test]
fn an_erased_page_reads_as_ones() {
    let mut chip = chip();
    assert_eq!(read(&mut chip, 3, 77).unwrap(), vec![0xFF; 4096]);
    assert_eq!(read_spare(&mut chip, 3, 77).unwrap(), vec![0xFF; 64]);
}

#[test]
fn a_programmed_page_reads_back_from_any_column_with_its_spare_padded() {
    let mut chip = chip();
    let data = pattern(9, 4096);
    chip.program(2, 0, Native, &data, &[1, 2, 3], Cause::Host).unwrap();
    let (mut part, mut spare) = ([0; 100], [0; 6]);
    chip.read(2, 0, 1000, &mut part, &mut spare, Cause::Host).unwrap();
    assert_eq!(part, data[1000..1100]);
    assert_eq!(spare, [1, 2, 3, 0xFF, 0xFF, 0xFF]);
}

#[test]
fn units_may_be_skipped_but_never_gone_back_to() {
    let mut chip = chip();
    program(&mut chip, 0, 0, Native).unwrap();
    program(&mut chip, 0, 5, Native).unwrap();
    misuse(program(&mut chip, 0, 5, Native), "ascending");
    misuse(program(&mut chip, 0, 3, Native), "ascending");
    program(&mut chip, 0, 6, Native).unwrap();
    assert_eq!(chip.next_unit(0), 7);
}

#[test]
fn a_block_keeps_one_mode_from_erase_to_erase() {
    let mut chip = chip();
    program(&mut chip, 1, 0, Slc).unwrap();
    misuse(program(&mut chip, 1, 1, Native), "mode");
    assert_eq!(chip.block_mode(1), Some(Slc));
    chip.erase(1, Cause::Gc).unwrap();
    assert_eq!(chip.block_mode(1), None);
    program(&mut chip, 1, 0, Native).unwrap();
    assert_eq!(chip.erase_count(1), 1);
}

#[test]
fn a_bad_block_takes_neither_programs_nor_erases_but_is_read() {
    let mut chip = chip();
    program(&mut chip, 4, 0, Slc).unwrap();
    chip.mark_bad(4).unwrap();
    assert!(chip.is_bad(4) && !chip.is_bad(5) && chip.is_bad(99));
    misuse(program(&mut chip, 4, 1, Slc), "bad");
    misuse(chip.erase(4, Cause::Host), "bad");
    read(&mut chip, 4, 0).unwrap();
}

#[test]
fn what_does_not_fit_the_chip_is_out_of_range() {
    let mut chip = chip();
    let out = |result: Result<(), NandError>| matches!(result, Err(NandError::OutOfRange { .. }));
    assert!(out(program(&mut chip, 8, 0, Native)));
    assert!(out(chip.erase(8, Cause::Host)));
    assert!(out(chip.mark_bad(u32::MAX)));
    assert!(out(chip.program(0, 64, Slc, &[0; 4096], &[], Cause::Host)), "SLC mode has 64 units");
    assert!(out(chip.program(0, 0, Slc, &[0; 4095], &[], Cause::Host)));
    assert!(out(chip.program(0, 0, Slc, &[0; 4096], &[0; 65], Cause::Host)));
    assert!(out(chip.read(0, 128, 0, &mut [0], &mut [], Cause::Host).map(drop)));
    assert!(out(chip.read(0, 0, 4096, &mut [0], &mut [], Cause::Host).map(drop)));
    assert!(out(chip.read(0, 0, u32::MAX, &mut [0; 2], &mut [], Cause::Host).map(drop)));
    assert_eq!(chip.operations(), 0);
}

#[test]
fn slc_mode_writes_the_lsb_pages_only() {
    let mut chip = chip();
    for unit in 0..4 {
        program(&mut chip, 0, unit, Slc).unwrap();
    }
    let programmed: Vec<u32> = (0..12).filter(|&page| !chip.is_erased(0, page)).collect();
    assert_eq!(programmed, [0, 1, 2, 3]);
    assert_eq!(chip.layout(Slc).page(4), Some(6));
}

#[test]
fn flash_time_is_priced_by_mode_and_page_type() {
    let mut chip = chip();
    let price = |chip: &mut Chip, op: &mut dyn FnMut(&mut Chip)| {
        chip.reset_counters();
        let before = chip.now_ns();
        op(chip);
        barrier(chip);
        assert_eq!(chip.counters().flash_ns, chip.now_ns() - before);
        chip.counters().flash_ns
    };
    assert_eq!(price(&mut chip, &mut |c| program(c, 0, 0, Native).unwrap()), 431_000);
    assert_eq!(price(&mut chip, &mut |c| program(c, 0, 4, Native).unwrap()), 1_557_000);
    assert_eq!(price(&mut chip, &mut |c| program(c, 1, 63, Slc).unwrap()), 431_000);
    assert_eq!(price(&mut chip, &mut |c| drop(read(c, 0, 4))), 403_000);
    assert_eq!(price(&mut chip, &mut |c| drop(read_spare(c, 1, 0))), 409_000);
    assert_eq!(price(&mut chip, &mut |c| c.erase(0, Cause::Gc).unwrap()), 872_000);
}

#[test]
fn a_native_block_costs_994_us_a_page_on_average() {
    let mut chip = chip();
    for unit in 0..128 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    let counters = chip.counters();
    assert_eq!(counters.programs.native_by_level, [64, 64, 0, 0]);
    assert_eq!(counters.flash_ns, 128 * 994_000);
    assert_eq!(counters.programmed_bytes, 512 << 10);
}

#[test]
fn operations_are_counted_by_mode_and_cause() {
    let mut chip = chip();
    chip.program(0, 0, Slc, &[0; 4096], &[], Cause::Metadata).unwrap();
    chip.program(1, 0, Native, &[0; 4096], &[], Cause::Migration).unwrap();
    chip.read(0, 0, 0, &mut [0; 10], &mut [], Cause::Gc).unwrap();
    chip.read(0, 0, 0, &mut [], &mut [0; 10], Cause::Gc).unwrap();
    chip.erase(0, Cause::WearLevel).unwrap();
    let counters = chip.counters();
    assert_eq!((counters.programs.slc.metadata, counters.programs.native.migration), (1, 1));
    assert_eq!((counters.reads.mode(Slc).get(Cause::Gc), counters.spare_only_reads), (2, 1));
    assert_eq!((counters.erases.slc.wear_level, counters.erases.total()), (1, 1));
    assert_eq!(chip.operations(), 3);
    let json = serde_json::to_value(counters).unwrap();
    assert_eq!(json["programs"]["slc"]["metadata"], 1);
}

#[test]
fn a_posted_program_costs_its_caller_nothing_until_the_die_is_wanted() {
    let mut chip = chip();
    program(&mut chip, 0, 0, Native).unwrap();
    assert_eq!(chip.now_ns(), 0);
    program(&mut chip, 0, 1, Native).unwrap();
    assert_eq!(chip.now_ns(), 431_000);
    read(&mut chip, 0, 0).unwrap();
    assert_eq!(chip.now_ns(), 2 * 431_000 + 403_000);
    assert_eq!(chip.take_worst_op_ns(), 431_000 + 403_000);
    assert_eq!(chip.take_worst_op_ns(), 0);
    chip.advance_to_ns(1);
    assert_eq!(chip.now_ns(), 2 * 431_000 + 403_000);
    chip.advance_to_ns(9_000_000);
    barrier(&mut chip);
    assert_eq!(chip.now_ns(), 9_000_000);
}

#[test]
fn dies_work_at_the_same_time() {
    let mut chip = four_dies();
    for block in 0..4 {
        program(&mut chip, block, 0, Native).unwrap();
    }
    barrier(&mut chip);
    assert_eq!(chip.now_ns(), 431_000);
    assert_eq!(chip.counters().flash_ns, 4 * 431_000);
}

#[test]
fn a_channel_carries_one_transfer_at_a_time() {
    let profile = Profile::builtin("codesign-mlc8").unwrap().with_capacity(16 << 20).unwrap();
    let mut chip = Chip::new(&profile, 0).unwrap();
    let mut page = vec![0; 4096];
    chip.read(0, 0, 0, &mut page, &mut [], Cause::Host).unwrap();
    assert_eq!(chip.now_ns(), 60_000 + 4096 * 25);
    for block in [8, 9] {
        chip.program(block, 0, Native, &page, &[], Cause::Host).unwrap();
    }
    barrier(&mut chip);
    assert_eq!(chip.now_ns(), 60_000 + 2 * 4096 * 25 + 800_000, "two channels, two transfers at once");
}

#[test]
fn a_trace_is_bounded_and_says_what_was_done() {
    let mut chip = chip();
    chip.start_trace(2);
    program(&mut chip, 3, 7, Slc).unwrap();
    chip.erase(3, Cause::Gc).unwrap();
    read(&mut chip, 3, 0).unwrap();
    let trace = chip.take_trace();
    assert_eq!((trace.entries.len(), trace.dropped), (2, 1));
    let (first, second) = (trace.entries[0], trace.entries[1]);
    assert_eq!((first.op, first.block, first.index, first.mode), (TraceOp::Program, 3, 7, Slc));
    assert_eq!((second.op, second.time_ns, second.cause), (TraceOp::Erase, 431_000, Cause::Gc));
    assert!(chip.take_trace().entries.is_empty());
}

#[test]
fn a_word_line_of_tlc_is_programmed_at_once() {
    let profile = Profile::builtin("tlc-3d").unwrap().with_capacity(4 * (12 << 20)).unwrap();
    let mut chip = Chip::new(&profile, 0).unwrap();
    program(&mut chip, 0, 1, Native).unwrap();
    barrier(&mut chip);
    let data = pattern(1, 3 * 16384);
    assert_eq!(read(&mut chip, 0, 4).unwrap(), data[16384..2 * 16384]);
    assert!(chip.is_erased(0, 2) && chip.is_erased(0, 6));
    assert_eq!(chip.counters().programs.total(), 1);
    assert_eq!(chip.counters().programs.flash_ns, 700_000 + 3 * (16384 + 128) * 1250 / 1000);
    program(&mut chip, 1, 255, Slc).unwrap();
    assert!(!chip.is_erased(1, 765) && chip.is_erased(1, 766));
}

#[test]
fn a_snapshot_and_its_chip_change_apart() {
    let mut chip = chip();
    program(&mut chip, 0, 0, Native).unwrap();
    let mut copy = chip.snapshot();
    program(&mut chip, 0, 1, Native).unwrap();
    chip.erase(1, Cause::Host).unwrap();
    program(&mut copy, 0, 1, Native).unwrap();
    copy.erase(0, Cause::Host).unwrap();
    assert!(read(&mut copy, 0, 0).unwrap().iter().all(|&byte| byte == 0xFF));
    assert_eq!(read(&mut chip, 0, 0).unwrap(), pattern(0, 4096));
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(1, 4096));
    assert_eq!((chip.erase_count(0), chip.erase_count(1)), (0, 1));
    assert_eq!((copy.erase_count(0), copy.erase_count(1)), (1, 0));
}

#[test]
fn recycled_buffers_never_change_a_snapshot() {
    let mut chip = chip();
    for unit in 0..8 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    let mut copy = chip.clone();
    for round in 0..3 {
        chip.erase(0, Cause::Gc).unwrap();
        for unit in 0..8 {
            common::program_tagged(&mut chip, 0, unit, Native, 500 + round).unwrap();
        }
    }
    for page in 0..8 {
        assert_eq!(read(&mut copy, 0, page).unwrap(), pattern(page, 4096));
    }
}

#[test]
fn a_chip_may_be_sent_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<Chip>();
    assert_eq!(profile().capacity_bytes(), 4 << 20);
}
