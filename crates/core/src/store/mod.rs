//! Records and chunks, made durable and found again.
//!
//! The [`log`] alone knows the chip. [`Records`] own it, with the index, the inode cache and the write buffer; views over them
//! are the chunks of a file, the entries of a directory and the attributes of an inode. A [`Checkpointer`] brings the index on
//! flash up to date, and the [`Collector`] empties a block. [`Store`] owns them all. Making room needs each of them, and each
//! may need room: that circle is closed inside this folder, and its one entrance is [`Store::begin`], before every change
//! (`room.rs`).
//!
//! Invariants: what is in a file below does not know the files above it, and only `room.rs` and `work.rs` know them all; no
//! part of a store is handed out to be changed.

mod anchor_blocks;
pub mod attributes;
pub mod checkpoint;
mod chunk_space;
mod chunk_spread;
pub mod chunk_writes;
pub mod chunks;
mod collector;
mod commit;
mod file_spread;
mod inodes;
mod log;
pub mod names;
mod node_writes;
pub mod options;
mod place;
pub mod records;
pub mod recovery;
pub mod report;
mod room;
pub mod room_ahead;
pub mod slot_reader;
mod space;
pub mod spread;
#[cfg(test)]
mod tests;
mod view;
mod waiting_chunk;
mod wear;
mod work;
mod write_buffer;

use nand::Nand;

use self::checkpoint::{Checkpointer, Tables};
use self::collector::Collector;
use self::commit::Commit;
use self::options::MountOptions;
use self::records::{Records, Volume};
use self::report::Ended;
use crate::error::{Error, Result};
use crate::flash::block_test::{ReadsBack, TestView, Tester};
use crate::flash::{Flash, Phase};
use crate::index::Index;
use crate::policy::budget::{Call, Reserve};

/// What is stored on a chip.
pub struct Store<N: Nand> {
    records: Records<N>,
    checkpointer: Checkpointer,
    collector: Collector,
    /// The commit under way in idle time.
    commit: Option<Commit>,
    /// What was kept free when room was made last, if no checkpoint has come since.
    reserve: Reserve,
    /// Why this mount was made read-only, though it was to be for writing.
    ended: Option<Ended>,
}

impl<N: Nand> Store<N> {
    /// A store of these parts.
    pub fn new(flash: Flash<N>, index: Index, volume: Volume, tables: Tables, options: MountOptions) -> Self {
        let chip_space = space::of_chip(&options, flash.slots());
        Self {
            records: Records::new(flash, index, volume, options, chip_space),
            checkpointer: Checkpointer::new(tables),
            collector: Collector::default(),
            commit: None,
            reserve: Reserve::default(),
            ended: None,
        }
    }

    /// Its records, to read and to change them.
    pub fn records_mut(&mut self) -> &mut Records<N> {
        &mut self.records
    }

    /// Its records, to look at.
    pub fn records(&self) -> &Records<N> {
        &self.records
    }

    /// The block table on flash and the checkpoint under way.
    pub fn checkpointer(&self) -> &Checkpointer {
        &self.checkpointer
    }

    /// Gives the chip back as it is, as a power cut would: nothing is written.
    pub fn into_chip(self) -> N {
        self.records.log.into_chip()
    }

    /// Hears that a request came, and when, by a clock that never jumps.
    pub fn request(&mut self, mono_ns: i64) {
        self.records.set_mono_ns(mono_ns);
        self.records.manager.clock(self.records.mono_ns);
        self.records.review_wear();
        self.records.manager.heard_of_request(self.records.mono_ns);
    }

    /// Before a change: refuses on a read-only mount, and makes room on the chip. One that gives space back may use
    /// blocks that are kept free.
    pub fn begin(&mut self, call: Call) -> Result<()> {
        self.writable()?;
        // An operation that ended with an error may have left slots behind that the index does not follow yet.
        let followed = self.own_anchor().and_then(|()| self.records.follow_moved());
        // One that ends with an error may have changed something before: from here on that is to be made durable.
        if self.records.is_durable() {
            self.records.buffer.nothing_waits();
        }
        self.records.buffer.wait_since(self.records.mono_ns);
        self.records.review_wear();
        let ready = match followed.and_then(|()| self.make_room(call)) {
            // Of the blocks that failed some may be good.
            Err(Error::NoSpace) if call.gives_back() && TestView(self.records.flash()).next_suspect().is_some() => {
                Tester(self.records.log.flash_mut()).finish_all(ReadsBack::Right).and_then(|()| self.make_room(call))
            }
            ready => ready,
        };
        match ready {
            Err(Error::NoSpace) if call.gives_back() => {
                // Not even for that there is room: so many blocks went bad that this is the end.
                self.records.log.flash_mut().fail(&Error::NoSpace);
                Err(Error::ReadOnly)
            }
            ready => self.noted(ready),
        }
    }

    /// Before the first program or erase of a mount, makes sure the newest anchor is stable and not clean.
    fn own_anchor(&mut self) -> Result<()> {
        while !self.records.log.flash_mut().own_step()? {}
        Ok(())
    }

    /// Ends a change: buffers that are full go out.
    pub fn end(&mut self) -> Result<()> {
        let outcome = self.records.end_change();
        self.noted(outcome)
    }

    /// Makes everything issued before durable.
    pub fn sync(&mut self) -> Result<()> {
        if self.records.flash().phase() == Phase::ReadOnly {
            return Ok(());
        }
        if self.records.is_durable() {
            return self.writable();
        }
        self.begin(Call::REMOVAL)?;
        self.commit = None;
        let outcome = self.records.commit(true);
        self.noted(outcome)
    }

    /// Remembers that the chip failed.
    fn noted<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error @ Error::Nand(_)) = &outcome {
            self.records.log.flash_mut().fail(error);
        }
        outcome
    }

    /// Whether anything may be written; the failure that ended it, otherwise.
    pub fn writable(&self) -> Result<()> {
        match self.records.flash().broken() {
            _ if self.records.flash().phase() == Phase::ReadOnly => Err(Error::ReadOnly),
            // The call that met it was told.
            Some(Error::WriteOutage) => Err(Error::ReadOnly),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Nothing is written in this mount, because of this.
    pub fn only_read(&mut self, ended: Ended) {
        self.records.log.flash_mut().enter(Phase::ReadOnly);
        self.ended = Some(ended);
    }
}
