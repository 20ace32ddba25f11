//! The power of a chip: on, off, and cut.
//!
//! Invariant: a chip without power does no operation, and nothing is in flight when it comes back.

use nand::NandError;

use crate::{
    chip::Chip,
    rng::{Purpose, Rng},
    tear::PowerLoss,
};

impl Chip {
    /// Cuts the power now, between operations; posted ones that are still under way may be torn
    /// ([`FaultConfig::in_flight_loss`](crate::FaultConfig::in_flight_loss)).
    ///
    /// Fails only where the medium under the chip does.
    pub fn cut_power(&mut self) -> Result<(), NandError> {
        self.lose_power(None)
    }

    /// Gives the chip power again: every die is idle, nothing is in flight, failures not yet reported are forgotten.
    pub fn power_on(&mut self) {
        self.powered = true;
        self.account.clock.make_idle();
    }

    /// Whether the chip has power.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// The dies that an operation is in flight on, which a power cut now might tear.
    pub fn busy_dies(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = 0..self.array.spec.geometry.dies();
        dies.filter(|&die| self.account.clock.pending_ns(die as usize) > 0 && self.array.has_in_flight(die as usize))
    }

    /// Tears the operations in flight: surely on die `hit`, on other busy dies as the faults are chosen.
    pub(crate) fn lose_power(&mut self, hit: Option<usize>) -> Result<(), NandError> {
        self.powered = false;
        self.account.counters.power_cuts += 1;
        self.failures.clear();
        let clock = &self.account.clock;
        let key = [self.plan.operations(), clock.now_ns(), self.plan.config.seed, 0];
        let rng = Rng::keyed(self.array.seed, Purpose::Cut, key);
        let mut loss = PowerLoss { array: &mut self.array, faults: &self.plan.config, now_ns: clock.now_ns(), rng };
        for die in 0..loss.array.dies() {
            if hit == Some(die) || (clock.pending_ns(die) > 0 && loss.reaches(die)) {
                loss.tear(die)?;
            } else {
                loss.array.settle_die(die);
            }
        }
        Ok(())
    }
}
