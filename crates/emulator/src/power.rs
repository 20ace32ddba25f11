//! The power cut: what it leaves of the operations it hits.
//!
//! The operation under way is first done in full and then torn, so a tear always has both the old and the new at hand.
//! Invariant: pages that no operation in flight touches or endangers keep their bytes, and the same seed, history and
//! configuration leave the same bytes.

use nand::{CellMode, NandError};

use crate::{
    chip::{Chip, InFlight},
    faults::{PairedLoss, TornKind, medium},
    rng::{Purpose, Rng},
    store::Erased,
    table::{BlockMeta, PageState, Saved},
};

impl Chip {
    /// Cuts the power in the `n`th program or erase from now (reads count too where
    /// [`crate::FaultConfig::cut_counts_reads`] says so); 0 is the next one. That call and all later ones return
    /// [`NandError::PowerOff`] until [`Chip::power_on`].
    pub fn cut_power_at(&mut self, n: u64) {
        self.armed.cut_in = Some(n);
    }

    /// Takes back [`Chip::cut_power_at`].
    pub fn cancel_cut(&mut self) {
        self.armed.cut_in = None;
    }

    /// Cuts the power now, between operations; posted ones that are still under way may be torn.
    ///
    /// Fails only where the medium under the chip does.
    pub fn cut_power(&mut self) -> Result<(), NandError> {
        self.lose_power(None)
    }

    /// Gives the chip power again: every die is idle, nothing is in flight, failures not yet reported are forgotten.
    pub fn power_on(&mut self) {
        self.powered = true;
        self.clock.settle();
    }

    /// Whether the chip has power.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Tears what is in flight: surely on die `hit`, by chance on other busy dies.
    pub(crate) fn lose_power(&mut self, hit: Option<usize>) -> Result<(), NandError> {
        self.powered = false;
        self.counters.power_cuts += 1;
        self.failures.clear();
        let key = [self.operations(), self.clock.now_ns(), self.faults.seed, 0];
        let mut rng = Rng::keyed(self.seed, Purpose::Cut, key);
        for die in 0..self.in_flight.len() {
            let torn = hit == Some(die) || (self.clock.die_busy(die) && rng.coin());
            if !torn {
                self.settle_die(die);
                continue;
            }
            match self.in_flight[die].take() {
                Some(InFlight::Program { block, unit, mode, before }) => {
                    self.tear_program(block, unit, mode, before, &mut rng)?;
                }
                Some(InFlight::Erase { block, saved, erased }) => self.tear_erase(block, saved, erased, &mut rng)?,
                None => {}
            }
        }
        Ok(())
    }

    fn torn_kind(&self, rng: &mut Rng) -> TornKind {
        match self.faults.torn {
            TornKind::Seeded => TornKind::CERTAIN[rng.below(TornKind::CERTAIN.len() as u64) as usize],
            kind => kind,
        }
    }

    fn tear_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        before: BlockMeta,
        rng: &mut Rng,
    ) -> Result<(), NandError> {
        let kind = self.torn_kind(rng);
        let unit_pages = self.spec.layout(mode).unit_pages(unit).to_vec();
        for &page in &unit_pages {
            // A page that was programmed over weak cells is lost already, and stays weak if nothing happened.
            let was_weak = self.table.state(block, page) == PageState::Uncorrectable;
            let state = match kind {
                TornKind::Old if was_weak => PageState::Weak,
                TornKind::Old => PageState::Erased,
                TornKind::Weak => PageState::Weak,
                _ if was_weak => PageState::Uncorrectable,
                TornKind::Garbage => self.mix_page(block, page, Mix::Programming, rng)?,
                TornKind::Unstable => PageState::Unstable,
                TornKind::Uncorrectable => PageState::Uncorrectable,
                TornKind::Full | TornKind::Seeded => PageState::Programmed,
            };
            self.table.set_state(block, page, state);
        }
        if matches!(kind, TornKind::Old | TornKind::Weak) {
            let meta = self.table.meta_mut(block);
            meta.next_unit = before.next_unit;
            meta.mode = before.mode;
            meta.programmed_ns = before.programmed_ns;
        }
        self.lose_pairs(block, unit, mode, rng)?;
        self.commit(block)
    }

    /// Destroys the pages that shared a word line with a torn unit, as configured.
    fn lose_pairs(&mut self, block: u32, unit: u32, mode: CellMode, rng: &mut Rng) -> Result<(), NandError> {
        for victim in self.spec.layout(mode).endangers(unit).to_vec() {
            let destroyed = match self.faults.paired_loss {
                PairedLoss::Off => false,
                PairedLoss::Seeded => rng.coin(),
                PairedLoss::Always => true,
            };
            for page in self.spec.layout(mode).unit_pages(victim).to_vec() {
                if destroyed && self.table.state(block, page).holds_bytes() {
                    let state = self.mix_page(block, page, Mix::Disturbing, rng)?;
                    self.table.set_state(block, page, state);
                }
            }
        }
        Ok(())
    }

    /// The table and the store show the block erased; `saved` and `erased` are what was there before.
    fn tear_erase(&mut self, block: u32, saved: Saved, erased: Erased, rng: &mut Rng) -> Result<(), NandError> {
        let erased_meta = *self.table.meta(block);
        match self.torn_kind(rng) {
            TornKind::Full | TornKind::Seeded => {
                self.store.forget(block, erased);
                return Ok(());
            }
            TornKind::Old => {
                self.store.bring_back(block, erased);
                self.table.restore(block, &saved);
            }
            TornKind::Weak => {
                self.store.forget(block, erased);
                self.table.states_mut(block).fill(PageState::Weak);
            }
            TornKind::Uncorrectable => {
                self.store.forget(block, erased);
                self.table.states_mut(block).fill(PageState::Uncorrectable);
            }
            TornKind::Unstable => {
                self.store.bring_back(block, erased);
                self.table.restore(block, &saved);
                for state in self.table.states_mut(block) {
                    *state = match *state {
                        PageState::Programmed | PageState::Unstable => PageState::Unstable,
                        PageState::Uncorrectable => PageState::Uncorrectable,
                        PageState::Erased | PageState::Weak => PageState::Weak,
                    };
                }
                let meta = self.table.meta_mut(block);
                (meta.erase_count, meta.slc_erases) = (erased_meta.erase_count, erased_meta.slc_erases);
            }
            TornKind::Garbage => {
                self.store.bring_back(block, erased);
                for (page, &before) in (0..).zip(saved.states.iter()) {
                    let state = match before {
                        PageState::Erased | PageState::Weak => PageState::Weak,
                        PageState::Uncorrectable => PageState::Uncorrectable,
                        PageState::Programmed | PageState::Unstable => self.mix_page(block, page, Mix::Erasing, rng)?,
                    };
                    self.table.set_state(block, page, state);
                }
            }
        }
        self.commit(block)
    }

    /// Replaces a page's bytes by what an interrupted operation leaves of them, and says how the page reads.
    fn mix_page(&mut self, block: u32, page: u32, mix: Mix, rng: &mut Rng) -> Result<PageState, NandError> {
        if rng.below(3) == 0 {
            return Ok(PageState::Uncorrectable);
        }
        let shape = &self.spec.geometry;
        let mut data = vec![0; shape.page_bytes as usize];
        let mut spare = vec![0; shape.spare_bytes as usize];
        self.store.get(block, page, 0, &mut data, &mut spare).map_err(|error| medium("reading the image", &error))?;
        match mix {
            Mix::Programming => half_program(&mut data, &mut spare, rng),
            Mix::Erasing => {
                // Erasing raises bits to 1, a few at a time.
                each_word(&mut data, |word| word | rng.next_u64());
                each_word(&mut spare, |word| word | rng.next_u64());
            }
            Mix::Disturbing => {
                let rate = 1 + rng.below(6);
                each_word(&mut data, |word| word ^ sparse(rng, rate));
                each_word(&mut spare, |word| word ^ sparse(rng, rate));
            }
        }
        let keep = self.store.holds_data(block, page);
        self.store.put(block, page, &data, &spare, keep).map_err(|error| medium("writing the image", &error))?;
        Ok(PageState::Programmed)
    }
}

/// What interrupted a page.
#[derive(Clone, Copy)]
enum Mix {
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
