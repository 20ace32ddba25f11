//! Attributes whose values take several nodes.

use alloc::vec::Vec;

use emulator::{Chip, Profile};

use super::{file, formatted_as, mounted};
use crate::format::key::{KeyKind, key, name_offset, offset_of};
use crate::store::attributes::{self, Offsets};
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
        let offset = attributes::set(fs.store_mut().records_mut(), ino, old, (b"user.a", &value(len, len))).unwrap();
        assert!(attributes::value(fs.store_mut().records_mut(), ino, offset).unwrap() == value(len, len));
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
    attributes::put(fs.store_mut().records_mut(), ino, offset + 10, (b"user.b", &value(2, 9_000)), true).unwrap();
    let part = fs.store_mut().records_mut().get(key(ino, KeyKind::Xattr, offset + 11)).unwrap().unwrap();
    let at = key(ino, KeyKind::Xattr, offset + 1);
    fs.store_mut().records_mut().set(at, crate::index::delta::Change::Put(part)).unwrap();
    assert!(matches!(fs.getxattr(ino, b"user.a"), Err(Error::Corrupt { .. })));
}
