//! Where something is written: as hot as it is, and where hardly a block is free.

use alloc::vec::Vec;

use emulator::Chip;
use nand::{Cause, CellMode};

use super::{file, flash, formatted, formatted_of, mounted, slots_of};
use crate::flash::Purpose;
use crate::flash::head::HeadId;
use crate::policy::budget::Call;
use crate::store::place;
use crate::{Allocate, Fs, Ino, Policy};

/// Collection after a recovery, which had met a failing block, took the last free block for a few copies though the
/// other head had room for them. The next recovery had no block for the index.
#[test]
fn copies_leave_the_blocks_that_a_recovery_needs_while_a_head_has_room() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 4096], 1).and_then(|_| fs.sync()).unwrap();
    let store = fs.store_mut();
    let copy = place::of_copy(store.records(), CellMode::Native, 4096);
    let mut places = Vec::new();
    for block in (0..64).rev() {
        let records = store.records_mut();
        if records.flash().free().holds(block) {
            places.push((
                place::place(records, &copy, place::SlotContent::Copies).at.head,
                records.flash().free_blocks() > records.space().recovery_blocks(),
            ));
            records.log.flash_mut().slots_mut().retire(block).unwrap();
        }
    }
    assert!(places.contains(&(HeadId::Native, true)) && places.contains(&(HeadId::Slc, false)), "{places:?}");
    assert!(places.iter().all(|&(head, spare)| (head == HeadId::Native) == spare), "{places:?}");
}

/// The regions and hotness of the blocks that the chunks of a file stand in.
fn homes(fs: &mut Fs<Chip>, ino: Ino) -> Vec<&'static str> {
    let slots = slots_of(fs, ino);
    let records = fs.store().records();
    let block = |slot| records.flash().blocks().get(records.flash().shape().block_of(slot));
    let home = |slot| match block(slot).entry {
        entry if entry.hot => "slc-hot",
        entry if entry.native => "native",
        _ => "slc",
    };
    slots.into_iter().map(home).collect()
}

#[test]
fn what_is_overwritten_again_and_again_stands_in_hot_blocks_and_is_left_there_by_migration() {
    // A window that is as small as the volume, and longer than the test.
    let allocate = Allocate { window_pages: 100, ..Allocate::PAPER };
    let mut fs = mounted(formatted(), Policy::LA.with_times(0, 0).with_allocation(allocate));
    let (hot, cold) = (file(&mut fs, b"hot"), file(&mut fs, b"cold"));
    for round in 0..4 {
        fs.request(round);
        fs.write(hot, 0, &[round as u8; 8 * 4096], 1).unwrap();
        fs.write(cold, round as u64 * 5 * 4096, &[7; 5 * 4096], 1).unwrap();
    }
    fs.sync().unwrap();
    assert_eq!(homes(&mut fs, hot), ["slc-hot"; 8]);
    assert_eq!(homes(&mut fs, cold), ["slc"; 20]);
    // Another block than the heads stand in is what may be emptied.
    fs.write(cold, 20 * 4096, &[7; 40 * 4096], 1).and_then(|_| fs.write(hot, 0, &[9; 8 * 4096], 1)).unwrap();
    fs.sync().unwrap();
    let mut now_ns = 5;
    while let Some(next_ns) = fs.background(now_ns, 1).unwrap() {
        now_ns = next_ns.max(now_ns + 1);
        if now_ns > 1_000_000_000 {
            break;
        }
    }
    assert_eq!(homes(&mut fs, hot), ["slc-hot"; 8]);
    assert!(homes(&mut fs, cold).contains(&"native"));
    let mut found = [0; 8 * 4096];
    fs.read(hot, 0, &mut found).unwrap();
    assert_eq!(found, [9; 8 * 4096]);
}

/// Where all that is written is hot, a head of its own for it kept a block more open than the SLC head alone would have.
#[test]
fn hot_data_shares_the_slc_head_while_nothing_else_goes_there() {
    let allocate = Allocate { window_pages: 4, ..Allocate::PAPER };
    let mut fs = mounted(formatted(), Policy::LA.with_allocation(allocate));
    let hot = file(&mut fs, b"hot");
    for round in 0..40 {
        fs.write(hot, 0, &[round; 4096], 1).and_then(|_| fs.sync()).unwrap();
    }
    assert_eq!(homes(&mut fs, hot), ["slc"]);
    fs.store_mut().checkpoint_now().unwrap();
    assert!(fs.blocks().all(|block| block.head != Some("slc-hot")), "the full block of hot data is left");
}

/// The heads that stand in a block.
fn heads(fs: &Fs<Chip>) -> Vec<HeadId> {
    HeadId::ALL.into_iter().filter(|&id| flash(fs).slots().head(id).block().is_some()).collect()
}

/// Overwrites a file again and again, with a sync after each, and lets idle time pass.
fn overwrite(fs: &mut Fs<Chip>, ino: Ino) {
    for round in 0..60 {
        fs.write(ino, 0, &[round; 4 * 4096], 1).and_then(|_| fs.sync()).unwrap();
        fs.background(i64::from(round) << 32, 1).unwrap();
    }
}

#[test]
fn a_chip_with_one_bit_a_cell_has_one_log_head() {
    for policy in Policy::PRESETS {
        let mut fs = mounted(formatted_of("flexfs-slc"), policy);
        let ino = file(&mut fs, b"file");
        overwrite(&mut fs, ino);
        assert_eq!(heads(&fs), [HeadId::Native, HeadId::Meta], "{policy}");
        let info = fs.info().unwrap();
        assert_eq!(
            (info.blocks.slc, info.slc_share, info.admitted, info.migrated_blocks),
            (0, None, None, 0),
            "{policy}"
        );
        // Recovery, too, needs no other.
        fs.write(ino, 0, &[99; 4096], 1).and_then(|_| fs.sync()).unwrap();
        let mut fs = mounted(fs.into_chip(), policy);
        assert_eq!(heads(&fs), [HeadId::Native, HeadId::Meta], "{policy}");
        let mut found = [0; 8192];
        fs.read(ino, 0, &mut found).unwrap();
        assert!(found[..4096] == [99; 4096] && found[4096..] == [59; 4096], "{policy}");
    }
}

/// Nothing empties an open block: one that another head had left would have been lost to the volume.
#[test]
fn one_bit_a_cell_fills_blocks_that_other_heads_left() {
    for (left, cut) in [(HeadId::Slc, false), (HeadId::SlcHot, false), (HeadId::Slc, true)] {
        let mut fs = mounted(formatted_of("flexfs-slc"), Policy::DEFAULT);
        let ino = file(&mut fs, b"file");
        overwrite(&mut fs, ino);
        fs.store_mut().begin(Call::CHANGE).unwrap();
        fs.store_mut().records_mut().log.flash_mut().open_fresh(left.into(), Purpose::of(Cause::Host)).unwrap();
        // It is filled in this mount already, and holds something live.
        fs.write(ino, 0, &[70; 4096], 1).and_then(|_| fs.sync()).unwrap();
        let chip = if cut {
            fs.into_chip()
        } else {
            let (chip, done) = fs.unmount(1);
            done.unwrap();
            chip
        };
        let mut fs = mounted(chip, Policy::DEFAULT);
        assert!(heads(&fs).contains(&left), "{left:?}, cut: {cut}");
        overwrite(&mut fs, ino);
        assert_eq!(heads(&fs), [HeadId::Native, HeadId::Meta], "{left:?}");
        let mut found = [0; 4 * 4096];
        fs.read(ino, 0, &mut found).unwrap();
        assert_eq!(found, [59; 4 * 4096]);
        assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
    }
}
