//! The transmission: requests are done in the order in which they came, and answered.
//!
//! Answers are sent once no request is left that came in as a whole, or many are gathered. Invariant: each request is
//! answered once, after it was done; nothing is locked while a connection is waited for.

use std::io::{Read, Write};

use super::ClientError;
use super::handshake::REQUEST_BYTES_MAX;
use super::request_reader::{NextRequest, RequestReader};
use crate::disk::{Disk, DiskError};
use crate::protocol::{DiskCommand, NbdRequest, Replies, ReplyKind};

/// Answers that are sent though more requests are there, bytes.
const GATHERED_BYTES_MAX: usize = 256 << 10;

/// Serves a client until it goes.
///
/// # Errors
/// The client breaks the protocol, or the connection fails.
pub fn transmit(stream: &mut (impl Read + Write), disk: &dyn Disk, kind: ReplyKind) -> Result<(), ClientError> {
    let mut replies = Replies::new(kind);
    let ended = answer_requests(stream, disk, &mut replies);
    // Requests before the end were done, whatever ended it.
    let sent = stream.write_all(replies.gathered());
    ended.and(sent.map_err(ClientError::from))
}

/// Does requests, and sends their answers but for the last.
fn answer_requests(
    stream: &mut (impl Read + Write),
    disk: &dyn Disk,
    replies: &mut Replies,
) -> Result<(), ClientError> {
    let mut requests = RequestReader::new();
    loop {
        let request = match requests.next_request(stream)? {
            NextRequest::Request(request) if request.command == DiskCommand::Disconnect => return Ok(()),
            NextRequest::Request(request) => request,
            NextRequest::End => return Ok(()),
            NextRequest::Garbage => return Err(ClientError::Protocol("a request without its magic number")),
        };
        if request.data_bytes() > REQUEST_BYTES_MAX {
            return Err(ClientError::Protocol("a write of more data than a request may have"));
        }
        let data = requests.data(stream, request.data_bytes() as usize)?;
        answer(&request, data, disk, replies);
        if !requests.has_request() || replies.gathered().len() >= GATHERED_BYTES_MAX {
            stream.write_all(replies.gathered())?;
            replies.clear();
        }
    }
}

/// Does a request, and appends its answer.
fn answer(request: &NbdRequest, data: &[u8], disk: &dyn Disk, replies: &mut Replies) {
    let NbdRequest { cookie, offset, length, is_durable, keeps_room, .. } = *request;
    let length_bytes = u64::from(length);
    let done = match request.command {
        _ if !request.has_known_flags => Err(DiskError::Invalid("a flag that this command does not have")),
        DiskCommand::Read if length > REQUEST_BYTES_MAX => Err(DiskError::Invalid("more than a request may ask for")),
        DiskCommand::Read => {
            let read = |room: &mut [u8]| disk.read(offset, room).map_err(|error| (error.errno(), error.to_string()));
            return replies.data(cookie, offset, length as usize, read);
        }
        DiskCommand::Write => disk.write(offset, data, is_durable),
        DiskCommand::Flush => disk.flush(),
        DiskCommand::Trim => disk.trim(offset, length_bytes, is_durable),
        DiskCommand::WriteZeroes => disk.write_zeroes(offset, length_bytes, keeps_room, is_durable),
        DiskCommand::Disconnect | DiskCommand::Unsupported => Err(DiskError::Invalid("a command that is not offered")),
    };
    match done {
        Ok(()) => replies.done(cookie),
        Err(error) => replies.failed(cookie, error.errno(), &error.to_string()),
    }
}
