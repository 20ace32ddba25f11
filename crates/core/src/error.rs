//! What can go wrong, once for the whole core, and the `errno` a POSIX front end answers with.

use nand::NandError;

/// A file-system operation that did not happen. Nothing is changed where one is returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no such file or directory")]
    NotFound,
    #[error("the name exists already")]
    Exists,
    #[error("not a directory")]
    NotDirectory,
    #[error("is a directory")]
    IsDirectory,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("no space left on the chip")]
    NoSpace,
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    #[error("the file would grow past the largest size")]
    FileTooLarge,
    #[error("too many links")]
    TooManyLinks,
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    #[error("not permitted: {0}")]
    NotPermitted(&'static str),
    #[error("the file system is mounted read-only")]
    ReadOnly,
    #[error("no such extended attribute")]
    NoAttribute,
    #[error("nothing more of that kind up to the end of the file")]
    PastEnd,
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// What stands on flash fails its check: wrong data is never returned.
    #[error("corrupt: {what} at slot {slot:#x}")]
    Corrupt { what: &'static str, slot: u64 },
    /// The chip holds no FlexFS.
    #[error("no FlexFS on this chip: {0}")]
    NotFlexfs(&'static str),
    /// The chip holds a FlexFS of another format version.
    #[error("the volume has format version {found}; this program reads version {supported}")]
    Version { found: u32, supported: u32 },
    /// The chip cannot carry a FlexFS.
    #[error("this chip cannot carry FlexFS: {0}")]
    Unsuitable(&'static str),
    /// Block after block failed a program or an erase, so that the chip is to blame and not its blocks.
    #[error("the chip fails programs or erases on block after block: nothing more is written in this mount")]
    WriteOutage,
    #[error(transparent)]
    Nand(#[from] NandError),
}

/// Shorthand of the core.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// The Linux `errno` of this error.
    pub fn errno(&self) -> i32 {
        match self {
            Error::NotPermitted(_) => 1,
            Error::NotFound => 2,
            Error::Corrupt { .. } | Error::WriteOutage | Error::Nand(_) => 5,
            Error::PastEnd => 6,
            Error::TooLarge(_) => 7,
            Error::Exists => 17,
            Error::NotDirectory => 20,
            Error::IsDirectory => 21,
            Error::Invalid(_) | Error::NotFlexfs(_) | Error::Version { .. } | Error::Unsuitable(_) => 22,
            Error::FileTooLarge => 27,
            Error::NoSpace => 28,
            Error::ReadOnly => 30,
            Error::TooManyLinks => 31,
            Error::NameTooLong => 36,
            Error::NotEmpty => 39,
            Error::NoAttribute => 61,
        }
    }
}
