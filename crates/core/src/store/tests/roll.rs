//! Heads that go on in their next blocks.

use alloc::vec::Vec;

use nand::Cause;

use super::{file, flash, formatted, mounted};
use crate::Policy;
use crate::flash::Purpose;
use crate::flash::head::HeadId;

/// A head that was full took an erase and a summary at once from whoever came next.
#[test]
fn a_head_goes_on_by_one_operation_of_the_chip_at_a_time() {
    let mut fs = mounted(formatted(), Policy::SLC_ONLY);
    let ino = file(&mut fs, b"file");
    let (mut chunk, mut went_on) = (0, Vec::new());
    while went_on.len() < 200 {
        while flash(&fs).slots().room(HeadId::Slc.into()) > 0 || went_on.is_empty() && chunk == 0 {
            fs.write(ino, chunk % 100 * 4096, &[chunk as u8; 4096], 1).and_then(|_| fs.sync()).unwrap();
            chunk += 1;
        }
        let mut steps = Vec::new();
        loop {
            let before = fs.chip().operations();
            let flash = fs.store_mut().records_mut().log.flash_mut();
            let ready = flash.prepare(HeadId::Slc.into(), Purpose::of(Cause::Host)).unwrap();
            steps.push(fs.chip().operations() - before);
            if ready {
                break;
            }
        }
        assert!(steps.iter().all(|&operations| operations <= 1), "{steps:?}");
        assert_eq!(flash(&fs).slots().head(HeadId::Slc).unit(), 0);
        went_on.push(steps.iter().sum::<u64>());
        fs.write(ino, chunk % 100 * 4096, &[chunk as u8; 4096], 1).and_then(|_| fs.sync()).unwrap();
        chunk += 1;
    }
    let erased = went_on.iter().filter(|&&operations| operations == 2).count();
    assert!(erased > 100, "a summary and an erase, as a rule: {went_on:?}");
    let mut found = [0; 4096];
    fs.read(ino, (chunk - 1) % 100 * 4096, &mut found).unwrap();
    assert_eq!(found, [(chunk - 1) as u8; 4096]);
}
