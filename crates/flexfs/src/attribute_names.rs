//! Names of extended attributes: those that Linux file systems take, and how they refuse others.
//!
//! Invariant: a mount and a copy take the same names. An attribute that an older version has taken under another name
//! can still be read and removed.

use fuser::Errno;

/// The attributes that access control lists are kept in.
pub const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
pub const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

/// What a name begins with; something has to follow.
const SPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

/// Whether an attribute may have this name.
pub fn check(name: &[u8]) -> Result<(), Errno> {
    match SPACES.iter().find_map(|space| name.strip_prefix(*space)) {
        Some(b"") => Err(Errno::EINVAL),
        Some(_) => Ok(()),
        None if [ACCESS_LIST, DEFAULT_LIST].contains(&name) => Ok(()),
        None => Err(Errno::EOPNOTSUPP),
    }
}

/// The answer to who asks for an attribute: where there is none of that name, whether there can be.
pub fn found<T>(name: &[u8], result: Result<T, Errno>) -> Result<T, Errno> {
    result.map_err(|errno| match check(name) {
        Err(refused) if errno.code() == Errno::ENODATA.code() => refused,
        _ => errno,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_and_refused_as_linux_does() {
        for name in ["user.a", "trusted.overlay.opaque", "security.capability", "system.posix_acl_default"] {
            assert!(check(name.as_bytes()).is_ok(), "{name}");
        }
        for (name, errno) in [
            ("user.", Errno::EINVAL),
            ("security.", Errno::EINVAL),
            ("user", Errno::EOPNOTSUPP),
            ("", Errno::EOPNOTSUPP),
            ("bogus.a", Errno::EOPNOTSUPP),
            ("system.foo", Errno::EOPNOTSUPP),
            ("system.posix_acl_access.", Errno::EOPNOTSUPP),
        ] {
            assert_eq!(check(name.as_bytes()).unwrap_err().code(), errno.code(), "{name}");
        }
    }
}
