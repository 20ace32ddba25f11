//! Attributes whose values take several nodes.

use alloc::vec::Vec;

use emulator::{Chip, Profile};

use super::{file, formatted_as, mounted};
use crate::format::key::{KeyKind, key, name_offset, offset_of};
use crate::store::attributes::Offsets;
use crate::store::collector::Why;
use crate::{Error, Fs, Ino, Policy, ROOT_INO};

/// A chip with pages of this size.
fn chip(page_bytes: u32) -> Chip {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 64);
    profile.geometry.page_bytes = page_bytes;
    formatted_as(&profile)
}

fn value(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + number * 7 + at / 251) as u8).collect()
}

/// The offsets in use for attributes of an inode.
fn in_use(fs: &mut Fs<Chip>, ino: Ino) -> Vec<u64> {
    let (mut from, to) = (key(ino, KeyKind::Xattr, 0), key(ino, KeyKind::Data, 0));
    let mut offsets = Vec::new();
    while let Some(entry) = fs.store_mut().records_mut().next(from, to).unwrap() {
        offsets.push(offset_of(entry.key));
        from = entry.end();
    }
    offsets
}

fn checked(fs: &mut Fs<Chip>) {
    assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
}

#[test]
fn values_of_any_length_replace_each_other_and_are_there_after_a_cut() {
    for page_bytes in [2048, 4096] {
        let mut fs = mounted(chip(page_bytes), Policy::BASELINE);
        let ino = file(&mut fs, b"file");
        for (number, len) in [0, 65_536, 3_000, 65_535, 9_000, 9_000, 1, 30_000].into_iter().enumerate() {
            fs.setxattr(ino, b"user.other", &value(100 + number, 65_536 - len), false, false, 1).unwrap();
            fs.setxattr(ino, b"user.long", &value(number, len), false, false, 1).unwrap();
            fs.sync().unwrap();
            fs = mounted(fs.into_chip(), Policy::BASELINE);
            assert!(fs.getxattr(ino, b"user.long").unwrap() == value(number, len), "{len} bytes");
            assert!(fs.getxattr(ino, b"user.other").unwrap() == value(100 + number, 65_536 - len));
            assert_eq!(fs.listxattr(ino).unwrap().len(), 2);
            checked(&mut fs);
        }
        let too_long = fs.setxattr(ino, b"user.long", &value(1, 65_537), false, false, 1);
        assert!(matches!(too_long, Err(Error::TooLarge(_))), "{too_long:?}");
        for name in [&b"user.long"[..], b"user.other"] {
            fs.removexattr(ino, name, 1).unwrap();
        }
        assert_eq!(in_use(&mut fs, ino), []);
        fs.unlink(ROOT_INO, b"file", 1).unwrap();
        checked(&mut fs);
    }
}

/// An attribute that stands behind a short one with the same hash has no space there when it becomes longer.
#[test]
fn a_value_that_outgrows_its_place_goes_to_the_lowest_that_is_large_enough() {
    let mut fs = mounted(chip(4096), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let first = name_offset(fs.store_mut().records_mut().volume().hash_seed, b"user.a");
    let set = |fs: &mut Fs<Chip>, old: Option<Offsets>, len: usize| {
        let offset = fs.store_mut().records_mut().attributes(ino).set(old, (b"user.a", &value(len, len))).unwrap();
        assert!(fs.store_mut().records_mut().attributes(ino).value(offset).unwrap() == value(len, len));
        offset
    };
    // Three of this name, as if its hash were that of others.
    let offsets = [10, 20, 5_000].map(|len| set(&mut fs, None, len));
    assert_eq!(offsets, [first, first + 1, first + 2]);
    // The one in the middle moves behind the last; where it was there is space for one of one node, not of two.
    assert_eq!(set(&mut fs, Some(first + 1..first + 2), 9_000), first + 4);
    assert_eq!(set(&mut fs, None, 6_000), first + 7);
    assert_eq!(set(&mut fs, None, 6), first + 1);
    // What it has itself counts as free.
    assert_eq!(set(&mut fs, Some(first + 7..first + 9), 60_000), first + 7);
    assert_eq!(in_use(&mut fs, ino).len(), 2 + 2 + 3 + 15);
}

/// Parts are checked together: nodes that are each whole, of different values, would be taken for one value.
#[test]
fn parts_of_two_values_are_not_taken_for_one() {
    let mut fs = mounted(chip(4096), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.setxattr(ino, b"user.a", &value(1, 9_000), false, false, 1).unwrap();
    let offset = in_use(&mut fs, ino)[0];
    fs.store_mut().records_mut().attributes(ino).put(offset + 10, (b"user.b", &value(2, 9_000)), true).unwrap();
    let part = fs.store_mut().records_mut().get(key(ino, KeyKind::Xattr, offset + 11)).unwrap().unwrap();
    let at = key(ino, KeyKind::Xattr, offset + 1);
    fs.store_mut().records_mut().set(at, crate::index::delta::Change::Put(part)).unwrap();
    assert!(matches!(fs.getxattr(ino, b"user.a"), Err(Error::Corrupt { .. })));
}

/// Nodes that fill a slot were copied in the order in which they stood: each small one between two of them took a slot of its
/// own, so that emptying a block that was half empty gained nothing.
#[test]
fn small_nodes_between_large_ones_share_a_slot_when_they_are_copied() {
    let mut fs = mounted(chip(4096), Policy::SLC_ONLY);
    let files: Vec<Ino> = (0..40u8).map(|number| file(&mut fs, &[b'a' + number])).collect();
    fs.sync().unwrap();
    for &ino in &files {
        fs.setxattr(ino, b"user.a", &value(ino as usize, 4_500), false, false, 1).unwrap();
        fs.sync().unwrap();
    }
    let place = fs.store_mut().records_mut().get(key(files[20], KeyKind::Inode, 0)).unwrap().unwrap();
    let crate::format::place::Place::Node { slot, .. } = place else { panic!("{place:?}") };
    let shape = fs.store().records().flash().shape().clone();
    let written = |fs: &Fs<Chip>| fs.store().records().flash().slots().written_bytes().iter().sum::<u64>();
    let before = written(&fs);
    fs.store_mut().empty_block((slot / shape.stride) as u32, Why::Room).unwrap();
    let (copied, held) = ((written(&fs) - before) / 4096, u64::from(shape.slc.content_slots()));
    assert!(copied > 0 && copied * 10 <= held * 7, "{copied} slots of {held}");
    for &ino in &files {
        assert!(fs.getxattr(ino, b"user.a").unwrap() == value(ino as usize, 4_500));
    }
    fs = mounted(fs.into_chip(), Policy::SLC_ONLY);
    checked(&mut fs);
}

/// Parts of a removed value, or of one before, count for nothing in a salvage, and harm no other attribute.
#[test]
fn what_is_left_of_removed_attributes_is_not_damage_to_a_salvage() {
    let mut fs = mounted(chip(4096), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.setxattr(ino, b"user.a", &value(1, 9_000), false, false, 1).unwrap();
    fs.setxattr(ino, b"user.b", &value(2, 9_000), false, false, 1).unwrap();
    fs.sync().unwrap();
    // As if the block with the record of a removal had been erased, and one with a part before it.
    let first = fs.store_mut().records_mut().attributes(ino).find(b"user.a").unwrap().unwrap().start;
    let gone = |fs: &mut Fs<Chip>, offset| {
        fs.store_mut().records_mut().remove(key(ino, KeyKind::Xattr, offset)).unwrap();
    };
    gone(&mut fs, first + 1);
    assert!(matches!(fs.getxattr(ino, b"user.a"), Err(Error::Corrupt { .. })));
    assert!(fs.check().unwrap().findings.iter().any(|line| line.contains("attribute")));
    let mended = fs.mend(true, 1).unwrap().unwrap();
    assert_eq!((mended.attributes, mended.unreadable), (1, 0));
    assert_eq!(fs.listxattr(ino).unwrap(), [b"user.b"]);
    assert!(fs.getxattr(ino, b"user.b").unwrap() == value(2, 9_000));
    checked(&mut fs);
    let first = fs.store_mut().records_mut().attributes(ino).find(b"user.b").unwrap().unwrap().start;
    gone(&mut fs, first);
    assert!(fs.check().unwrap().findings.iter().any(|line| line.contains("belong to no value")));
    fs.mend(true, 1).unwrap().unwrap();
    assert_eq!(in_use(&mut fs, ino), []);
    checked(&mut fs);
}
