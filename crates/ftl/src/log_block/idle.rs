//! Work in idle time: log blocks are reclaimed until half of them are in use, before a request needs
//! them (the paper's future work, §V). When there is idle time, the caller decides.
//!
//! Invariant: a step is one log block reclaimed.

use nand::Nand;

use super::LogBlock;
use crate::Result;
use crate::flash::Flash;

impl LogBlock {
    /// Reclaims a log block that is full, or the coldest where more than half are in use. Whether there was one.
    pub(super) fn reclaim_ahead(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        let full = self.logs.iter().position(|log| log.room() == 0);
        let half_in_use = self.logs.len() as u32 > self.logs_max / 2;
        let coldest = self.options.victim.choose(self.log_views(flash.next_stamp()).filter(|_| half_in_use));
        match full.or(coldest) {
            Some(at) => self.reclaim(flash, at).map(|()| true),
            None => Ok(false),
        }
    }
}
