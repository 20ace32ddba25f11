//! The network block device protocol in its fixed newstyle form: bytes to requests, and answers to bytes.
//!
//! After the protocol's own description (NetworkBlockDevice/nbd, doc/proto.md). Invariant: no input or output happens here,
//! and no bytes make it panic.

mod fields;
mod greeting;
mod option;
mod reply;
mod request;

pub use greeting::{ClientFlags, GREETING, TransmissionFlags, old_export_reply};
pub use option::{
    BlockSizes, ClientOption, EXPORT_NAME_BYTES_MAX, OPTION_HEADER_BYTES, OptionHeader, OptionReply, OptionRequest,
    option_reply,
};
pub use reply::{Replies, ReplyKind};
pub use request::{DiskCommand, NbdRequest, REQUEST_BYTES};
