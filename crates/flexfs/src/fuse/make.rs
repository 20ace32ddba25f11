//! Making inodes, and changing what they say of themselves: owner, group, permissions, access control lists.
//!
//! Invariant: what is made in a directory with a default list gets it whatever the umask; otherwise the umask counts.

use flexfs_core::{Attr, Attribute, Error, Ino, NewNode, RenameMode, SetAttr, kind};
use fuser::Request;

use super::acl::{self, Acl};
use super::attr::{PERMISSIONS, SET_GID, without_privileges};
use super::caller::{is_in_group, is_root};
use super::recorded::Recorded;
use crate::attribute_names::{ACCESS_LIST, DEFAULT_LIST};
use crate::clock::stamp_ns;

/// Takes the privileges from a file whose contents or owner somebody unprivileged changes.
pub fn drop_privileges(fs: &mut Recorded, ino: Ino) -> Result<(), Error> {
    if let Some(mode) = without_privileges(fs.getattr(ino)?.mode) {
        fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() }, stamp_ns())?;
    }
    Ok(())
}

/// What is to be made: who and what it is, and the lists it inherits.
pub struct Making {
    pub node: NewNode,
    lists: Vec<(&'static [u8], Vec<u8>)>,
}

impl Making {
    /// Something with `mode` (type bits included) in `parent`: made by the caller, of the group of a set-group-id
    /// directory.
    pub fn new(fs: &mut Recorded, req: &Request, parent: Ino, mode: u32, umask: u32, rdev: u32) -> Result<Self, Error> {
        let dir = fs.getattr(parent)?;
        let mut node = NewNode { mode, uid: req.uid(), gid: req.gid(), rdev };
        let is_dir = mode & kind::MASK == kind::DIR;
        if dir.mode & SET_GID != 0 {
            node.gid = dir.gid;
            node.mode |= if is_dir { SET_GID } else { 0 };
        }
        let inherited = if mode & kind::MASK == kind::SYMLINK { None } else { acl::default_of(fs, parent)? };
        let Some(default) = inherited else {
            node.mode &= !(umask & 0o777);
            return Ok(Self { node, lists: Vec::new() });
        };
        let access = default.inherited(mode);
        node.mode = node.mode & !0o777 | access.permissions();
        let mut lists = Vec::new();
        if !access.is_minimal() {
            lists.push((ACCESS_LIST, access.encode()));
        }
        if is_dir {
            lists.push((DEFAULT_LIST, default.encode()));
        }
        Ok(Self { node, lists })
    }
}

/// Makes a file, directory or special file.
pub fn create(
    fs: &mut Recorded,
    req: &Request,
    (parent, name): (Ino, &[u8]),
    (mode, umask): (u32, u32),
    rdev: u32,
) -> Result<Attr, Error> {
    let Making { node, lists } = Making::new(fs, req, parent, mode, umask, rdev)?;
    let lists: Vec<Attribute<'_>> = lists.iter().map(|(name, list)| (*name, list.as_slice())).collect();
    fs.create_with(parent, name, node, &lists, stamp_ns())
}

/// A rename that leaves a whiteout of the caller in `parent`.
pub fn whiteout(fs: &mut Recorded, req: &Request, parent: Ino, mode: RenameMode) -> Result<RenameMode, Error> {
    let Making { node, .. } = Making::new(fs, req, parent, kind::CHAR, 0, 0)?;
    Ok(RenameMode::Whiteout { replaces: mode == RenameMode::Replace, uid: node.uid, gid: node.gid })
}

/// Changes attributes, and with them what the kernel leaves to a file system.
pub fn change(fs: &mut Recorded, req: &Request, ino: Ino, mut changes: SetAttr, now_ns: i64) -> Result<Attr, Error> {
    let owner_changes = changes.uid.is_some() || changes.gid.is_some();
    if changes.mode.is_none() && (owner_changes || changes.size.is_some() && !is_root(req)) {
        changes.mode = without_privileges(fs.getattr(ino)?.mode);
    } else if let Some(mode) = changes.mode {
        acl::follow_mode(fs, ino, mode & PERMISSIONS, now_ns)?;
    }
    fs.setattr(ino, changes, now_ns)
}

/// Sets an attribute; one that is an access control list has its effect on the mode.
pub fn set_attribute(
    fs: &mut Recorded,
    req: &Request,
    ino: Ino,
    (name, value): (&[u8], &[u8]),
    (create, replace): (bool, bool),
) -> Result<(), Error> {
    if name == ACCESS_LIST {
        let in_group = is_root(req) || is_in_group(req, fs.getattr(ino)?.gid);
        return acl::set_access(fs, ino, value, in_group, stamp_ns());
    }
    if name == DEFAULT_LIST && Acl::decode(value).is_none() {
        return Err(Error::Invalid("this is no access control list"));
    }
    fs.setxattr(ino, name, value, create, replace, stamp_ns())
}
