//! Making inodes, and changing what they say of themselves: owner, group, permissions, access control lists.
//!
//! Invariant: what is made in a directory with a default list gets it whatever the umask; otherwise the umask counts.

use emulator::Chip;
use flexfs_core::{Attr, Error, Fs, Ino, NewNode, SetAttr, kind};
use fuser::Request;

use super::acl::{self, Acl};
use super::attr::{PERMISSIONS, SET_GID, without_privileges};
use super::volume::now_ns;

/// The permissions of a group.
const GROUP: u32 = 0o070;

/// Whether the caller keeps a file's privileges when it changes its contents.
pub fn is_root(req: &Request) -> bool {
    req.uid() == 0
}

/// Takes the privileges from a file whose contents or owner somebody unprivileged changes.
pub fn drop_privileges(fs: &mut Fs<Chip>, ino: Ino) -> Result<(), Error> {
    if let Some(mode) = without_privileges(fs.getattr(ino)?.mode) {
        fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() }, now_ns())?;
    }
    Ok(())
}

/// What is to be made: who and what it is, and the lists it inherits.
pub struct Making {
    pub node: NewNode,
    access: Option<Acl>,
    default: Option<Acl>,
}

impl Making {
    /// Something with `mode` (type bits included) in `parent`: made by the caller, of the group of a set-group-id
    /// directory.
    pub fn new(fs: &mut Fs<Chip>, req: &Request, parent: Ino, mode: u32, umask: u32, rdev: u32) -> Result<Self, Error> {
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
            return Ok(Self { node, access: None, default: None });
        };
        let access = default.inherited(mode);
        node.mode = node.mode & !0o777 | access.permissions();
        let access = (!access.is_minimal()).then_some(access);
        Ok(Self { node, access, default: is_dir.then_some(default) })
    }

    /// Gives what was made its lists, and last the group's permissions, which without a list would mean more.
    fn finish(&self, fs: &mut Fs<Chip>, made: Attr) -> Result<Attr, Error> {
        for (name, acl) in [(acl::ACCESS, &self.access), (acl::DEFAULT, &self.default)] {
            if let Some(acl) = acl {
                fs.setxattr(made.ino, name, &acl.encode(), false, false, now_ns())?;
            }
        }
        if self.access.is_none() {
            return Ok(made);
        }
        fs.setattr(made.ino, SetAttr { mode: Some(self.node.mode & PERMISSIONS), ..SetAttr::default() }, now_ns())
    }
}

/// Makes a file, directory or special file.
pub fn create(
    fs: &mut Fs<Chip>,
    req: &Request,
    (parent, name): (Ino, &[u8]),
    (mode, umask): (u32, u32),
    rdev: u32,
) -> Result<Attr, Error> {
    let making = Making::new(fs, req, parent, mode, umask, rdev)?;
    let mut first = making.node;
    if making.access.is_some() {
        first.mode &= !GROUP;
    }
    let made = fs.create(parent, name, first, now_ns())?;
    making.finish(fs, made).inspect_err(|_| {
        // The error that led here is the one to tell.
        let _ = if mode & kind::MASK == kind::DIR {
            fs.rmdir(parent, name, now_ns())
        } else {
            fs.unlink(parent, name, now_ns())
        };
    })
}

/// Changes attributes, and with them what the kernel leaves to a file system.
pub fn change(fs: &mut Fs<Chip>, req: &Request, ino: Ino, mut changes: SetAttr) -> Result<Attr, Error> {
    let owner_changes = changes.uid.is_some() || changes.gid.is_some();
    if changes.mode.is_none() && (owner_changes || changes.size.is_some() && !is_root(req)) {
        changes.mode = without_privileges(fs.getattr(ino)?.mode);
    } else if let Some(mode) = changes.mode {
        acl::follow_mode(fs, ino, mode & PERMISSIONS, now_ns())?;
    }
    fs.setattr(ino, changes, now_ns())
}

/// Sets an attribute; one that is an access control list has its effect on the mode.
pub fn set_attribute(
    fs: &mut Fs<Chip>,
    req: &Request,
    ino: Ino,
    (name, value): (&[u8], &[u8]),
    (create, replace): (bool, bool),
) -> Result<(), Error> {
    if name == acl::ACCESS {
        let in_group = is_root(req) || fs.getattr(ino)?.gid == req.gid();
        return acl::set_access(fs, ino, value, in_group, now_ns());
    }
    if name == acl::DEFAULT && Acl::decode(value).is_none() {
        return Err(Error::Invalid("this is no access control list"));
    }
    fs.setxattr(ino, name, value, create, replace, now_ns())
}
