//! Keys of the index: (inode, kind, offset or name hash), ordered so that what belongs to an inode stands together.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A key: inode 40 bits, kind 8, offset 64; 112 bits in all.
pub type Key = u128;

/// One past the largest key.
pub const KEY_END: Key = 1 << 112;

/// What a key names within its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KeyKind {
    Inode = 1,
    /// A directory entry, by name hash.
    Entry = 2,
    /// An extended attribute, by name hash.
    Xattr = 3,
    /// File data, by chunk.
    Data = 4,
    /// Of inode 0: an inode without names that waits for its last handle.
    Orphan = 5,
}

/// The key of something of an inode.
pub fn key(ino: u64, kind: KeyKind, offset: u64) -> Key {
    (u128::from(ino) & 0xff_ffff_ffff) << 72 | (kind as u128) << 64 | u128::from(offset)
}

/// The inode a key belongs to.
pub fn ino_of(key: Key) -> u64 {
    (key >> 72) as u64
}

/// The key's kind, as a number.
pub fn kind_of(key: Key) -> u8 {
    (key >> 64) as u8
}

/// A kind's name, for people.
pub fn kind_name(kind: u8) -> &'static str {
    match kind {
        1 => "inode",
        2 => "entry",
        3 => "attribute",
        4 => "data",
        5 => "orphan",
        _ => "unknown",
    }
}

/// The key's offset (chunk, or name hash).
pub fn offset_of(key: Key) -> u64 {
    key as u64
}

/// First and past-the-last key of everything an inode has.
pub fn whole_inode(ino: u64) -> (Key, Key) {
    ((u128::from(ino)) << 72, (u128::from(ino) + 1) << 72)
}

/// Names whose hashes collide differ in these low bits of the offset.
pub const COLLISION_SPAN: u64 = 1 << 16;

/// All offsets of names are less.
pub const NAME_OFFSETS_END: u64 = 1 << 63;

/// The first offset of names with this name's hash: seeded per volume, so that nobody can prepare collisions.
pub fn name_offset(seed: u64, name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, !seed);
    hasher.write(name);
    (hasher.finish() >> 17).max(1) << 16
}
