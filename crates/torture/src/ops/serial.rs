//! How the core's values in calls are written to a file and read back: field by field, under the same names.
//!
//! Invariant: the compiler finds a field that is missing here.

use flexfs_core::{NewNode, RenameMode, SetAttr};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SetAttr")]
pub struct SetAttrFields {
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    size: Option<u64>,
    atime_ns: Option<i64>,
    mtime_ns: Option<i64>,
    ctime_ns: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NewNode")]
pub struct NewNodeFields {
    mode: u32,
    uid: u32,
    gid: u32,
    rdev: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RenameMode")]
pub enum RenameModes {
    Replace,
    NoReplace,
    Exchange,
    Whiteout { replaces: bool, uid: u32, gid: u32 },
}
