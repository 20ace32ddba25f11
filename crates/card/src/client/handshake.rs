//! The handshake: options and their replies, until client and server agree on the transmission or part.
//!
//! Invariant: a handshake takes a bounded number of options of bounded length, so that no client keeps it up for ever.

use std::io::{ErrorKind, Read, Write};

use super::ClientError;
use crate::disk::DiskShape;
use crate::protocol::{
    BlockSizes, ClientFlags, ClientOption, EXPORT_NAME_BYTES_MAX, GREETING, OPTION_HEADER_BYTES, OptionHeader,
    OptionReply, OptionRequest, ReplyKind, TransmissionFlags, old_export_reply, option_reply,
};

/// Options of a handshake at most.
const OPTIONS_MAX: usize = 64;
/// The longest data of an option, bytes: a name, and requests for information.
const OPTION_BYTES_MAX: u32 = EXPORT_NAME_BYTES_MAX as u32 + 1024;
/// Data of a request at most, bytes: as much as clients take for granted that ask for no sizes.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// The export that clients are offered.
#[derive(Clone, Debug)]
pub struct ExportOffer {
    /// Its name; it is the default export, too.
    pub name: String,
    pub description: String,
    pub shape: DiskShape,
}

/// The outcome of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Requests follow, and answers of this kind.
    Transmit(ReplyKind),
    /// The client wants no more.
    Part,
}

impl ExportOffer {
    fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    fn flags(&self, kind: ReplyKind) -> TransmissionFlags {
        let is_structured = kind == ReplyKind::Structured;
        TransmissionFlags { is_read_only: self.shape.is_read_only, is_structured }
    }

    fn sizes(&self) -> BlockSizes {
        // Less than a page of the host's memory makes no host ask for less.
        BlockSizes { least: 1, preferred: self.shape.sector_bytes.max(4096), most: REQUEST_BYTES_MAX }
    }
}

/// Greets a client and answers its options; `admits` says whether one more may go on to requests.
///
/// # Errors
/// The client breaks the protocol, or the connection fails.
pub fn handshake(
    stream: &mut (impl Read + Write),
    offer: &ExportOffer,
    admits: impl Fn() -> bool,
) -> Result<Agreement, ClientError> {
    stream.write_all(&GREETING)?;
    let mut flags = [0; 4];
    stream.read_exact(&mut flags)?;
    let client = ClientFlags::decode(flags).ok_or(ClientError::Protocol("its flags are not known"))?;
    let mut kind = ReplyKind::Simple;
    for _ in 0..OPTIONS_MAX {
        let mut header = [0; OPTION_HEADER_BYTES];
        match stream.read_exact(&mut header) {
            // Whoever only wanted to look around goes without a word.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Agreement::Part),
            read => read?,
        }
        let header =
            OptionHeader::decode(&header).ok_or(ClientError::Protocol("an option without its magic number"))?;
        let mut out = Vec::new();
        if header.bytes > OPTION_BYTES_MAX {
            option_reply(&mut out, header.number, &OptionReply::TooBig("no option needs that much data"));
            stream.write_all(&out)?;
            return Err(ClientError::Protocol("an option with too much data"));
        }
        let mut data = vec![0; header.bytes as usize];
        stream.read_exact(&mut data)?;
        let answered = match ClientOption::decode(header.number, &data) {
            Ok(option) => answer(&mut out, header.number, &option, offer, &mut kind, &admits),
            Err(why) => {
                option_reply(&mut out, header.number, &OptionReply::Invalid(why));
                Next::Option
            }
        };
        match answered {
            Next::Option => stream.write_all(&out)?,
            Next::Agreed(agreement) => {
                stream.write_all(&out)?;
                return Ok(agreement);
            }
            Next::OldExport => {
                stream.write_all(&old_export_reply(offer.shape.bytes, offer.flags(kind), client))?;
                return Ok(Agreement::Transmit(kind));
            }
            Next::Refused(why) => return Err(ClientError::Protocol(why)),
        }
    }
    Err(ClientError::Protocol("too many options"))
}

/// The course of a handshake after an option.
enum Next {
    Option,
    Agreed(Agreement),
    /// Requests follow the answer to EXPORT_NAME.
    OldExport,
    /// The connection's end is the only answer.
    Refused(&'static str),
}

/// Appends the replies to an option.
fn answer(
    out: &mut Vec<u8>,
    number: u32,
    option: &ClientOption<'_>,
    offer: &ExportOffer,
    kind: &mut ReplyKind,
    admits: &impl Fn() -> bool,
) -> Next {
    const UNKNOWN: OptionReply<'static> = OptionReply::Unknown("there is no export of this name");
    const FULL: &str = "as many clients as the server lets in are served already";
    let mut reply = |reply: &OptionReply<'_>| option_reply(out, number, reply);
    match *option {
        ClientOption::ExportName(name) if !offer.is_named(name) => {
            return Next::Refused("it asks for an unknown export");
        }
        ClientOption::ExportName(_) if !admits() => return Next::Refused(FULL),
        ClientOption::ExportName(_) => return Next::OldExport,
        ClientOption::Abort => {
            reply(&OptionReply::Ack);
            return Next::Agreed(Agreement::Part);
        }
        ClientOption::List => {
            reply(&OptionReply::Server(&offer.name));
            reply(&OptionReply::Ack);
        }
        ClientOption::StructuredReply => {
            *kind = ReplyKind::Structured;
            reply(&OptionReply::Ack);
        }
        ClientOption::MetaContexts { .. } if *kind == ReplyKind::Simple => {
            reply(&OptionReply::Invalid("meta contexts need structured replies"));
        }
        ClientOption::MetaContexts { name } if !offer.is_named(name) => reply(&UNKNOWN),
        // There are none.
        ClientOption::MetaContexts { .. } => reply(&OptionReply::Ack),
        ClientOption::Info { name, .. } if !offer.is_named(name) => reply(&UNKNOWN),
        ClientOption::Info { goes_on: true, .. } if !admits() => reply(&OptionReply::Policy(FULL)),
        ClientOption::Info { asks, goes_on, .. } => {
            information(&mut reply, asks, offer, *kind);
            if goes_on {
                return Next::Agreed(Agreement::Transmit(*kind));
            }
        }
        ClientOption::Unsupported => reply(&OptionReply::Unsupported),
    }
    Next::Option
}

/// All that is told of an export.
fn information(reply: &mut impl FnMut(&OptionReply<'_>), asks: OptionRequest, offer: &ExportOffer, kind: ReplyKind) {
    reply(&OptionReply::Export { bytes: offer.shape.bytes, flags: offer.flags(kind) });
    if asks.name {
        reply(&OptionReply::Name(&offer.name));
    }
    if asks.description {
        reply(&OptionReply::Description(&offer.description));
    }
    reply(&OptionReply::Sizes(offer.sizes()));
    reply(&OptionReply::Ack);
}
