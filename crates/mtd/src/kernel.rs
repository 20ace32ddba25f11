//! The requests of `<mtd/mtd-abi.h>`, each as a function that takes slices.
//!
//! All unsafe code of the crate is here. Invariants: a request carries the structure that its number was made for, and
//! the addresses in it lead to slices that live until the kernel has answered.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The group of all requests.
const GROUP: u8 = b'M';
/// Spare bytes count from the first that the ECC leaves free.
const AUTO_OOB: u8 = 1;
/// Regions of free spare bytes that the old layout request has room for.
const REGIONS: usize = 8;

/// A structure and the request that it belongs to.
///
/// # Safety
///
/// The kernel takes this structure for this request, and changes nothing but the bytes that its addresses name.
unsafe trait Argument {
    const OPCODE: Opcode;
}

struct MtdRequest<'a, T>(&'a mut T);

// SAFETY: the kernel is given the structure of the request, which lives as long as the request does.
unsafe impl<T: Argument> Ioctl for MtdRequest<'_, T> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        T::OPCODE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(answer: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(answer)
    }
}

fn ask<T: Argument>(device: &File, argument: &mut T) -> Result<i32> {
    // SAFETY: see `Argument`; whoever makes an argument keeps the bytes alive that its addresses name.
    unsafe { ioctl(device, MtdRequest(argument)) }
}

macro_rules! argument {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? } as $way:ident $number:literal) => {
        $(#[$doc])*
        #[repr(C)]
        struct $name { $($field: $kind),* }

        // SAFETY: the fields, the direction and the number come from `<mtd/mtd-abi.h>`.
        unsafe impl Argument for $name {
            const OPCODE: Opcode = opcode::$way::<$name>(GROUP, $number);
        }
    };
}

argument!(BadBlock { offset: i64 } as write 11);
argument!(MarkBad { offset: i64 } as write 12);
argument!(
    OldLayout { ecc_bytes: u32, ecc_at: [u32; 64], free_bytes: u32, free: [[u32; 2]; REGIONS] } as read 17
);
argument!(Totals { corrected: u32, failed: u32, bad: u32, table: u32 } as read 18);
argument!(Erase { start: u64, length: u64 } as write 20);
argument!(RawSpare { start: u64, padding: u32, length: u32, to: u64 } as read_write 22);
argument!(Write { start: u64, len: u64, spare_len: u64, data: u64, spare: u64, mode: u8, padding: [u8; 7] } as read_write 24);
argument!(
    Read { start: u64, len: u64, spare_len: u64, data: u64, spare: u64, mode: u8, padding: [u8; 7], found: [u32; 3] }
    as read_write 26
);

/// Wrong bits of a page: whether some could not be corrected, and the most in a codeword.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBitErrors {
    pub(crate) uncorrectable: bool,
    pub(crate) worst_bits: u32,
}

/// What the ECC has found since the machine was started: corrected bits, and pieces that it could not correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EccTotals {
    pub(crate) corrected_bits: u32,
    pub(crate) failures: u32,
}

/// Whether the driver holds the block at this byte of the chip for bad.
pub(crate) fn is_bad(device: &File, offset: u64) -> Result<bool> {
    ask(device, &mut BadBlock { offset: offset.cast_signed() }).map(|answer| answer > 0)
}

/// Marks the block at this byte bad, for good.
pub(crate) fn mark_bad(device: &File, offset: u64) -> Result<()> {
    ask(device, &mut MarkBad { offset: offset.cast_signed() }).map(drop)
}

/// Erases bytes that are whole blocks.
pub(crate) fn erase(device: &File, start: u64, length: u64) -> Result<()> {
    ask(device, &mut Erase { start, length }).map(drop)
}

/// Programs a page with its first free spare bytes.
pub(crate) fn write(device: &File, start: u64, data: &[u8], spare: &[u8]) -> Result<()> {
    let (len, spare_len) = (data.len() as u64, spare.len() as u64);
    let (data, spare) = (data.as_ptr() as u64, spare.as_ptr() as u64);
    ask(device, &mut Write { start, len, spare_len, data, spare, mode: AUTO_OOB, padding: [0; 7] }).map(drop)
}

/// Reads a page with its first free spare bytes. Bits that could not be corrected are no error here.
pub(crate) fn read(device: &File, start: u64, data: &mut [u8], spare: &mut [u8]) -> Result<PageBitErrors> {
    let (len, spare_len) = (data.len() as u64, spare.len() as u64);
    let (data, spare) = (data.as_mut_ptr() as u64, spare.as_mut_ptr() as u64);
    let mut read = Read { start, len, spare_len, data, spare, mode: AUTO_OOB, padding: [0; 7], found: [0; 3] };
    let (answer, worst_bits) = (ask(device, &mut read), read.found[2]);
    match answer {
        Ok(_) | Err(Errno::UCLEAN) => Ok(PageBitErrors { uncorrectable: false, worst_bits }),
        Err(Errno::BADMSG) => Ok(PageBitErrors { uncorrectable: true, worst_bits }),
        Err(errno) => Err(errno),
    }
}

/// Reads spare bytes as they stand on the page, the ECC's own among them.
pub(crate) fn read_raw_spare(device: &File, start: u64, spare: &mut [u8]) -> Result<()> {
    let (length, to) = (u32::try_from(spare.len()).map_err(|_| Errno::INVAL)?, spare.as_mut_ptr() as u64);
    ask(device, &mut RawSpare { start, padding: 0, length, to }).map(drop)
}

/// What the ECC has found so far.
pub(crate) fn ecc_totals(device: &File) -> Result<EccTotals> {
    let mut totals = Totals { corrected: 0, failed: 0, bad: 0, table: 0 };
    ask(device, &mut totals)?;
    Ok(EccTotals { corrected_bits: totals.corrected, failures: totals.failed })
}

/// Where the free spare bytes stand among all spare bytes: offset and length of each region that there is room to tell of.
pub(crate) fn free_regions(device: &File) -> Result<Vec<(usize, usize)>> {
    let mut layout = OldLayout { ecc_bytes: 0, ecc_at: [0; 64], free_bytes: 0, free: [[0; 2]; REGIONS] };
    ask(device, &mut layout)?;
    let regions = layout.free.iter().map(|&[offset, length]| (offset as usize, length as usize));
    Ok(regions.take_while(|&(_, length)| length > 0).collect())
}
