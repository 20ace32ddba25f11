//! Where something is written, where hardly a block is free.

use alloc::vec::Vec;

use nand::CellMode;

use super::{file, formatted, mounted};
use crate::Policy;
use crate::flash::head::HeadId;
use crate::store::{budget, place};

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
            places
                .push((place::head(records, &copy), records.flash().free_blocks() > budget::recovery_blocks(records)));
            records.flash_mut().slots_mut().retire(block).unwrap();
        }
    }
    assert!(places.contains(&(HeadId::Native, true)) && places.contains(&(HeadId::Slc, false)), "{places:?}");
    assert!(places.iter().all(|&(head, spare)| (head == HeadId::Native) == spare), "{places:?}");
}
