//! A connection whose reads and writes must all be done by a time.
//!
//! Invariant: a client that sends a byte now and then does not get more time than a silent one.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::stream::ClientStream;

/// A connection until a time.
pub struct DeadlineStream<'a> {
    stream: &'a mut ClientStream,
    until: Instant,
}

impl<'a> DeadlineStream<'a> {
    pub fn new(stream: &'a mut ClientStream, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }

    fn wait_no_longer(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_patience(Some(left), Some(left))
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait_no_longer()?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.wait_no_longer()?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
