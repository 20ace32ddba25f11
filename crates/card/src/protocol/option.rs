//! Options: the requests of the handshake, and their replies.
//!
//! Invariant: an option is decoded as a whole or refused with a reason; bytes after the last field refuse it.

use super::TransmissionFlags;
use super::fields::MessageFields;

/// Magic number, option, length.
pub const OPTION_HEADER_BYTES: usize = 16;
/// The longest name of an export, bytes.
pub const EXPORT_NAME_BYTES_MAX: usize = 4096;

const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The beginning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    pub number: u32,
    /// Bytes of data that follow.
    pub bytes: u32,
}

impl OptionHeader {
    /// `None` where the magic number is another one.
    pub fn decode(bytes: &[u8; OPTION_HEADER_BYTES]) -> Option<Self> {
        let mut fields = MessageFields::new(bytes);
        (fields.u64()? == OPTION_MAGIC).then_some(())?;
        Some(Self { number: fields.u32()?, bytes: fields.u32()? })
    }
}

/// A request of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOption<'a> {
    /// Ends the handshake, and has no way to be refused but the end of the connection.
    ExportName(&'a [u8]),
    Abort,
    List,
    /// Tells of an export; where `goes_on`, the handshake ends with it.
    Info {
        name: &'a [u8],
        asks: OptionRequest,
        goes_on: bool,
    },
    StructuredReply,
    /// Lists or chooses meta contexts of an export.
    MetaContexts {
        name: &'a [u8],
    },
    /// It is not known, or not offered.
    Unsupported,
}

/// The information that a client asks for beside that which it gets anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionRequest {
    pub name: bool,
    pub description: bool,
}

impl<'a> ClientOption<'a> {
    const EXPORT_NAME: u32 = 1;
    const ABORT: u32 = 2;
    const LIST: u32 = 3;
    const INFO: u32 = 6;
    const GO: u32 = 7;
    const STRUCTURED_REPLY: u32 = 8;
    const LIST_META_CONTEXT: u32 = 9;
    const SET_META_CONTEXT: u32 = 10;

    /// The option of a number with its data.
    ///
    /// # Errors
    /// The reason why the data is not of this option.
    pub fn decode(number: u32, data: &'a [u8]) -> Result<Self, &'static str> {
        let bare = |option| if data.is_empty() { Ok(option) } else { Err("this option has no data") };
        match number {
            Self::EXPORT_NAME => Ok(Self::ExportName(data)),
            Self::ABORT => Ok(Self::Abort),
            Self::LIST => bare(Self::List),
            Self::STRUCTURED_REPLY => bare(Self::StructuredReply),
            Self::INFO | Self::GO => info(data, number == Self::GO).ok_or("its fields do not fill its data"),
            Self::LIST_META_CONTEXT | Self::SET_META_CONTEXT => {
                meta_contexts(data).ok_or("its fields do not fill its data")
            }
            _ => Ok(Self::Unsupported),
        }
    }
}

fn info(data: &[u8], goes_on: bool) -> Option<ClientOption<'_>> {
    const NAME: u16 = 1;
    const DESCRIPTION: u16 = 2;
    let mut fields = MessageFields::new(data);
    let name = fields.counted()?;
    let mut asks = OptionRequest::default();
    for _ in 0..fields.u16()? {
        match fields.u16()? {
            NAME => asks.name = true,
            DESCRIPTION => asks.description = true,
            // Size and flags are told anyway, and so are block sizes.
            _ => {}
        }
    }
    fields.is_empty().then_some(ClientOption::Info { name, asks, goes_on })
}

fn meta_contexts(data: &[u8]) -> Option<ClientOption<'_>> {
    let mut fields = MessageFields::new(data);
    let name = fields.counted()?;
    for _ in 0..fields.u32()? {
        fields.counted()?;
    }
    fields.is_empty().then_some(ClientOption::MetaContexts { name })
}

/// The sizes of requests, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    pub least: u32,
    pub preferred: u32,
    /// Of data in one request.
    pub most: u32,
}

/// A reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionReply<'a> {
    Ack,
    /// An export that there is, by its name.
    Server(&'a str),
    Export {
        bytes: u64,
        flags: TransmissionFlags,
    },
    Name(&'a str),
    Description(&'a str),
    Sizes(BlockSizes),
    /// The option is not known, or not offered.
    Unsupported,
    /// The server does not let this client in.
    Policy(&'a str),
    /// The option's data makes no sense.
    Invalid(&'a str),
    /// There is no export of that name.
    Unknown(&'a str),
    /// The option has more data than any option needs.
    TooBig(&'a str),
}

impl OptionReply<'_> {
    const ACK: u32 = 1;
    const SERVER: u32 = 2;
    const INFO: u32 = 3;
    const ERROR: u32 = 1 << 31;

    fn number(&self) -> u32 {
        match self {
            Self::Ack => Self::ACK,
            Self::Server(_) => Self::SERVER,
            Self::Export { .. } | Self::Name(_) | Self::Description(_) | Self::Sizes(_) => Self::INFO,
            Self::Unsupported => Self::ERROR | 1,
            Self::Policy(_) => Self::ERROR | 2,
            Self::Invalid(_) => Self::ERROR | 3,
            Self::Unknown(_) => Self::ERROR | 6,
            Self::TooBig(_) => Self::ERROR | 9,
        }
    }

    fn encode_data(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack | Self::Unsupported => {}
            Self::Server(name) => {
                out.extend((name.len() as u32).to_be_bytes());
                out.extend(name.as_bytes());
            }
            Self::Export { bytes, flags } => {
                out.extend(0_u16.to_be_bytes());
                out.extend(bytes.to_be_bytes());
                out.extend(flags.encode().to_be_bytes());
            }
            Self::Name(text) => {
                out.extend(1_u16.to_be_bytes());
                out.extend(text.as_bytes());
            }
            Self::Description(text) => {
                out.extend(2_u16.to_be_bytes());
                out.extend(text.as_bytes());
            }
            Self::Sizes(sizes) => {
                out.extend(3_u16.to_be_bytes());
                [sizes.least, sizes.preferred, sizes.most].iter().for_each(|size| out.extend(size.to_be_bytes()));
            }
            Self::Policy(text) | Self::Invalid(text) | Self::Unknown(text) | Self::TooBig(text) => {
                out.extend(text.as_bytes());
            }
        }
    }
}

/// Appends a reply to the option of that number.
pub fn option_reply(out: &mut Vec<u8>, option: u32, reply: &OptionReply<'_>) {
    out.extend(REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(reply.number().to_be_bytes());
    let mut data = Vec::new();
    reply.encode_data(&mut data);
    out.extend((data.len() as u32).to_be_bytes());
    out.append(&mut data);
}
