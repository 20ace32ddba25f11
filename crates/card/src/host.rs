//! The host's side of the protocol: a small client, for tests, fuzzers and measurements.
//!
//! It trusts its server: an answer that breaks the protocol is an error, and ends the connection's use. Invariant: a request's
//! answer is taken before the next request is made, unless the caller takes care of both.

use std::io::{self, ErrorKind, Read, Write};

/// The number and the text of an error that a server answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {errno}: {text}")]
pub struct AnsweredError {
    pub errno: u32,
    /// Empty with simple replies.
    pub text: String,
}

/// The abilities of an export, as the server tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldExport {
    pub bytes: u64,
    /// Transmission flags.
    pub flags: u16,
    /// The least, the preferred and the greatest size of a request, where the server tells them.
    pub sizes: Option<[u32; 3]>,
}

/// DiskCommand flags.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;

/// DiskCommand numbers.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;

/// A connection that has gone through the handshake.
pub struct NbdHost<S> {
    stream: S,
    export: ToldExport,
    next_cookie: u64,
}

/// The outcome of a request: done, or the error that was answered; the outer error is the connection's.
pub type RequestOutcome = io::Result<Result<(), AnsweredError>>;

impl<S: Read + Write> NbdHost<S> {
    /// Goes through the handshake with GO; `structured` asks for structured replies first.
    ///
    /// # Errors
    /// The connection fails, or the server refuses the export.
    pub fn connect(mut stream: S, name: &str, structured: bool) -> io::Result<Self> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        expect(greeting.starts_with(b"NBDMAGICIHAVEOPT"), "no greeting")?;
        stream.write_all(&3_u32.to_be_bytes())?;
        if structured {
            send_option(&mut stream, 8, &[])?;
            expect(option_reply(&mut stream)?.0 == 1, "structured replies are refused")?;
        }
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend(0_u16.to_be_bytes());
        send_option(&mut stream, 7, &data)?;
        let mut export = ToldExport::default();
        loop {
            let (kind, data) = option_reply(&mut stream)?;
            match (kind, data.split_first_chunk()) {
                (1, _) => break,
                (3, Some((number, data))) => take_information(&mut export, u16::from_be_bytes(*number), data)?,
                _ => return Err(io::Error::other(String::from_utf8_lossy(&data).into_owned())),
            }
        }
        Ok(Self { stream, export, next_cookie: 1 })
    }

    pub fn export(&self) -> ToldExport {
        self.export
    }

    /// The connection, for bytes that are no request of this.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends a request, and gives its cookie.
    ///
    /// # Errors
    /// The connection fails.
    pub fn send(&mut self, command: u16, flags: u16, range: (u64, u32), data: &[u8]) -> io::Result<u64> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.stream.write_all(&request(command, flags, cookie, range, data))?;
        Ok(cookie)
    }

    /// Takes the next answer, to the request of that cookie; of a read that was done its data goes to `data`.
    ///
    /// # Errors
    /// The connection fails, or the answer makes no sense.
    pub fn receive(&mut self, cookie: u64, data: &mut [u8]) -> RequestOutcome {
        let (answered, outcome) = answer(&mut self.stream, data)?;
        expect(answered == cookie, "an answer to another request")?;
        Ok(outcome)
    }

    /// Reads bytes from an offset on.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> RequestOutcome {
        let cookie = self.send(READ, 0, (offset, data.len() as u32), &[])?;
        self.receive(cookie, data)
    }

    /// Writes bytes from an offset on.
    pub fn write(&mut self, offset: u64, data: &[u8], flags: u16) -> RequestOutcome {
        let cookie = self.send(WRITE, flags, (offset, data.len() as u32), data)?;
        self.receive(cookie, &mut [])
    }

    /// Asks for something that has no data: TRIM, WRITE_ZEROES, FLUSH.
    pub fn ask(&mut self, command: u16, flags: u16, range: (u64, u32)) -> RequestOutcome {
        let cookie = self.send(command, flags, range, &[])?;
        self.receive(cookie, &mut [])
    }

    /// Says goodbye, and gives the connection back.
    ///
    /// # Errors
    /// The connection fails.
    pub fn disconnect(mut self) -> io::Result<S> {
        self.send(DISCONNECT, 0, (0, 0), &[])?;
        Ok(self.stream)
    }
}

/// Takes an answer: the cookie of its request, and its outcome; of a read that was done its data goes to `data`.
///
/// # Errors
/// The connection fails, or the answer makes no sense.
pub fn answer(stream: &mut impl Read, data: &mut [u8]) -> io::Result<(u64, Result<(), AnsweredError>)> {
    match u32::from_be_bytes(take(stream)?) {
        0x6744_6698 => {
            let (errno, cookie) = (u32::from_be_bytes(take(stream)?), u64::from_be_bytes(take(stream)?));
            if errno != 0 {
                return Ok((cookie, Err(AnsweredError { errno, text: String::new() })));
            }
            stream.read_exact(data)?;
            Ok((cookie, Ok(())))
        }
        0x668e_33ef => structured_answer(stream, data),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "no answer")),
    }
}

/// The rest of an answer in one chunk.
fn structured_answer(stream: &mut impl Read, data: &mut [u8]) -> io::Result<(u64, Result<(), AnsweredError>)> {
    const DATA: u16 = 1;
    const ERROR: u16 = 0x8001;
    let (flags, kind) = (u16::from_be_bytes(take(stream)?), u16::from_be_bytes(take(stream)?));
    let (cookie, length) = (u64::from_be_bytes(take(stream)?), u32::from_be_bytes(take(stream)?));
    expect(flags == 1, "an answer in several chunks")?;
    if kind == DATA {
        expect(length as usize == data.len() + 8, "data of another length")?;
        take::<8>(stream)?;
        stream.read_exact(data)?;
        return Ok((cookie, Ok(())));
    }
    expect(kind == ERROR, "an unknown chunk")?;
    let errno = u32::from_be_bytes(take(stream)?);
    let mut text = vec![0; u16::from_be_bytes(take(stream)?).into()];
    expect(length as usize == text.len() + 6, "an error of another length")?;
    stream.read_exact(&mut text)?;
    Ok((cookie, Err(AnsweredError { errno, text: String::from_utf8_lossy(&text).into_owned() })))
}

fn take<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a request, with the data of a write behind it.
pub fn request(command: u16, flags: u16, cookie: u64, (offset, length): (u64, u32), data: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(28 + data.len());
    request.extend(0x2560_9513_u32.to_be_bytes());
    request.extend(flags.to_be_bytes());
    request.extend(command.to_be_bytes());
    request.extend(cookie.to_be_bytes());
    request.extend(offset.to_be_bytes());
    request.extend(length.to_be_bytes());
    request.extend(data);
    request
}

fn expect(holds: bool, otherwise: &'static str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::new(ErrorKind::InvalidData, otherwise)) }
}

/// Sends an option.
///
/// # Errors
/// The connection fails.
pub fn send_option(stream: &mut impl Write, number: u32, data: &[u8]) -> io::Result<()> {
    let mut option = b"IHAVEOPT".to_vec();
    option.extend(number.to_be_bytes());
    option.extend((data.len() as u32).to_be_bytes());
    option.extend(data);
    stream.write_all(&option)
}

/// Takes a reply to an option: its kind, and its data.
///
/// # Errors
/// The connection fails, or the reply makes no sense.
pub fn option_reply(stream: &mut impl Read) -> io::Result<(u32, Vec<u8>)> {
    let mut head = [0; 20];
    stream.read_exact(&mut head)?;
    expect(head.starts_with(&0x0003_e889_0455_65a9_u64.to_be_bytes()), "no reply to an option")?;
    let number =
        |at: usize| head.get(at..).and_then(|from| from.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four));
    let mut data = vec![0; number(16) as usize];
    stream.read_exact(&mut data)?;
    Ok((number(12), data))
}

fn take_information(export: &mut ToldExport, number: u16, data: &[u8]) -> io::Result<()> {
    let wrong = || io::Error::new(ErrorKind::InvalidData, "information of another length");
    match number {
        0 => {
            let (bytes, flags) = data.split_first_chunk().ok_or_else(wrong)?;
            export.bytes = u64::from_be_bytes(*bytes);
            export.flags = u16::from_be_bytes(flags.try_into().map_err(|_| wrong())?);
        }
        3 => {
            let (sizes, _) = data.as_chunks::<4>();
            let sizes: Vec<u32> = sizes.iter().map(|size| u32::from_be_bytes(*size)).collect();
            export.sizes = Some(sizes.try_into().map_err(|_| wrong())?);
        }
        _ => {}
    }
    Ok(())
}
