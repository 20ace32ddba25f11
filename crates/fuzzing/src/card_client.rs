//! An input of the `card` fuzzer: a client of a card, with options and requests that make sense or not.
//!
//! The bytes of the client come from memory, a few at a time; the answers are compared with those that a shadow of the disk
//! gives. Invariant: up to bytes that break the protocol every answer is known.

use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use card::client::{Agreement, ExportOffer, handshake, transmit};
use card::host::{self, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES};
use card::{CardVolume, Disk, Export};
use emulator::{Chip, Profile};
use ftl::{Device, Format, Options, Scheme, TooLarge};

use crate::record::{Record, split};

const ACTS_MAX: usize = 40;
const SECTOR_BYTES: u64 = 512;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
/// Data of a write at most, bytes: more only makes an input slow.
const WRITE_BYTES_MAX: u32 = 20_000;
/// Bytes of a read that a server gives at most.
const READ_BYTES_MAX: u32 = 32 << 20;

/// A client of a card.
pub struct CardInput {
    scheme: Scheme,
    is_structured: bool,
    /// It enters with EXPORT_NAME, as clients of old did.
    is_old: bool,
    cache_sectors: usize,
    /// Bytes that come in at a time.
    chunk_bytes: usize,
    acts: Vec<ClientAct>,
}

#[derive(Clone, Copy, Debug)]
enum ClientAct {
    /// An option of the handshake, with so many bytes of data.
    Option {
        number: u32,
        data: [u8; 8],
        count: usize,
    },
    Request {
        command: u16,
        flags: u16,
        offset: u64,
        length: u32,
    },
    /// Bytes that are no request.
    Garbage {
        bytes: [u8; 8],
        count: usize,
    },
}

impl ClientAct {
    fn decode(record: &Record) -> Self {
        let (form, value) = (record.u8(1), record.tail_u64());
        match record.u8(0) % 32 {
            0..3 => {
                let number = if form % 4 == 0 { value as u32 } else { u32::from(form % 12) };
                Self::Option { number, data: record.tail(), count: usize::from(record.u8(2) % 9) }
            }
            3 => Self::Garbage { bytes: record.tail(), count: usize::from(form % 9) },
            of_request => {
                let command = match of_request {
                    4..12 => WRITE,
                    12..20 => READ,
                    20..24 => TRIM,
                    24..28 => WRITE_ZEROES,
                    28 | 29 => FLUSH,
                    _ => u16::from(form),
                };
                let flags = if form % 8 == 0 { record.u16(2) } else { u16::from(form % 2) };
                // Most requests lie on the disk, which is small.
                let offset = if form >= 250 { value } else { value % (200 << 10) };
                let length = match record.u16(4) {
                    length if length % 16 == 0 => u32::from(length) * 64,
                    length if form == 249 && command != WRITE => u32::from(length) << 16,
                    length => u32::from(length % 3_000),
                };
                Self::Request {
                    command,
                    flags,
                    offset,
                    length: if command == WRITE { length.min(WRITE_BYTES_MAX) } else { length },
                }
            }
        }
    }
}

impl<'a> Arbitrary<'a> for CardInput {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let ([scheme, manner, cache, chunk], records) = split::<4>(bytes.bytes(bytes.len())?);
        Ok(Self {
            scheme: Scheme::ALL[usize::from(scheme) % Scheme::ALL.len()],
            is_structured: manner & 1 != 0,
            is_old: manner & 2 != 0,
            cache_sectors: usize::from(cache) % 64,
            chunk_bytes: 1 + usize::from(chunk) * 16,
            acts: records.take(ACTS_MAX).map(|record| ClientAct::decode(&record)).collect(),
        })
    }
}

impl fmt::Debug for CardInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, is_structured, is_old, cache_sectors, chunk_bytes, .. } = self;
        writeln!(
            f,
            "{scheme}, structured {is_structured}, old {is_old}, cache {cache_sectors}, {chunk_bytes} bytes at a time"
        )?;
        self.acts.iter().try_for_each(|act| writeln!(f, "  {act:?}"))
    }
}

/// A small chip with an empty volume of each scheme.
static CHIPS: LazyLock<Vec<Chip>> = LazyLock::new(|| Scheme::ALL.map(empty_chip).into());

fn empty_chip(scheme: Scheme) -> Chip {
    let mut profile = Profile::builtin("k9f5608u0m").expect("it is built in");
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 8);
    let chip = Chip::new(&profile, 1).expect("the profile is sound");
    let format = Format { extra_blocks: 24, ..Format::usual(&chip, scheme, 1).expect("the chip is sound") };
    let made = Device::format(chip, scheme, &format, Options::default());
    made.expect("the format fits").into_chip()
}

fn opened(chip: Chip) -> CardVolume<Chip> {
    let options = Options { too_large: TooLarge::Split, ..Options::default() };
    CardVolume::open(chip, options, |_| Ok(())).expect("the volume is sound")
}

/// The bytes of a client, and those that it is answered.
struct ScriptedStream {
    sent: Cursor<Vec<u8>>,
    chunk_bytes: usize,
    answered: Vec<u8>,
}

impl Read for ScriptedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.chunk_bytes);
        self.sent.read(&mut buffer[..count])
    }
}

impl Write for ScriptedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answered.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An answer that must come.
struct ExpectedAnswer {
    cookie: u64,
    /// The number of an error, or the data of a read.
    outcome: std::result::Result<Vec<u8>, u32>,
}

impl CardInput {
    /// Serves the client, and compares its answers and the disk with a shadow.
    pub fn run(&self) {
        let at = Scheme::ALL.iter().position(|scheme| *scheme == self.scheme).expect("it is one of them");
        let export = Export::new(opened(CHIPS[at].snapshot()), self.cache_sectors, false, None);
        let mut shadow = vec![0; export.shape().bytes as usize];
        let (script, expected, is_known) = self.script(&mut shadow);
        let mut stream =
            ScriptedStream { sent: Cursor::new(script), chunk_bytes: self.chunk_bytes, answered: Vec::new() };
        let offer = ExportOffer { name: "card".into(), description: String::new(), shape: export.shape() };
        let Ok(agreement) = handshake(&mut stream, &offer, || true) else { return };
        let Agreement::Transmit(kind) = agreement else { return };
        // The replies of the handshake.
        stream.answered.clear();
        // An end by garbage is as good as one by the client.
        let _ = transmit(&mut stream, &export, kind);
        let mut answers = Cursor::new(stream.answered);
        for ExpectedAnswer { cookie, outcome } in expected {
            let mut data = vec![0; outcome.as_ref().map_or(0, Vec::len)];
            let (answered, found) = host::answer(&mut answers, &mut data).expect("an answer");
            let found = found.map(|()| data).map_err(|error| error.errno);
            assert!((answered, &found) == (cookie, &outcome), "request {cookie}: {:?}", found.map(|data| data.len()));
        }
        if !is_known {
            return;
        }
        let mut found = vec![0; shadow.len()];
        export.read(0, &mut found).expect("the chip is sound");
        let differs = found.iter().zip(&shadow).position(|(found, expected)| found != expected);
        assert!(differs.is_none(), "the disk differs at {differs:?}");
    }

    /// The client's bytes, the answers up to the first garbage, and whether there was none; the shadow becomes the disk.
    fn script(&self, shadow: &mut [u8]) -> (Vec<u8>, Vec<ExpectedAnswer>, bool) {
        let (mut script, mut expected, mut is_sound) = (3_u32.to_be_bytes().to_vec(), Vec::new(), true);
        let mut option = |number, data: &[u8]| host::send_option(&mut script, number, data).expect("memory takes it");
        if self.is_structured {
            option(8, &[]);
        }
        for act in &self.acts {
            if let ClientAct::Option { number, data, count } = act {
                option(*number, &data[..*count]);
                // The handshake may end with these, so that the rest is no request.
                is_sound &= ![1, 2, 7].contains(number);
            }
        }
        if self.is_old {
            option(1, b"card")
        } else {
            option(7, b"\0\0\0\x04card\0\0")
        }
        for (act, cookie) in self.acts.iter().zip(1..) {
            match *act {
                ClientAct::Option { .. } => {}
                ClientAct::Garbage { bytes, count } => {
                    script.extend(&bytes[..count]);
                    is_sound &= count == 0;
                }
                ClientAct::Request { command: 2, .. } => {
                    script.extend(host::request(2, 0, cookie, (0, 0), &[]));
                    return (script, expected, is_sound);
                }
                ClientAct::Request { command, flags, offset, length } => {
                    let data = vec![cookie as u8; if command == WRITE { length as usize } else { 0 }];
                    script.extend(host::request(command, flags, cookie, (offset, length), &data));
                    if is_sound {
                        let outcome = apply(shadow, (command, flags), (offset, length), cookie as u8);
                        expected.push(ExpectedAnswer { cookie, outcome });
                    }
                }
            }
        }
        (script, expected, is_sound)
    }
}

/// The outcome of a request on a shadow of the disk.
fn apply(
    shadow: &mut [u8],
    (command, flags): (u16, u16),
    (offset, length): (u64, u32),
    byte: u8,
) -> std::result::Result<Vec<u8>, u32> {
    let own_flags = match command {
        READ => 4,
        WRITE_ZEROES => 2,
        _ => 0,
    };
    let end = offset.checked_add(length.into()).filter(|&end| end <= shadow.len() as u64);
    match (command, end) {
        _ if flags & !(1 | own_flags) != 0 => Err(EINVAL),
        (FLUSH, _) => Ok(Vec::new()),
        (READ, _) if length > READ_BYTES_MAX => Err(EINVAL),
        (WRITE | WRITE_ZEROES, None) => Err(ENOSPC),
        (READ, Some(end)) => Ok(shadow[offset as usize..end as usize].to_vec()),
        (WRITE, Some(end)) => {
            shadow[offset as usize..end as usize].fill(byte);
            Ok(Vec::new())
        }
        (WRITE_ZEROES, Some(end)) => {
            shadow[offset as usize..end as usize].fill(0);
            Ok(Vec::new())
        }
        (TRIM, Some(end)) => {
            let (first, end) = (offset.next_multiple_of(SECTOR_BYTES), end / SECTOR_BYTES * SECTOR_BYTES);
            if first < end {
                shadow[first as usize..end as usize].fill(0);
            }
            Ok(Vec::new())
        }
        _ => Err(EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_many_kinds_are_answered_as_the_shadow_says() {
        for seed in 0..3_000_u64 {
            let mut state = seed;
            let bytes: Vec<u8> = (0..4 + 16 * (seed % 40))
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                })
                .collect();
            CardInput::arbitrary(&mut Unstructured::new(&bytes)).unwrap().run();
        }
    }
}
