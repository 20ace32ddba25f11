//! A write cache before any device: what is written waits in memory, and is durable at the next flush.
//!
//! A sector that is written again meanwhile goes to flash once, and neighbours go there in one request. Where room is
//! lacking, sectors are written out in ascending order, round and round, so that each waits about a turn. Invariant: a read
//! gives what was written last; after a power cut a sector holds what it held at the last flush or what it was given since.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::device::Span;
use crate::{BlockDevice, Error, Result};

/// Neighbours that are written out together: those of an aligned group of so many.
const GROUP_SECTORS: u64 = 32;

/// What waits for a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Its bytes, in a slot.
    Bytes(usize),
    Trimmed,
}

/// A device with a write cache. Requests of several sectors are not there as a whole after a power cut.
#[derive(Clone, Debug)]
pub struct WriteCache<D> {
    device: D,
    /// Sectors that may wait; with 0 of them every request is passed on at once.
    sectors_max: usize,
    waiting: BTreeMap<u64, Waiting>,
    /// The slots, one behind the other, and those that are free.
    slots: Vec<u8>,
    free: Vec<usize>,
    /// The bytes of a request that is written out.
    request: Vec<u8>,
    /// The sector after the last one that was written out.
    next: u64,
}

impl<D: BlockDevice> WriteCache<D> {
    /// A cache of so many sectors before `device`.
    pub fn new(device: D, sectors_max: usize) -> Self {
        let sector_bytes = device.sector_bytes();
        Self {
            device,
            sectors_max,
            waiting: BTreeMap::new(),
            slots: alloc::vec![0; sectors_max * sector_bytes],
            free: (0..sectors_max).collect(),
            request: Vec::with_capacity(sector_bytes * sectors_max.min(GROUP_SECTORS as usize)),
            next: 0,
        }
    }

    /// The device behind the cache.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device behind the cache, for its background work and its chip; what is written to it goes past the cache.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Gives the device back; what waits is lost, as in a power cut.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Sectors that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Makes room for `count` sectors more.
    fn make_room(&mut self, count: u64) -> Result<()> {
        while self.waiting.len() as u64 + count > self.sectors_max as u64 {
            self.write_out()?;
        }
        Ok(())
    }

    /// Writes out the next sectors that wait beside each other, or gives them up.
    fn write_out(&mut self) -> Result<()> {
        let after = self.waiting.range(self.next..).next().or_else(|| self.waiting.iter().next());
        let Some((&first, &kind)) = after else { return Ok(()) };
        let is_trim = kind == Waiting::Trimmed;
        let end = (first / GROUP_SECTORS + 1) * GROUP_SECTORS;
        let same = |(&sector, &waiting): (&u64, &Waiting), at: u64| {
            sector == first + at && (waiting == Waiting::Trimmed) == is_trim
        };
        let run = self.waiting.range(first..end).zip(0..).take_while(|&(entry, at)| same(entry, at));
        let mut count = run.count() as u64;
        while let Err(error) = self.pass_on(first, count, is_trim) {
            // Less at once is possible where many free blocks are needed.
            match error {
                Error::TooLarge { .. } if count > 1 => count /= 2,
                error => return Err(error),
            }
        }
        self.next = first + count;
        self.forget(first, count);
        Ok(())
    }

    fn pass_on(&mut self, first: u64, count: u64, is_trim: bool) -> Result<()> {
        if is_trim {
            return self.device.trim(first, count);
        }
        let sector_bytes = self.device.sector_bytes();
        self.request.clear();
        for waiting in self.waiting.range(first..first + count).map(|(_, waiting)| waiting) {
            if let Waiting::Bytes(slot) = *waiting {
                let bytes = self.slots.get(slot * sector_bytes..(slot + 1) * sector_bytes);
                self.request.extend_from_slice(bytes.unwrap_or_default());
            }
        }
        self.device.write(first, &self.request)
    }

    /// Nothing waits for these sectors any more.
    fn forget(&mut self, first: u64, count: u64) {
        while let Some((&sector, &waiting)) = self.waiting.range(first..first + count).next() {
            self.waiting.remove(&sector);
            self.free.extend(match waiting {
                Waiting::Bytes(slot) => Some(slot),
                Waiting::Trimmed => None,
            });
        }
    }

    /// Lets a sector's bytes wait; there is room.
    fn keep(&mut self, sector: u64, data: &[u8]) {
        let slot = match self.waiting.get(&sector) {
            Some(&Waiting::Bytes(slot)) => Some(slot),
            Some(Waiting::Trimmed) | None => self.free.pop(),
        };
        let Some(slot) = slot else { return };
        self.waiting.insert(sector, Waiting::Bytes(slot));
        let bytes = self.slots.get_mut(slot * data.len()..(slot + 1) * data.len());
        bytes.into_iter().for_each(|bytes| bytes.copy_from_slice(data));
    }
}

impl<D: BlockDevice> BlockDevice for WriteCache<D> {
    fn sector_bytes(&self) -> usize {
        self.device.sector_bytes()
    }

    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        if self.waiting.is_empty() {
            return self.device.read(sector, data);
        }
        Span::of_bytes(self, sector, data.len())?;
        let sector_bytes = self.sector_bytes();
        for (sector, data) in (sector..).zip(data.chunks_exact_mut(sector_bytes)) {
            match self.waiting.get(&sector) {
                None => self.device.read(sector, data)?,
                Some(Waiting::Trimmed) => data.fill(0),
                Some(&Waiting::Bytes(slot)) => {
                    let bytes = self.slots.get(slot * sector_bytes..(slot + 1) * sector_bytes);
                    bytes.into_iter().for_each(|bytes| data.copy_from_slice(bytes));
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        if span.count > self.sectors_max as u64 {
            self.device.write(sector, data)?;
            self.forget(span.first, span.count);
            return Ok(());
        }
        self.make_room(span.count)?;
        let sector_bytes = self.sector_bytes();
        (sector..).zip(data.chunks_exact(sector_bytes)).for_each(|(sector, data)| self.keep(sector, data));
        Ok(())
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        let span = Span::new(self, sector, count)?;
        if span.count > self.sectors_max as u64 {
            self.device.trim(sector, count)?;
            self.forget(span.first, span.count);
            return Ok(());
        }
        self.make_room(span.count)?;
        self.forget(span.first, span.count);
        self.waiting.extend((span.first..span.first + span.count).map(|sector| (sector, Waiting::Trimmed)));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.next = 0;
        while !self.waiting.is_empty() {
            self.write_out()?;
        }
        self.device.flush()
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::{Device, Format, Options, Scheme};

    fn device() -> Device<Chip> {
        let mut profile = Profile::builtin("k9f5608u0m").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (40, 8);
        let format = Format { volume: 1, extra_blocks: 14, logs: 4, map_blocks: 2 };
        Device::format(Chip::new(&profile, 1).unwrap(), Scheme::LogBlock, &format, Options::default()).unwrap()
    }

    fn page(version: u8) -> Vec<u8> {
        alloc::vec![version; 512]
    }

    #[test]
    fn a_sector_written_many_times_and_its_neighbours_reach_flash_once_at_the_flush() {
        let mut cache = WriteCache::new(device(), 16);
        for version in 1..100 {
            (0..8).for_each(|sector| cache.write(sector, &page(version)).unwrap());
        }
        let (mut found, programs) = (page(0), cache.device().counts().all_programs());
        cache.read(7, &mut found).unwrap();
        assert_eq!((found, cache.waiting(), cache.device().counts().host_writes), (page(99), 8, 0));
        cache.flush().unwrap();
        // A whole block at once: its pages and one of the map.
        assert_eq!((cache.device().counts().all_programs() - programs, cache.waiting()), (9, 0));
        let mut device = Device::open(cache.into_device().into_chip(), Options::default()).unwrap();
        let mut found = page(0);
        device.read(7, &mut found).unwrap();
        assert_eq!(found, page(99));
    }

    #[test]
    fn no_more_sectors_wait_than_there_is_room_for_and_reads_give_the_latest() {
        let mut cache = WriteCache::new(device(), 12);
        let mut expected = alloc::vec![0; cache.sectors() as usize];
        for turn in 0..2_000_u64 {
            let (sector, count) = (turn * 37 % (cache.sectors() - 20), 1 + turn * 7 % 19);
            let version = (turn % 251) as u8;
            let range = sector as usize..(sector + count) as usize;
            if turn % 5 == 0 {
                cache.trim(sector, count).unwrap();
                expected[range].fill(0);
            } else {
                cache.write(sector, &page(version).repeat(count as usize)).unwrap();
                expected[range].fill(version);
            }
            assert!(cache.waiting() <= 12);
            let mut found = page(0xff);
            cache.read(sector, &mut found).unwrap();
            assert_eq!(found, page(expected[sector as usize]), "turn {turn}");
        }
        cache.flush().unwrap();
        let mut device = cache.into_device();
        for (sector, &version) in (0..).zip(&expected) {
            let mut found = page(0xff);
            device.read(sector, &mut found).unwrap();
            assert_eq!(found, page(version), "sector {sector}");
        }
    }

    #[test]
    fn without_a_flush_a_cut_leaves_what_was_flushed_before() {
        let mut cache = WriteCache::new(device(), 12);
        cache.write(3, &page(1)).unwrap();
        cache.flush().unwrap();
        cache.write(3, &page(2)).unwrap();
        cache.trim(3, 1).unwrap();
        let mut found = page(0xff);
        cache.read(3, &mut found).unwrap();
        assert_eq!(found, page(0));
        let mut device = Device::open(cache.into_device().into_chip(), Options::default()).unwrap();
        device.read(3, &mut found).unwrap();
        assert_eq!(found, page(1));
    }

    #[test]
    fn a_request_beyond_the_end_is_refused_and_changes_nothing() {
        let mut cache = WriteCache::new(device(), 12);
        let sectors = cache.sectors();
        assert!(matches!(cache.write(sectors, &page(1)), Err(Error::OutOfRange { .. })));
        assert!(matches!(cache.trim(sectors - 1, 2), Err(Error::OutOfRange { .. })));
        assert!(matches!(cache.read(0, &mut [0; 100]), Err(Error::Length { .. })));
        assert_eq!(cache.waiting(), 0);
    }
}
