//! The chip behind an MTD device.
//!
//! Every operation has ended when it returns, so none is posted. Invariant: a page is always read and programmed whole,
//! with its spare bytes, so that the ECC sees all of it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, ReadInfo};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::attributes::{MtdAttributes, MtdNumber};
use crate::cells::ChipCells;
use crate::error::MtdError;
use crate::kernel;
use crate::page_reads::{PageReader, PageReads};

/// A chip, open for this process alone.
#[derive(Debug)]
pub struct Mtd {
    device: File,
    path: PathBuf,
    name: String,
    is_multi_level: bool,
    geometry: Geometry,
    cells: ChipCells,
    /// Bad blocks, as the driver told of them when the chip was opened, with all that were marked since.
    bad: Vec<bool>,
    reader: PageReader,
    /// A page and its spare bytes, for reads of a part.
    page: (Vec<u8>, Vec<u8>),
    correctable_bits: u32,
    refresh_bits: u32,
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> MtdError {
    move |source| MtdError::Io { path: path.to_path_buf(), what, source }
}

impl Mtd {
    /// Opens the chip behind a device, at first as a chip of one bit a cell whose blocks endure `endurance` erases.
    pub fn open(path: &Path, read_only: bool, reads: PageReads, endurance: u32) -> Result<Self, MtdError> {
        let number = MtdNumber::of(path).ok_or_else(|| MtdError::NotMtd { path: path.to_path_buf() })?;
        if number.read_only && !read_only {
            return Err(MtdError::ReadOnly { path: path.to_path_buf(), number: number.number });
        }
        let device = open_alone(&locked_name(path, number), read_only)?;
        let attributes = MtdAttributes::of(number.number)?;
        let geometry = geometry_of(path, &attributes)?;
        let cells = ChipCells::one_bit(geometry.pages_per_block, endurance);
        let reader = PageReader::of(&device, reads, &attributes)
            .map_err(|errno| failed(path, "the driver does not tell which spare bytes are free")(errno.into()))?;
        let offset = |block: u32| u64::from(block) * geometry.block_bytes();
        let bad = (0..geometry.blocks).map(|block| kernel::is_bad(&device, offset(block)));
        let bad = bad.collect::<Result<_, _>>().map_err(|errno| failed(path, "asking for bad blocks")(errno.into()))?;
        Ok(Self {
            bad,
            device,
            path: path.to_path_buf(),
            name: attributes.name,
            is_multi_level: attributes.kind == MULTI_LEVEL,
            page: (vec![0; geometry.page_bytes as usize], vec![0; geometry.spare_bytes as usize]),
            geometry,
            cells,
            reader,
            correctable_bits: attributes.correctable_bits,
            refresh_bits: attributes.refresh_bits,
        })
    }

    /// Whether the driver says that its cells hold more than one bit; how many, and how they are programmed, it does not say.
    pub fn is_multi_level(&self) -> bool {
        self.is_multi_level
    }

    /// From now on its cells are these.
    pub fn set_cells(&mut self, cells: ChipCells) {
        self.geometry.bits_per_cell = cells.bits_per_cell;
        self.cells = cells;
    }

    /// The device file that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the driver calls the chip.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, block: u32, page: u32) -> Option<u64> {
        let known = block < self.geometry.blocks && page < self.geometry.pages_per_block;
        let page_bytes = u64::from(self.geometry.page_bytes);
        known.then(|| u64::from(block) * self.geometry.block_bytes() + u64::from(page) * page_bytes)
    }
}

/// Linux's name for NAND with several bits a cell.
const MULTI_LEVEL: &str = "mlc-nand";
const ONE_LEVEL: &str = "nand";

/// The name to open a device by: `/dev/mtdN` for `/dev/mtdNro` as well, if it may be read, so that both know of one lock.
fn locked_name(path: &Path, number: MtdNumber) -> PathBuf {
    let usual = PathBuf::from(format!("/dev/mtd{}", number.number));
    let is_same = MtdNumber::of(&usual) == Some(MtdNumber { read_only: false, ..number });
    if number.read_only && is_same && File::open(&usual).is_ok() { usual } else { path.to_path_buf() }
}

fn open_alone(path: &Path, read_only: bool) -> Result<File, MtdError> {
    let opened = OpenOptions::new().read(true).write(!read_only).open(path);
    let device = opened.map_err(failed(path, "opening the device"))?;
    let lock = if read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    match rustix::fs::flock(&device, lock) {
        Ok(()) => Ok(device),
        Err(Errno::WOULDBLOCK) => Err(MtdError::InUse { path: path.to_path_buf() }),
        Err(errno) => Err(failed(path, "locking the device")(errno.into())),
    }
}

/// The geometry that a device tells of; `bits_per_cell` is 1.
fn geometry_of(path: &Path, attributes: &MtdAttributes) -> Result<Geometry, MtdError> {
    let MtdAttributes { kind, bytes, block_bytes, page_bytes, free_spare_bytes, .. } = attributes;
    if kind != ONE_LEVEL && kind != MULTI_LEVEL {
        return Err(MtdError::NotNand { path: path.to_path_buf(), kind: kind.clone() });
    }
    let divides = *page_bytes > 0 && *block_bytes > 0 && block_bytes.is_multiple_of(*page_bytes);
    let blocks = divides.then(|| u32::try_from(bytes / u64::from(*block_bytes)).ok()).flatten();
    let blocks = blocks.ok_or_else(|| MtdError::Shape {
        path: path.to_path_buf(),
        why: format!(
            "{bytes} bytes in blocks of {block_bytes} and pages of {page_bytes}: not the shape of a NAND chip"
        ),
    })?;
    Ok(Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block: block_bytes / page_bytes,
        page_bytes: *page_bytes,
        spare_bytes: *free_spare_bytes,
        // Linux does not tell. Where they are not covered, a wrong bit in a tag costs its slot.
        spare_ecc: true,
        bits_per_cell: 1,
    })
}

/// An errno of the driver that tells of the way to the chip and not of its cells.
fn medium(what: &'static str, errno: Errno) -> NandError {
    NandError::Medium { what, errno: errno.raw_os_error() }
}

impl Nand for Mtd {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.cells.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.cells.endurance(mode)
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        _cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        let outside = NandError::OutOfRange { block, page };
        let start = self.start(block, page).ok_or_else(|| outside.clone())?;
        let part = column as usize..column as usize + data.len();
        let (whole, all_spare) = &mut self.page;
        if part.end > whole.len() || spare.len() > all_spare.len() {
            return Err(outside);
        }
        let found = if data.len() == whole.len() {
            self.reader.read(&self.device, start, data, spare)
        } else {
            let found = self.reader.read(&self.device, start, whole, spare);
            data.copy_from_slice(&whole[part]);
            found
        };
        let found = found.map_err(|errno| medium("reading a page", errno))?;
        if found.uncorrectable {
            return Err(NandError::Uncorrectable { block, page });
        }
        let Self { correctable_bits, refresh_bits, .. } = *self;
        Ok(ReadInfo { corrected_bits: found.worst_bits, correctable_bits, refresh_bits })
    }

    fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        _cause: Cause,
    ) -> Result<(), NandError> {
        let &[page] = self.layout(mode).unit_pages(unit) else {
            return Err(NandError::Misuse { block, unit, rule: "a program writes one page" });
        };
        let fits = data.len() == self.page.0.len() && spare.len() <= self.page.1.len();
        let start = self.start(block, page).filter(|_| fits).ok_or(NandError::OutOfRange { block, page })?;
        match kernel::write(&self.device, start, data, spare) {
            Ok(()) => Ok(()),
            Err(Errno::IO) => Err(NandError::ProgramFailed { block, unit }),
            Err(errno) => Err(medium("programming a page", errno)),
        }
    }

    fn erase(&mut self, block: u32, _cause: Cause) -> Result<(), NandError> {
        let start = self.start(block, 0).ok_or(NandError::OutOfRange { block, page: 0 })?;
        match kernel::erase(&self.device, start, self.geometry.block_bytes()) {
            Ok(()) => Ok(()),
            Err(Errno::IO) => Err(NandError::EraseFailed { block }),
            Err(errno) => Err(medium("erasing a block", errno)),
        }
    }

    fn barrier(&mut self, _failures: &mut Vec<Failure>) -> Result<(), NandError> {
        Ok(())
    }

    fn is_bad(&self, block: u32) -> bool {
        self.bad.get(block as usize).copied().unwrap_or(true)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        let start = self.start(block, 0).ok_or(NandError::OutOfRange { block, page: 0 })?;
        if let Some(bad) = self.bad.get_mut(block as usize) {
            *bad = true;
        }
        match kernel::mark_bad(&self.device, start) {
            // The mark is a program too, and a worn block may not take it: the volume's own table has to do.
            Ok(()) | Err(Errno::IO) => Ok(()),
            Err(errno) => Err(medium("marking a block bad", errno)),
        }
    }
}
