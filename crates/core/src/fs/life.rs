//! From mkfs to unmount, and what is done to a whole volume.

use nand::Nand;

use super::Fs;
use crate::check::{self, CheckReport, Chunks};
use crate::error::{Error, Result};
use crate::mount::format::{self, FormatOptions};
use crate::mount::open;
use crate::salvage::{self, Salvaged};
use crate::store::options::MountOptions;

impl<N: Nand> Fs<N> {
    /// Formats the chip; everything on it is lost. A chip that cannot carry a volume is refused unchanged.
    pub fn format(nand: &mut N, options: &FormatOptions) -> Result<()> {
        format::format(nand, options)
    }

    /// Mounts the chip; on failure the chip is given back.
    pub fn mount(nand: N, options: MountOptions) -> core::result::Result<Self, (N, Error)> {
        open::mount(nand, options).map(|store| Self { store })
    }

    /// Syncs, writes a clean checkpoint and gives the chip back.
    pub fn unmount(self, now_ns: i64) -> (N, Result<()>) {
        open::unmount(self.store, now_ns)
    }

    /// Gives the chip back as it is, as a power cut would: nothing is written.
    pub fn into_chip(self) -> N {
        self.store.into_chip()
    }

    /// Checks every structure against every other; reads only.
    pub fn check(&mut self) -> Result<CheckReport> {
        check::check(&mut self.store, Chunks::Read)
    }

    /// The same for who has just read every file, of which none was removed while it is open: bare chunks are not read
    /// again.
    pub fn check_structure(&mut self) -> Result<CheckReport> {
        check::check(&mut self.store, Chunks::Counted)
    }

    /// Makes a volume again of what can be read on a chip, whatever became of its anchors and its index, and mounts it. The
    /// memory this takes grows with what is stored. `volume_id` becomes its identity, but for four bytes, where nothing
    /// tells the old one; `told` hears how many blocks of how many have been read. On failure the chip is given back;
    /// it can be salvaged again.
    pub fn salvage(
        nand: N,
        volume_id: [u8; 16],
        options: MountOptions,
        told: &mut dyn FnMut(u32, u32),
    ) -> core::result::Result<(Self, Salvaged), (N, Error)> {
        salvage::salvage(nand, volume_id, options, told).map(|(store, salvaged)| (Self { store }, salvaged))
    }

    /// Brings counts up to what is there and, if `all`, takes out of the volume what cannot be read, putting what is left
    /// of it into `lost+found`. `None` if there is something like that, but not `all` was asked for. An index that cannot
    /// be read whole is an error: only [`Fs::salvage`] helps. Nothing may be open.
    pub fn mend(&mut self, all: bool, now_ns: i64) -> Result<Option<Salvaged>> {
        salvage::mend(&mut self.store, all, now_ns)
    }
}
