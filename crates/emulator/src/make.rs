//! How chips are made and copied.
//!
//! Invariant: a copy and its original share nothing that either can change.

use std::{path::Path, sync::Arc};

use crate::{
    account::OperationAccount,
    array::PageArray,
    chip::Chip,
    error::EmulatorError,
    fault_plan::FaultPlan,
    image::{self, ImageStore},
    profile::Profile,
    spec::Spec,
    store::{Medium, RamStore, SpareStore},
    table::Table,
};

impl Chip {
    /// A new chip in RAM, every block erased. `seed` decides all its chance events, and nothing else does.
    pub fn new(profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        let spec = Arc::new(Spec::new(profile)?);
        let shape = &spec.geometry;
        let table = Table::new(shape.blocks, shape.pages_per_block);
        let ram = RamStore::new(shape.blocks, shape.pages_per_block, shape.page_bytes);
        Ok(Self::assemble(spec, seed, table, Medium::Ram(ram), 0))
    }

    /// A new chip in RAM that keeps tags and the translation layer's own pages, but no host data: a page keeps its spare
    /// bytes, and its data only if it is programmed for [`nand::Cause::Metadata`]; for any other cause it reads as
    /// zeros. All else is as with [`Chip::new`], at a small part of the time and the memory.
    pub fn without_data(profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        let spec = Arc::new(Spec::new(profile)?);
        let table = Table::new(spec.geometry.blocks, spec.geometry.pages_per_block);
        let store = SpareStore::new(spec.geometry.blocks, spec.geometry.pages_per_block);
        Ok(Self::assemble(spec, seed, table, Medium::Spare(store), 0))
    }

    /// A new chip in a new image file, every block erased. A file that exists is refused.
    pub fn create_image(path: impl AsRef<Path>, profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        Self::make_image(path.as_ref(), profile, seed, false)
    }

    /// A new chip in an image file, in place of whatever regular file has that name, unless that is in use.
    pub fn replace_image(path: impl AsRef<Path>, profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        Self::make_image(path.as_ref(), profile, seed, true)
    }

    fn make_image(path: &Path, profile: &Profile, seed: u64, replace: bool) -> Result<Self, EmulatorError> {
        let spec = Arc::new(Spec::new(profile)?);
        let store = ImageStore::create(path, &spec, seed, replace)?;
        let table = Table::new(spec.geometry.blocks, spec.geometry.pages_per_block);
        Ok(Self::assemble(spec, seed, table, Medium::Image(store), 0))
    }

    /// The chip in an image file, as its last user left it. Its power is on.
    ///
    /// Opened `read_only`, it shares the image with others who only read; programs and erases then fail with
    /// [`nand::NandError::Medium`] and `EROFS`.
    pub fn open_image(path: impl AsRef<Path>, read_only: bool) -> Result<Self, EmulatorError> {
        let image::OpenedImage { spec, seed, table, store, now_ns } = ImageStore::open(path.as_ref(), read_only)?;
        Ok(Self::assemble(Arc::new(spec), seed, table, Medium::Image(store), now_ns))
    }

    fn assemble(spec: Arc<Spec>, seed: u64, table: Table, medium: Medium, now_ns: u64) -> Self {
        let account = OperationAccount::new(&spec, now_ns);
        let array = PageArray::new(spec, seed, table, medium);
        Self { array, account, plan: FaultPlan::default(), powered: true, failures: Vec::new() }
    }

    /// A copy that changes independently, always in RAM.
    ///
    /// Of a chip in RAM this is cheap: what pages hold is shared until either side programs. Of a chip in an image it
    /// reads everything that was programmed; pages that the host fails to read are uncorrectable in the copy.
    pub fn snapshot(&self) -> Self {
        Self {
            array: self.array.snapshot(),
            account: self.account.clone(),
            plan: self.plan.clone(),
            powered: self.powered,
            failures: self.failures.clone(),
        }
    }
}

impl Clone for Chip {
    fn clone(&self) -> Self {
        self.snapshot()
    }
}
