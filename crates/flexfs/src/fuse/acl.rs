//! POSIX access control lists: how they are written in attributes, and how they go with the permission bits.
//!
//! The kernel decides who may do what by them. What it leaves to a file system is done here, after acl(5): the mode
//! follows the list that is set, the list follows `chmod`, and what is made in a directory with a default list inherits
//! it. Invariant: a list that says no more than the mode is not stored.

use flexfs_core::{Error, Ino, SetAttr};

use super::attr::SET_GID;
use super::recorded::Recorded;
use crate::attribute_names::{ACCESS_LIST, DEFAULT_LIST};

const VERSION: u32 = 2;
const ENTRY_BYTES: usize = 8;

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    perm: u16,
    id: u32,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<Entry>,
}

impl Acl {
    /// The list in an attribute's value.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (version, rest) = value.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || !rest.len().is_multiple_of(ENTRY_BYTES) {
            return None;
        }
        let entries = rest.chunks_exact(ENTRY_BYTES).map(|bytes| {
            let &[t0, t1, p0, p1, i0, i1, i2, i3] = bytes else { return None };
            let (tag, perm) = (u16::from_le_bytes([t0, t1]), u16::from_le_bytes([p0, p1]));
            let known = matches!(tag, USER_OBJ | USER | GROUP_OBJ | GROUP | MASK | OTHER) && perm <= 7;
            known.then_some(Entry { tag, perm, id: u32::from_le_bytes([i0, i1, i2, i3]) })
        });
        let acl = Self { entries: entries.collect::<Option<_>>()? };
        let whole = [USER_OBJ, GROUP_OBJ, OTHER].iter().all(|&tag| acl.count(tag) == 1) && acl.count(MASK) <= 1;
        let named = acl.count(USER) + acl.count(GROUP);
        (whole && (named == 0 || acl.count(MASK) == 1)).then_some(acl)
    }

    /// The attribute's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for entry in &self.entries {
            value.extend_from_slice(&entry.tag.to_le_bytes());
            value.extend_from_slice(&entry.perm.to_le_bytes());
            value.extend_from_slice(&entry.id.to_le_bytes());
        }
        value
    }

    fn count(&self, tag: u16) -> usize {
        self.entries.iter().filter(|entry| entry.tag == tag).count()
    }

    fn perm_mut(&mut self, tag: u16) -> Option<&mut u16> {
        self.entries.iter_mut().find(|entry| entry.tag == tag).map(|entry| &mut entry.perm)
    }

    fn perm(&self, tag: u16) -> u32 {
        self.entries.iter().find(|entry| entry.tag == tag).map_or(0, |entry| entry.perm.into())
    }

    /// What the group bits of the mode stand for: the mask where there is one.
    fn group_class(&self) -> u16 {
        if self.count(MASK) > 0 { MASK } else { GROUP_OBJ }
    }

    /// The permission bits it amounts to.
    pub fn permissions(&self) -> u32 {
        self.perm(USER_OBJ) << 6 | self.perm(self.group_class()) << 3 | self.perm(OTHER)
    }

    /// Whether it says no more than the permission bits do.
    pub fn is_minimal(&self) -> bool {
        self.entries.len() == 3
    }

    /// Follows a `chmod`.
    pub fn set_permissions(&mut self, mode: u32) {
        for (tag, shift) in [(USER_OBJ, 6), (self.group_class(), 3), (OTHER, 0)] {
            if let Some(perm) = self.perm_mut(tag) {
                *perm = (mode >> shift & 7) as u16;
            }
        }
    }

    /// The list of something made with `mode` in a directory whose default list this is.
    pub fn inherited(&self, mode: u32) -> Self {
        let mut acl = self.clone();
        acl.set_permissions(self.permissions() & mode);
        acl
    }
}

fn read(fs: &mut Recorded, ino: Ino, name: &[u8]) -> Result<Option<Acl>, Error> {
    match fs.getxattr(ino, name) {
        Ok(value) => Ok(Acl::decode(&value)),
        Err(Error::NoAttribute) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What something made in `parent` inherits.
pub fn default_of(fs: &mut Recorded, parent: Ino) -> Result<Option<Acl>, Error> {
    read(fs, parent, DEFAULT_LIST)
}

/// Lets an inode's list follow a change of its mode.
pub fn follow_mode(fs: &mut Recorded, ino: Ino, mode: u32, now_ns: i64) -> Result<(), Error> {
    let Some(mut acl) = read(fs, ino, ACCESS_LIST)? else { return Ok(()) };
    acl.set_permissions(mode);
    fs.setxattr(ino, ACCESS_LIST, &acl.encode(), false, true, now_ns)
}

/// Sets the list that an inode is accessed by, and its mode accordingly; `in_group`: who sets it keeps set-group-id.
pub fn set_access(fs: &mut Recorded, ino: Ino, value: &[u8], in_group: bool, now_ns: i64) -> Result<(), Error> {
    let acl = Acl::decode(value).ok_or(Error::Invalid("this is no access control list"))?;
    let kept = fs.getattr(ino)?.mode & if in_group { 0o7000 } else { 0o7000 & !SET_GID };
    let changes = SetAttr { mode: Some(kept | acl.permissions()), ..SetAttr::default() };
    if !acl.is_minimal() {
        fs.setxattr(ino, ACCESS_LIST, value, false, false, now_ns)?;
        return fs.setattr(ino, changes, now_ns).map(drop);
    }
    // The list goes last: without it the group bits of the old mode would mean more.
    fs.setattr(ino, changes, now_ns)?;
    match fs.removexattr(ino, ACCESS_LIST, now_ns) {
        Ok(()) | Err(Error::NoAttribute) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl { entries: entries.iter().map(|&(tag, perm, id)| Entry { tag, perm, id }).collect() }
    }

    fn named() -> Acl {
        acl(&[(USER_OBJ, 7, !0), (USER, 6, 1000), (GROUP_OBJ, 5, !0), (MASK, 6, !0), (OTHER, 4, !0)])
    }

    #[test]
    fn a_list_comes_back_as_it_was_written() {
        assert_eq!(Acl::decode(&named().encode()), Some(named()));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let without_mask = acl(&[(USER_OBJ, 7, !0), (USER, 6, 1000), (GROUP_OBJ, 5, !0), (OTHER, 4, !0)]);
        let without_other = acl(&[(USER_OBJ, 7, !0), (GROUP_OBJ, 5, !0)]);
        for bytes in [&b""[..], &[2, 0, 0, 0, 1], &without_mask.encode(), &without_other.encode()] {
            assert_eq!(Acl::decode(bytes), None);
        }
    }

    #[test]
    fn the_group_bits_are_the_mask() {
        assert_eq!(named().permissions(), 0o764);
        let mut changed = named();
        changed.set_permissions(0o640);
        assert_eq!((changed.perm(MASK), changed.perm(GROUP_OBJ), changed.perm(OTHER)), (4, 5, 0));
    }

    #[test]
    fn what_is_made_gets_no_more_than_both_allow() {
        let inherited = named().inherited(0o640);
        assert_eq!((inherited.permissions(), inherited.perm(USER)), (0o640, 6));
    }
}
