//! The phone's half hour over and over: songs and pictures are new in each, and stay until as much is stored as is to be.
//! Invariant: what is removed is the oldest.

use std::collections::VecDeque;

use crate::trace::{Op, Request, Trace, phone};
use torture::content::mix;

/// Songs and pictures, oldest first.
#[derive(Default)]
pub struct Album {
    files: VecDeque<(String, u64)>,
    bytes: u64,
}

/// Whether a file of the half hour is new in each.
fn is_new(file: &str) -> bool {
    file.starts_with("song") || file.starts_with("picture")
}

impl Album {
    /// The file that has to go before another is begun, if it is to hold no more than so much.
    fn oldest_beyond(&mut self, bytes: u64, most_bytes: u64) -> Option<String> {
        if self.bytes + bytes <= most_bytes {
            return None;
        }
        let (file, len) = self.files.pop_front()?;
        self.bytes -= len;
        Some(file)
    }

    fn add(&mut self, file: &str, bytes: u64) {
        self.files.push_back((file.to_owned(), bytes));
        self.bytes += bytes;
    }
}

/// The half hour of that number, with files of its own, and those removed that are too many.
pub fn half_hour(number: u64, live_bytes: u64, album: &mut Album) -> Trace {
    let mut trace = phone::trace(mix(number));
    let mut requests = Vec::with_capacity(trace.requests.len());
    for mut request in trace.requests {
        if is_new(&request.file) {
            request.file = format!("{}-{number}", request.file);
            if let Op::Write { offset, bytes } = request.op {
                if offset == 0 {
                    album.add(&request.file, 0);
                }
                while let Some(file) = album.oldest_beyond(bytes, live_bytes) {
                    requests.push(Request { file, op: Op::Remove, ..request.clone() });
                }
                grow(album, &request.file, bytes);
            }
        }
        requests.push(request);
    }
    trace.requests = requests;
    trace
}

/// A file of the album gets longer.
fn grow(album: &mut Album, file: &str, bytes: u64) {
    if let Some((_, len)) = album.files.iter_mut().rev().find(|(name, _)| name == file) {
        *len += bytes;
        album.bytes += bytes;
    }
}
