//! The tearing of operations by a power cut.
//!
//! The operation under way is first done in full and then torn, so a tear always has both the old and the new at hand.
//! Invariant: pages that no operation in flight touches or endangers keep their bytes, and the same seed, history and
//! configuration leave the same bytes.

use nand::{CellMode, NandError};

use crate::{
    array::{PageArray, PostedOperation},
    error::medium,
    faults::{FaultConfig, InFlightLoss, PairedLoss, TornKind},
    rng::Rng,
    store::ErasedContents,
    table::{BlockMeta, PageState, SavedBlock},
};

/// A power cut, with the draws that decide on its damage.
pub(crate) struct PowerLoss<'a> {
    pub(crate) array: &'a mut PageArray,
    pub(crate) faults: &'a FaultConfig,
    pub(crate) now_ns: u64,
    pub(crate) rng: Rng,
}

impl PowerLoss<'_> {
    /// Tears the operation that a die has in flight.
    pub(crate) fn tear(&mut self, die: usize) -> Result<(), NandError> {
        match self.array.take_in_flight(die) {
            Some(PostedOperation::Program { block, unit, mode, before }) => {
                self.tear_program(block, unit, mode, before)
            }
            Some(PostedOperation::Erase { block, saved, erased }) => self.tear_erase(block, saved, erased),
            None => Ok(()),
        }
    }

    /// Whether it tears what a die has in flight, beside the operation that it hit.
    pub(crate) fn reaches(&mut self, die: usize) -> bool {
        match self.faults.in_flight_loss {
            InFlightLoss::Seeded => self.rng.coin(),
            InFlightLoss::Off => false,
            InFlightLoss::Always => true,
            InFlightLoss::Dies(mask) => mask >> (die % u64::BITS as usize) & 1 == 1,
        }
    }

    fn torn_kind(&mut self) -> TornKind {
        match self.faults.torn {
            TornKind::Seeded => TornKind::CERTAIN[self.rng.below(TornKind::CERTAIN.len() as u64) as usize],
            kind => kind,
        }
    }

    fn tear_program(&mut self, block: u32, unit: u32, mode: CellMode, before: BlockMeta) -> Result<(), NandError> {
        let kind = self.torn_kind();
        let unit_pages = self.array.spec.layout(mode).unit_pages(unit).to_vec();
        for &page in &unit_pages {
            // A page that was programmed over weak cells is lost already, and stays weak if nothing happened.
            let was_weak = self.array.table.state(block, page) == PageState::Uncorrectable;
            let state = match kind {
                TornKind::Old if was_weak => PageState::Weak,
                TornKind::Old => PageState::Erased,
                TornKind::Weak => PageState::Weak,
                _ if was_weak => PageState::Uncorrectable,
                TornKind::Garbage => self.mix_page(block, page, PageMix::Programming)?,
                TornKind::Unstable => PageState::Unstable,
                TornKind::Uncorrectable => PageState::Uncorrectable,
                TornKind::Full | TornKind::Seeded => PageState::Programmed,
            };
            self.array.table.set_state(block, page, state);
        }
        if matches!(kind, TornKind::Old | TornKind::Weak) {
            let meta = self.array.table.meta_mut(block);
            meta.next_unit = before.next_unit;
            meta.mode = before.mode;
            meta.programmed_ns = before.programmed_ns;
        }
        self.lose_pairs(block, unit, mode)?;
        self.array.commit(block, self.now_ns)
    }

    /// Destroys the pages that shared a word line with a torn unit, as configured.
    fn lose_pairs(&mut self, block: u32, unit: u32, mode: CellMode) -> Result<(), NandError> {
        for victim in self.array.spec.layout(mode).endangers(unit).to_vec() {
            let destroyed = match self.faults.paired_loss {
                PairedLoss::Off => false,
                PairedLoss::Seeded => self.rng.coin(),
                PairedLoss::Always => true,
            };
            for page in self.array.spec.layout(mode).unit_pages(victim).to_vec() {
                if destroyed && self.array.table.state(block, page).holds_bytes() {
                    let state = self.mix_page(block, page, PageMix::Disturbing)?;
                    self.array.table.set_state(block, page, state);
                }
            }
        }
        Ok(())
    }

    /// The table and the store show the block erased; `saved` and `erased` are what was there before.
    fn tear_erase(&mut self, block: u32, saved: SavedBlock, erased: ErasedContents) -> Result<(), NandError> {
        let erased_meta = *self.array.table.meta(block);
        match self.torn_kind() {
            TornKind::Full | TornKind::Seeded => {
                self.array.store.forget(block, erased);
                return Ok(());
            }
            TornKind::Old => {
                self.array.store.bring_back(block, erased);
                self.array.table.restore(block, &saved);
            }
            TornKind::Weak => {
                self.array.store.forget(block, erased);
                self.array.table.states_mut(block).fill(PageState::Weak);
            }
            TornKind::Uncorrectable => {
                self.array.store.forget(block, erased);
                self.array.table.states_mut(block).fill(PageState::Uncorrectable);
            }
            TornKind::Unstable => {
                self.array.store.bring_back(block, erased);
                self.array.table.restore(block, &saved);
                for state in self.array.table.states_mut(block) {
                    *state = match *state {
                        PageState::Programmed | PageState::Unstable => PageState::Unstable,
                        PageState::Uncorrectable => PageState::Uncorrectable,
                        PageState::Erased | PageState::Weak => PageState::Weak,
                    };
                }
                let meta = self.array.table.meta_mut(block);
                (meta.erase_count, meta.slc_erases) = (erased_meta.erase_count, erased_meta.slc_erases);
            }
            TornKind::Garbage => {
                self.array.store.bring_back(block, erased);
                for (page, &before) in (0..).zip(saved.states.iter()) {
                    let state = match before {
                        PageState::Erased | PageState::Weak => PageState::Weak,
                        PageState::Uncorrectable => PageState::Uncorrectable,
                        PageState::Programmed | PageState::Unstable => self.mix_page(block, page, PageMix::Erasing)?,
                    };
                    self.array.table.set_state(block, page, state);
                }
            }
        }
        self.array.commit(block, self.now_ns)
    }

    /// Replaces a page's bytes by what an interrupted operation leaves of them, and says how the page reads.
    fn mix_page(&mut self, block: u32, page: u32, mix: PageMix) -> Result<PageState, NandError> {
        if self.rng.below(3) == 0 {
            return Ok(PageState::Uncorrectable);
        }
        let shape = &self.array.spec.geometry;
        let mut data = vec![0; shape.page_bytes as usize];
        let mut spare = vec![0; shape.spare_bytes as usize];
        self.array
            .store
            .get(block, page, 0, &mut data, &mut spare)
            .map_err(|error| medium("reading the image", &error))?;
        let rng = &mut self.rng;
        match mix {
            PageMix::Programming => half_program(&mut data, &mut spare, rng),
            PageMix::Erasing => {
                // Erasing raises bits to 1, a few at a time.
                each_word(&mut data, |word| word | rng.next_u64());
                each_word(&mut spare, |word| word | rng.next_u64());
            }
            PageMix::Disturbing => {
                let rate = 1 + rng.below(6);
                each_word(&mut data, |word| word ^ sparse(rng, rate));
                each_word(&mut spare, |word| word ^ sparse(rng, rate));
            }
        }
        let keep = self.array.store.holds_data(block, page);
        self.array.store.put(block, page, &data, &spare, keep).map_err(|error| medium("writing the image", &error))?;
        Ok(PageState::Programmed)
    }
}

/// The kind of operation that was interrupted in a page, or beside it.
#[derive(Clone, Copy)]
enum PageMix {
    Programming,
    Erasing,
    Disturbing,
}

/// Programming lowers bits to 0. A mix is either a page whose bits did not all get there, or one that is whole up to
/// some byte and erased from there on; the spare area has got there, has not begun, or is a mix as well.
fn half_program(data: &mut [u8], spare: &mut [u8], rng: &mut Rng) {
    if rng.coin() {
        let rate = 1 + rng.below(4);
        each_word(data, |word| word | sparse(rng, rate));
    } else {
        let whole = rng.below(data.len() as u64) as usize;
        data[whole..].fill(0xFF);
    }
    match rng.below(3) {
        0 => {}
        1 => spare.fill(0xFF),
        _ => each_word(spare, |word| word | sparse(rng, 2)),
    }
}

/// A word in which each bit is set with chance `2^-rate`.
fn sparse(rng: &mut Rng, rate: u64) -> u64 {
    (0..rate).fold(u64::MAX, |bits, _| bits & rng.next_u64())
}

fn each_word(bytes: &mut [u8], mut change: impl FnMut(u64) -> u64) {
    for chunk in bytes.chunks_mut(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let changed = change(u64::from_le_bytes(word)).to_le_bytes();
        chunk.copy_from_slice(&changed[..chunk.len()]);
    }
}
