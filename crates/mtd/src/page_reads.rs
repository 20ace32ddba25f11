//! Reads of a whole page with its free spare bytes, by whatever requests the kernel has.
//!
//! Linux reads both in a single request since version 6.1. Before that, a plain read tells of no bit errors at all, so the
//! totals of the ECC are compared before and after it, and spare bytes come raw, the ECC's own among them. Invariant: a
//! page in which something could not be corrected is told as uncorrectable by either way.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, Result};

use crate::attributes::MtdAttributes;
use crate::kernel::{self, PageBitErrors};

/// How pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageReads {
    /// By a single request where the kernel has it.
    #[default]
    Together,
    /// As on kernels without that request.
    Apart,
}

/// What reads a device's pages.
#[derive(Debug)]
pub(crate) enum PageReader {
    Together,
    Apart { free: FreeSpare, codewords: u32 },
}

impl PageReader {
    /// The way to read a device.
    pub(crate) fn of(device: &File, wanted: PageReads, attributes: &MtdAttributes) -> Result<Self> {
        if wanted == PageReads::Together && kernel::read(device, 0, &mut [], &mut []) != Err(Errno::NOTTY) {
            return Ok(Self::Together);
        }
        let regions = kernel::free_regions(device)?;
        // The old request tells of eight regions at most, and of no more than 64 bytes of the ECC's.
        if regions.iter().map(|&(_, length)| length).sum::<usize>() < attributes.free_spare_bytes as usize {
            return Err(Errno::OPNOTSUPP);
        }
        let codewords = attributes.page_bytes.checked_div(attributes.codeword_bytes).unwrap_or(1).max(1);
        let free = FreeSpare { regions, raw: vec![0; attributes.all_spare_bytes as usize] };
        Ok(Self::Apart { free, codewords })
    }

    /// Reads a page and its first spare bytes.
    pub(crate) fn read(
        &mut self,
        device: &File,
        start: u64,
        data: &mut [u8],
        spare: &mut [u8],
    ) -> Result<PageBitErrors> {
        let (free, codewords) = match self {
            Self::Together => return kernel::read(device, start, data, spare),
            Self::Apart { free, codewords } => (free, *codewords),
        };
        let before = kernel::ecc_totals(device)?;
        let read = device.read_exact_at(data, start).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let after = kernel::ecc_totals(device)?;
        let failed = after.failures != before.failures;
        match read {
            Ok(()) => {}
            Err(Errno::BADMSG | Errno::UCLEAN) => {}
            Err(errno) => return Err(errno),
        }
        free.read(device, start, spare)?;
        Ok(PageBitErrors {
            uncorrectable: failed || read == Err(Errno::BADMSG),
            // The total counts all codewords of the page. Taken for the worst it would have good blocks retired.
            worst_bits: after.corrected_bits.wrapping_sub(before.corrected_bits).div_ceil(codewords),
        })
    }
}

/// The free spare bytes among all.
#[derive(Debug)]
pub(crate) struct FreeSpare {
    regions: Vec<(usize, usize)>,
    raw: Vec<u8>,
}

impl FreeSpare {
    fn read(&mut self, device: &File, start: u64, spare: &mut [u8]) -> Result<()> {
        if spare.is_empty() {
            return Ok(());
        }
        kernel::read_raw_spare(device, start, &mut self.raw)?;
        self.gather(spare).ok_or(Errno::INVAL)
    }

    /// Takes the first free bytes out of all of a page; `None` where there are fewer.
    fn gather(&self, spare: &mut [u8]) -> Option<()> {
        let mut rest = spare;
        for &(offset, length) in &self.regions {
            let (to, behind) = rest.split_at_mut(length.min(rest.len()));
            to.copy_from_slice(self.raw.get(offset..offset + to.len())?);
            rest = behind;
        }
        rest.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_spare_bytes_are_gathered_region_by_region() {
        let raw: Vec<u8> = (0..64).collect();
        let free = FreeSpare { regions: vec![(2, 6), (18, 6), (34, 6)], raw };
        let mut spare = [0; 15];
        assert_eq!(free.gather(&mut spare), Some(()));
        assert_eq!(spare, [2, 3, 4, 5, 6, 7, 18, 19, 20, 21, 22, 23, 34, 35, 36]);
        assert_eq!(free.gather(&mut [0; 19]), None);
    }
}
