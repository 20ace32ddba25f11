//! Requests of the transmission, after the handshake.
//!
//! Invariant: a request with a flag or of a command that is not known still says how long it is, so that the next one is
//! found behind it.

use super::fields::MessageFields;

/// Magic number, flags, command, cookie, offset, length.
pub const REQUEST_BYTES: usize = 28;

const REQUEST_MAGIC: u32 = 0x2560_9513;

/// The things that a client asks of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCommand {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    /// It is not known, or not offered.
    Unsupported,
}

/// The head of a request; the data of a write follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdRequest {
    pub command: DiskCommand,
    /// What was written is to be durable before the answer.
    pub is_durable: bool,
    /// Zeros are to be written, not given up.
    pub keeps_room: bool,
    /// All flags are known, and suit the command.
    pub has_known_flags: bool,
    /// The client's own name for the request, which the answer repeats.
    pub cookie: u64,
    /// Bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl NbdRequest {
    const FUA: u16 = 1;
    const NO_HOLE: u16 = 1 << 1;
    const DF: u16 = 1 << 2;

    /// `None` where the magic number is another one.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = MessageFields::new(bytes);
        (fields.u32()? == REQUEST_MAGIC).then_some(())?;
        let flags = fields.u16()?;
        let (command, own_flags) = match fields.u16()? {
            0 => (DiskCommand::Read, Self::DF),
            1 => (DiskCommand::Write, 0),
            2 => (DiskCommand::Disconnect, 0),
            3 => (DiskCommand::Flush, 0),
            4 => (DiskCommand::Trim, 0),
            6 => (DiskCommand::WriteZeroes, Self::NO_HOLE),
            _ => (DiskCommand::Unsupported, 0),
        };
        Some(Self {
            command,
            is_durable: flags & Self::FUA != 0,
            keeps_room: flags & Self::NO_HOLE != 0,
            has_known_flags: flags & !(Self::FUA | own_flags) == 0,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }

    /// Bytes of data that follow the head.
    pub fn data_bytes(&self) -> u32 {
        match self.command {
            DiskCommand::Write => self.length,
            _ => 0,
        }
    }
}
