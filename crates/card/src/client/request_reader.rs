//! Requests as they come in: many are taken from the connection at once.
//!
//! Invariant: bytes are given in the order in which they came, each once; no more is kept than the buffer and the data of
//! one request.

use std::io::{self, Read};
use std::ops::Range;

use crate::protocol::{NbdRequest, REQUEST_BYTES};

/// Bytes taken from a connection at once: requests of a deep queue with pages to write.
const BUFFER_BYTES: usize = 256 << 10;
/// Memory for the data of a request that is kept between requests, bytes.
const KEPT_BYTES: usize = 4 << 20;

/// The bytes that came in and were not used yet.
pub struct RequestReader {
    buffer: Vec<u8>,
    /// The bytes in it that are still to be used.
    unused: Range<usize>,
    /// Data of a request that is not in the buffer as a whole.
    data: Vec<u8>,
}

/// The next thing that a connection holds.
pub enum NextRequest {
    Request(NbdRequest),
    /// Its magic number is missing.
    Garbage,
    End,
}

impl RequestReader {
    pub fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], unused: 0..0, data: Vec::new() }
    }

    /// Whether the next request, with its data, has come in as a whole, so that taking it does not wait.
    pub fn has_request(&self) -> bool {
        let unused = self.unused();
        let Some(head) = unused.first_chunk::<REQUEST_BYTES>() else { return false };
        let data_bytes = NbdRequest::decode(head).map_or(0, |request| request.data_bytes() as usize);
        unused.len() - REQUEST_BYTES >= data_bytes
    }

    fn unused(&self) -> &[u8] {
        self.buffer.get(self.unused.clone()).unwrap_or_default()
    }

    /// The next request's head.
    pub fn next_request(&mut self, stream: &mut impl Read) -> io::Result<NextRequest> {
        while self.unused.len() < REQUEST_BYTES {
            if self.fill(stream)? == 0 {
                return if self.unused.is_empty() { Ok(NextRequest::End) } else { Err(ended()) };
            }
        }
        let head = self.unused().first_chunk::<REQUEST_BYTES>();
        let request = head.and_then(NbdRequest::decode);
        self.unused.start += REQUEST_BYTES;
        Ok(request.map_or(NextRequest::Garbage, NextRequest::Request))
    }

    /// The data that follows the head, so many bytes of it.
    pub fn data(&mut self, stream: &mut impl Read, count: usize) -> io::Result<&[u8]> {
        if count <= BUFFER_BYTES {
            while self.unused.len() < count {
                if self.fill(stream)? == 0 {
                    return Err(ended());
                }
            }
            let at = self.unused.start..self.unused.start + count;
            self.unused.start = at.end;
            return Ok(self.buffer.get(at).unwrap_or_default());
        }
        if self.data.len() < count || self.data.len() > count.max(KEPT_BYTES) {
            self.data = vec![0; count];
        }
        let had = self.unused().len().min(count);
        let (from_buffer, rest) = self.data.split_at_mut(had);
        from_buffer.copy_from_slice(self.buffer.get(self.unused.start..self.unused.start + had).unwrap_or_default());
        stream.read_exact(rest.get_mut(..count - had).unwrap_or_default())?;
        self.unused.start += had;
        Ok(self.data.get(..count).unwrap_or_default())
    }

    /// Takes in whatever has come, or waits for something; how many bytes.
    fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        if self.unused.start > 0 {
            self.buffer.copy_within(self.unused.clone(), 0);
            self.unused = 0..self.unused.len();
        }
        let room = self.buffer.get_mut(self.unused.end..).unwrap_or_default();
        loop {
            match stream.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.unused.end += count;
                    return Ok(count);
                }
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within a request")
}
