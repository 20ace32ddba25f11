//! The first bytes that each side sends, and the flags in which they tell each other their abilities.
//!
//! Invariant: a client with flags that the server does not know is not served, as the protocol has it.

/// The first bytes of a connection: the magic numbers of the protocol and of options, then the handshake flags
/// FIXED_NEWSTYLE and NO_ZEROES.
pub const GREETING: [u8; 18] = *b"NBDMAGICIHAVEOPT\x00\x03";

/// The client's answer to the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFlags {
    /// The zeros after the answer to EXPORT_NAME are left out.
    pub no_zeroes: bool,
}

impl ClientFlags {
    const FIXED_NEWSTYLE: u32 = 1;
    const NO_ZEROES: u32 = 2;

    /// The flags in these bytes; `None` where one is not known.
    pub fn decode(bytes: [u8; 4]) -> Option<Self> {
        let flags = u32::from_be_bytes(bytes);
        let is_known = flags & !(Self::FIXED_NEWSTYLE | Self::NO_ZEROES) == 0;
        is_known.then_some(Self { no_zeroes: flags & Self::NO_ZEROES != 0 })
    }
}

/// The abilities of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmissionFlags {
    pub is_read_only: bool,
    /// The client asked for structured replies, so that it may ask for answers in one chunk.
    pub is_structured: bool,
}

impl TransmissionFlags {
    const HAS_FLAGS: u16 = 1;
    const READ_ONLY: u16 = 1 << 1;
    const SEND_FLUSH: u16 = 1 << 2;
    const SEND_FUA: u16 = 1 << 3;
    const SEND_TRIM: u16 = 1 << 5;
    const SEND_WRITE_ZEROES: u16 = 1 << 6;
    const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection holds for writes that were answered on any.
    const CAN_MULTI_CONN: u16 = 1 << 8;

    pub fn encode(self) -> u16 {
        let optional = [(self.is_read_only, Self::READ_ONLY), (self.is_structured, Self::SEND_DF)];
        let flags = Self::HAS_FLAGS
            | Self::SEND_FLUSH
            | Self::SEND_FUA
            | Self::SEND_TRIM
            | Self::SEND_WRITE_ZEROES
            | Self::CAN_MULTI_CONN;
        optional.into_iter().filter(|(is_set, _)| *is_set).fold(flags, |flags, (_, flag)| flags | flag)
    }
}

/// The answer to EXPORT_NAME, which ends the handshake.
pub fn old_export_reply(bytes: u64, flags: TransmissionFlags, client: ClientFlags) -> Vec<u8> {
    /// Reserved zeros, which a client may leave out.
    const ZEROES: usize = 124;
    let mut reply = Vec::new();
    reply.extend(bytes.to_be_bytes());
    reply.extend(flags.encode().to_be_bytes());
    reply.resize(reply.len() + if client.no_zeroes { 0 } else { ZEROES }, 0);
    reply
}
