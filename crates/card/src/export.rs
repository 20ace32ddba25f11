//! Bytes over sectors: a translation layer's device as a disk that several clients use at once.
//!
//! Nothing here knows of the wire. Requests are done one after the other, each under one lock. Invariants: parts of sectors
//! are read first, so that the bytes beside them stay; a request that changes something and fails half way leaves a device
//! that was opened anew.

mod span;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ftl::{BlockDevice, Error, WriteCache};

use crate::disk::{Disk, DiskError, DiskShape};
use crate::protocol::DiskCommand;
use crate::record::{RecordedOp, RequestRecorder};
use crate::volume::ServedDevice;

use span::ByteSpan;

/// Sectors of zeros that are written at once.
const ZERO_SECTORS: u64 = 64;
/// Memory for parts of sectors that is kept between requests, bytes.
const KEPT_BYTES: usize = 1 << 20;

/// Requests of clients, and bytes that they named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Trims, and writes of zeros.
    pub trims: u64,
    pub trimmed_bytes: u64,
    pub flushes: u64,
    /// Requests that failed.
    pub failures: u64,
}

/// A device as a disk.
pub struct Export<D> {
    shape: DiskShape,
    served: Mutex<LockedDevice<D>>,
}

/// All that is used under the lock.
struct LockedDevice<D> {
    device: WriteCache<D>,
    /// Whole sectors of a request that begins or ends within one.
    sectors: Vec<u8>,
    counts: HostCounts,
    recorder: Option<RequestRecorder>,
    /// When the last request was done.
    done: Instant,
}

impl<D: ServedDevice> Export<D> {
    /// Serves a device behind a write cache of so many sectors; `recorder` writes the requests down.
    pub fn new(device: D, cache_sectors: usize, is_read_only: bool, recorder: Option<RequestRecorder>) -> Self {
        let sector_bytes = device.sector_bytes() as u32;
        let bytes = device.sectors() * u64::from(sector_bytes);
        let served = LockedDevice {
            device: WriteCache::new(device, cache_sectors),
            sectors: Vec::new(),
            counts: HostCounts::default(),
            recorder,
            done: Instant::now(),
        };
        Self { shape: DiskShape { bytes, sector_bytes, is_read_only }, served: Mutex::new(served) }
    }

    /// Looks at the device between two requests, or works on it in the background; clients wait meanwhile.
    pub fn between_requests<T>(&self, look: impl FnOnce(&mut D, &HostCounts, Instant) -> T) -> T {
        let served = &mut *self.locked();
        look(served.device.device_mut(), &served.counts, served.done)
    }

    /// Makes everything durable, the recording too, for the end of the service.
    ///
    /// # Errors
    /// The device, its medium or the recording failed.
    pub fn finish(&self) -> Result<(), DiskError> {
        let served = &mut *self.locked();
        let flushed = if self.shape.is_read_only { Ok(()) } else { served.flush() };
        let recorded = served.recorder.take().map_or(Ok(()), RequestRecorder::finish);
        flushed.and(recorded.map_err(|error| DiskError::Failed(format!("the recording: {error}"))))
    }

    fn locked(&self) -> MutexGuard<'_, LockedDevice<D>> {
        // What a thread left half done that panicked is opened anew by the next change that fails.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sectors of a range that the disk has.
    fn span(&self, command: DiskCommand, offset: u64, length: u64) -> Result<ByteSpan, DiskError> {
        let bytes = self.shape.bytes;
        match offset.checked_add(length) {
            Some(end) if end <= bytes => Ok(ByteSpan::new(offset, length, self.shape.sector_bytes.into())),
            _ => Err(DiskError::BeyondEnd { command, offset, length, bytes }),
        }
    }

    /// Does a request that changes something.
    fn change(
        &self,
        command: DiskCommand,
        (offset, length): (u64, u64),
        is_durable: bool,
        run: impl FnOnce(&mut LockedDevice<D>, ByteSpan) -> ftl::Result<()>,
    ) -> Result<(), DiskError> {
        if self.shape.is_read_only {
            return Err(DiskError::ReadOnly);
        }
        let span = self.span(command, offset, length)?;
        let served = &mut *self.locked();
        let mut changed = run(served, span);
        if is_durable {
            changed = changed.and_then(|()| served.device.flush());
            served.record(RecordedOp::Flush, 0, 0);
        }
        served.end(changed)
    }
}

impl<D: ServedDevice> LockedDevice<D> {
    fn record(&mut self, op: RecordedOp, offset: u64, length: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(op, offset, length);
        }
    }

    /// The end of a request that came out so; a change that failed may have left the device unusable.
    fn end(&mut self, outcome: ftl::Result<()>) -> Result<(), DiskError> {
        self.done = Instant::now();
        let Err(error) = outcome else { return Ok(()) };
        self.counts.failures += 1;
        let is_whole = matches!(error, Error::OutOfRange { .. } | Error::Length { .. } | Error::TooLarge { .. });
        let reopened = if is_whole { Ok(()) } else { self.device.device_mut().reopen() };
        Err(DiskError::Failed(match reopened {
            Ok(()) => error.to_string(),
            Err(why) => format!("{error}; and it cannot be opened anew: {why}"),
        }))
    }

    /// Room for whole sectors, bytes.
    fn room(&mut self, bytes: usize) {
        if self.sectors.len() < bytes || self.sectors.len() > KEPT_BYTES {
            self.sectors = vec![0; bytes];
        }
    }

    /// Reads a range that begins or ends within a sector.
    fn read_parts(&mut self, span: ByteSpan, data: &mut [u8]) -> ftl::Result<()> {
        self.room(span.sector_range_bytes());
        let sectors = self.sectors.get_mut(..span.sector_range_bytes()).unwrap_or_default();
        self.device.read(span.first_sector(), sectors)?;
        let within = sectors.get(span.within()).unwrap_or_default();
        data.copy_from_slice(within);
        Ok(())
    }

    /// Writes a range that begins or ends within a sector, in one request to the device.
    fn write_parts(&mut self, span: ByteSpan, data: &[u8]) -> ftl::Result<()> {
        self.room(span.sector_range_bytes());
        let sectors = self.sectors.get_mut(..span.sector_range_bytes()).unwrap_or_default();
        for (sector, bytes) in span.partial_sectors() {
            self.device.read(sector, sectors.get_mut(bytes).unwrap_or_default())?;
        }
        if let Some(within) = sectors.get_mut(span.within()) {
            within.copy_from_slice(data);
        }
        self.device.write(span.first_sector(), sectors)
    }

    /// Writes zeros to a range, some sectors at a time; the recording has a line for each time.
    fn write_zeros(&mut self, span: ByteSpan) -> ftl::Result<()> {
        let at_once = ZERO_SECTORS * span.sector_bytes();
        let mut offset = span.offset();
        while offset < span.end() {
            // Up to the end of a group of sectors.
            let end = ((offset / at_once + 1) * at_once).min(span.end());
            let part = ByteSpan::new(offset, end - offset, span.sector_bytes());
            self.record(RecordedOp::Write, part.offset(), part.length());
            let zeros = vec![0; (end - offset) as usize];
            if part.is_whole() {
                self.device.write(part.first_sector(), &zeros)?
            } else {
                self.write_parts(part, &zeros)?
            }
            offset = end;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        let flushed = self.device.flush();
        self.end(flushed)?;
        self.device.device_mut().sync().map_err(DiskError::Failed)
    }
}

impl<D: ServedDevice> Disk for Export<D> {
    fn shape(&self) -> DiskShape {
        self.shape
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), DiskError> {
        let span = self.span(DiskCommand::Read, offset, data.len() as u64)?;
        let served = &mut *self.locked();
        served.counts.reads += 1;
        served.counts.read_bytes += span.length();
        served.record(RecordedOp::Read, offset, span.length());
        let read = match span.is_whole() {
            true => served.device.read(span.first_sector(), data),
            false => served.read_parts(span, data),
        };
        served.done = Instant::now();
        read.map_err(|error| {
            served.counts.failures += 1;
            DiskError::Failed(error.to_string())
        })
    }

    fn write(&self, offset: u64, data: &[u8], is_durable: bool) -> Result<(), DiskError> {
        self.change(DiskCommand::Write, (offset, data.len() as u64), is_durable, |served, span| {
            served.counts.writes += 1;
            served.counts.written_bytes += span.length();
            served.record(RecordedOp::Write, offset, span.length());
            match span.is_whole() {
                true => served.device.write(span.first_sector(), data),
                false => served.write_parts(span, data),
            }
        })
    }

    fn trim(&self, offset: u64, length: u64, is_durable: bool) -> Result<(), DiskError> {
        self.change(DiskCommand::Trim, (offset, length), is_durable, |served, span| {
            let (_, whole, _) = span.parts();
            served.counts.trims += 1;
            served.counts.trimmed_bytes += whole.length();
            served.record(RecordedOp::Trim, whole.offset(), whole.length());
            served.device.trim(whole.first_sector(), whole.sectors())
        })
    }

    fn write_zeroes(&self, offset: u64, length: u64, keeps_room: bool, is_durable: bool) -> Result<(), DiskError> {
        self.change(DiskCommand::WriteZeroes, (offset, length), is_durable, |served, span| {
            if keeps_room {
                served.counts.writes += 1;
                served.counts.written_bytes += length;
                return served.write_zeros(span);
            }
            served.counts.trims += 1;
            served.counts.trimmed_bytes += length;
            let (head, whole, tail) = span.parts();
            for part in [head, tail].into_iter().filter(|part| part.length() > 0) {
                served.write_zeros(part)?;
            }
            served.record(RecordedOp::Trim, whole.offset(), whole.length());
            served.device.trim(whole.first_sector(), whole.sectors())
        })
    }

    fn flush(&self) -> Result<(), DiskError> {
        let served = &mut *self.locked();
        served.counts.flushes += 1;
        served.record(RecordedOp::Flush, 0, 0);
        if self.shape.is_read_only {
            return Ok(());
        }
        served.flush()
    }
}
