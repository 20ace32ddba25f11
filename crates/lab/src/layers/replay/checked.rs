//! A device of whole sectors asked for ranges that may be of parts of them, every read checked.
//!
//! A write of a part of a sector reads the sector first, as devices do; a trim is of the whole sectors in it. Invariant:
//! nothing that a device read is passed over by the check.

use ftl::BlockDevice;

use super::super::{Doing, LayerError};
use super::dense::Range;
use super::shadow::{Shadow, fill};

/// What was asked of a device so far, in its own sectors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub sectors_read: u64,
    pub sectors_written: u64,
    pub sectors_trimmed: u64,
    /// Sectors read first since a part of them was written.
    pub partial_sectors: u64,
}

/// The shadow of a device, and what was asked of it.
pub struct Checked {
    sector_bytes: u64,
    shadow: Shadow,
    pub tally: Tally,
    buffer: Vec<u8>,
}

/// Sectors from the first on.
pub type Sectors = std::ops::Range<u64>;

/// The sectors that a range touches.
pub fn touched(range: Range, sector_bytes: u64) -> Sectors {
    range.offset / sector_bytes..range.end().div_ceil(sector_bytes)
}

/// The sectors that lie in a range as a whole.
pub fn whole(range: Range, sector_bytes: u64) -> Sectors {
    let first = range.offset.div_ceil(sector_bytes);
    first..(range.end() / sector_bytes).max(first)
}

impl Checked {
    /// A device that was never written; so many requests are to warm it up.
    pub fn new(device: &impl BlockDevice, warm_up: u32) -> Self {
        let sector_bytes = device.sector_bytes() as u64;
        let shadow = Shadow::new(device.sectors() * sector_bytes, warm_up);
        Self { sector_bytes, shadow, tally: Tally::default(), buffer: Vec::new() }
    }

    pub fn read(&mut self, device: &mut impl BlockDevice, range: Range) -> Result<(), LayerError> {
        let sectors = touched(range, self.sector_bytes);
        self.resize(&sectors);
        device.read(sectors.start, &mut self.buffer).doing("reading")?;
        self.tally.sectors_read += sectors.end - sectors.start;
        let judged = self.shadow.judge(sectors.start * self.sector_bytes, &self.buffer, self.sector_bytes);
        judged.map_err(LayerError::Wrong)
    }

    pub fn write(&mut self, device: &mut impl BlockDevice, range: Range, version: u32) -> Result<(), LayerError> {
        let (all, inner) = (touched(range, self.sector_bytes), whole(range, self.sector_bytes));
        self.resize(&all);
        for sector in all.clone().filter(|sector| !inner.contains(sector)) {
            let at = ((sector - all.start) * self.sector_bytes) as usize;
            let page = self.buffer.get_mut(at..at + self.sector_bytes as usize).unwrap_or_default();
            device.read(sector, page).doing("reading the rest of a sector")?;
            let judged = self.shadow.judge(sector * self.sector_bytes, page, self.sector_bytes);
            judged.map_err(LayerError::Wrong)?;
            self.tally.partial_sectors += 1;
        }
        let at = (range.offset - all.start * self.sector_bytes) as usize;
        let part = self.buffer.get_mut(at..at + range.bytes as usize).unwrap_or_default();
        fill(range.offset, version, part);
        device.write(all.start, &self.buffer).doing("writing")?;
        self.shadow.give(range, version);
        self.tally.sectors_written += all.end - all.start;
        Ok(())
    }

    pub fn trim(&mut self, device: &mut impl BlockDevice, range: Range) -> Result<(), LayerError> {
        let sectors = whole(range, self.sector_bytes);
        let count = sectors.end - sectors.start;
        if count > 0 {
            device.trim(sectors.start, count).doing("trimming")?;
            self.shadow.give(self.range(&sectors), 0);
            self.tally.sectors_trimmed += count;
        }
        Ok(())
    }

    /// Reads all sectors that hold something, up to so many at once.
    pub fn read_all(&mut self, device: &mut impl BlockDevice, at_once: u64) -> Result<(), LayerError> {
        let all = self.shadow.bytes() / self.sector_bytes;
        for first in (0..all).step_by(at_once as usize) {
            let range = self.range(&(first..all.min(first + at_once)));
            if self.shadow.holds(range) {
                self.read(device, range)?;
            }
        }
        Ok(())
    }

    /// The bytes of sectors.
    pub fn range(&self, sectors: &Sectors) -> Range {
        Range { offset: sectors.start * self.sector_bytes, bytes: (sectors.end - sectors.start) * self.sector_bytes }
    }

    fn resize(&mut self, sectors: &Sectors) {
        self.buffer.resize(((sectors.end - sectors.start) * self.sector_bytes) as usize, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device in memory that lies as it is told.
    struct Lying {
        pages: Vec<[u8; 2048]>,
        /// Sectors whose writes are lost.
        loses: Vec<u64>,
        /// A byte of a sector that is flipped whenever it is read.
        flips: Option<(u64, usize)>,
    }

    impl BlockDevice for Lying {
        fn sector_bytes(&self) -> usize {
            2048
        }

        fn sectors(&self) -> u64 {
            self.pages.len() as u64
        }

        fn read(&mut self, sector: u64, data: &mut [u8]) -> ftl::Result<()> {
            for (sector, page) in (sector..).zip(data.chunks_exact_mut(2048)) {
                page.copy_from_slice(&self.pages[sector as usize]);
                if let Some((_, byte)) = self.flips.filter(|&(flipped, _)| flipped == sector) {
                    page[byte] ^= 4;
                }
            }
            Ok(())
        }

        fn write(&mut self, sector: u64, data: &[u8]) -> ftl::Result<()> {
            for (sector, page) in (sector..).zip(data.chunks_exact(2048)) {
                if !self.loses.contains(&sector) {
                    self.pages[sector as usize].copy_from_slice(page);
                }
            }
            Ok(())
        }

        fn trim(&mut self, sector: u64, count: u64) -> ftl::Result<()> {
            (sector..sector + count).for_each(|sector| self.pages[sector as usize] = [0; 2048]);
            Ok(())
        }

        fn flush(&mut self) -> ftl::Result<()> {
            Ok(())
        }
    }

    fn rig() -> (Lying, Checked) {
        let device = Lying { pages: vec![[0; 2048]; 8], loses: Vec::new(), flips: None };
        let checked = Checked::new(&device, 0);
        (device, checked)
    }

    const RANGE: Range = Range { offset: 1536, bytes: 3072 };

    #[test]
    fn parts_of_sectors_are_read_first_and_what_is_beside_them_stays() {
        let (mut device, mut checked) = rig();
        checked.write(&mut device, Range { offset: 0, bytes: 8192 }, 1).unwrap();
        checked.write(&mut device, RANGE, 2).unwrap();
        checked.write(&mut device, Range { offset: 512, bytes: 512 }, 3).unwrap();
        checked.trim(&mut device, Range { offset: 2560, bytes: 4096 }).unwrap();
        checked.read_all(&mut device, 3).unwrap();
        let Tally { sectors_written, partial_sectors, sectors_trimmed, .. } = checked.tally;
        assert_eq!((sectors_written, partial_sectors, sectors_trimmed), (4 + 3 + 1, 2 + 1, 1));
        assert!(device.pages[1] != [0; 2048] && device.pages[2] == [0; 2048]);
    }

    #[test]
    fn a_read_that_differs_is_told_by_sector_byte_and_version() {
        let (mut device, mut checked) = rig();
        checked.write(&mut device, RANGE, 2).unwrap();
        device.loses = vec![1];
        checked.write(&mut device, RANGE, 3).unwrap();
        let wrong = checked.read(&mut device, RANGE).unwrap_err().to_string();
        let expected = "sector 1 differs from byte 0 on: it holds what request 1 wrote (version 2), and not what request 2 \
                        wrote (version 3)";
        assert_eq!(wrong, expected);
        let (mut device, mut checked) = rig();
        checked.write(&mut device, RANGE, 2).unwrap();
        device.flips = Some((2, 100));
        let wrong = checked.read_all(&mut device, 8).unwrap_err().to_string();
        assert!(wrong.starts_with("sector 2 differs from byte 100 on: it holds no version of it: ["), "{wrong}");
        // The rest of a sector of which a part is written.
        let part = Range { offset: 2 * 2048 + 1024, bytes: 512 };
        assert!(matches!(checked.write(&mut device, part, 4), Err(LayerError::Wrong(_))));
        // What was never written holds zeros.
        device.flips = Some((7, 2047));
        let wrong = checked.read(&mut device, Range { offset: 7 * 2048, bytes: 2048 }).unwrap_err().to_string();
        assert!(wrong.contains("byte 2047") && wrong.ends_with("and not zeros"), "{wrong}");
    }

    #[test]
    fn bytes_of_the_warm_up_are_told_as_such() {
        let (mut device, _) = rig();
        let mut checked = Checked::new(&device, 2);
        checked.write(&mut device, RANGE, 3).unwrap();
        device.loses = vec![1];
        checked.write(&mut device, RANGE, 4).unwrap();
        let wrong = checked.read(&mut device, RANGE).unwrap_err().to_string();
        assert!(
            wrong.contains("what request 2 wrote when it warmed up (version 3), and not what request 1 wrote"),
            "{wrong}"
        );
    }
}
