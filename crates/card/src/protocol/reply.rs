//! Answers of the transmission, gathered to be sent at once.
//!
//! Invariant: the bytes gathered are whole answers, in the form that the client chose: simple, or structured for reads
//! and for errors, which then have a text. Data is read into its place, and not copied.

const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// The only chunk of an answer.
const DONE: u16 = 1;
const OFFSET_DATA: u16 = 1;
const ERROR: u16 = (1 << 15) | 1;
/// The longest text of an error that the protocol has, bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// The form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    Simple,
    Structured,
}

/// Answers that are not sent yet.
#[derive(Debug)]
pub struct Replies {
    kind: ReplyKind,
    /// Room, of which the first bytes are filled.
    bytes: Vec<u8>,
    filled: usize,
}

impl Replies {
    /// Room that is kept between requests, bytes.
    const KEPT_BYTES: usize = 4 << 20;

    /// Room grows by so much at least, bytes.
    const GROWN_BYTES: usize = 64 << 10;

    pub fn new(kind: ReplyKind) -> Self {
        Self { kind, bytes: Vec::new(), filled: 0 }
    }

    /// The bytes to send.
    pub fn gathered(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// All of it was sent.
    pub fn clear(&mut self) {
        self.filled = 0;
        if self.bytes.len() > Self::KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// The answer that something was done.
    pub fn done(&mut self, cookie: u64) {
        self.simple(0, cookie);
    }

    /// The answer that something was not done: the error's number, and its text where the client takes it.
    pub fn failed(&mut self, cookie: u64, errno: u32, text: &str) {
        match self.kind {
            ReplyKind::Simple => self.simple(errno, cookie),
            ReplyKind::Structured => {
                let text = if text.len() <= TEXT_BYTES_MAX { text } else { "" };
                self.chunk(ERROR, cookie, 6 + text.len() as u32);
                self.put(&errno.to_be_bytes());
                self.put(&(text.len() as u16).to_be_bytes());
                self.put(text.as_bytes());
            }
        }
    }

    /// The answer to a read of so many bytes: `read` reads them, or tells an error's number and text.
    pub fn data(
        &mut self,
        cookie: u64,
        offset: u64,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), (u32, String)>,
    ) {
        let before = self.filled;
        match self.kind {
            ReplyKind::Simple => self.simple(0, cookie),
            ReplyKind::Structured => {
                self.chunk(OFFSET_DATA, cookie, 8 + length as u32);
                self.put(&offset.to_be_bytes());
            }
        }
        if let Err((errno, text)) = read(self.room(length)) {
            self.filled = before;
            self.failed(cookie, errno, &text);
        }
    }

    fn simple(&mut self, errno: u32, cookie: u64) {
        self.put(&SIMPLE_MAGIC.to_be_bytes());
        self.put(&errno.to_be_bytes());
        self.put(&cookie.to_be_bytes());
    }

    fn chunk(&mut self, kind: u16, cookie: u64, length: u32) {
        self.put(&CHUNK_MAGIC.to_be_bytes());
        self.put(&DONE.to_be_bytes());
        self.put(&kind.to_be_bytes());
        self.put(&cookie.to_be_bytes());
        self.put(&length.to_be_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// The next bytes, which count as filled.
    fn room(&mut self, count: usize) -> &mut [u8] {
        let (from, end) = (self.filled, self.filled + count);
        if self.bytes.len() < end {
            self.bytes.resize(end.next_multiple_of(Self::GROWN_BYTES), 0);
        }
        self.filled = end;
        self.bytes.get_mut(from..end).unwrap_or_default()
    }
}
