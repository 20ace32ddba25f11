//! Lists of costs by level on the word line, LSB first: how they are checked and looked up.
//!
//! Invariant: every level has a cost, however short the list is.

use crate::bounds::range;
use crate::error::ProfileError;

/// The entry for `level`: the last one serves all further levels.
pub(crate) fn by_level(list: &[u64], level: usize) -> u64 {
    list.get(level).or(list.last()).copied().unwrap_or(0)
}

/// The list must have `least_len` to 4 entries, none above `most`.
pub(crate) fn check_levels(field: &'static str, list: &[u64], least_len: usize, most: u64) -> Result<(), ProfileError> {
    range(field, list.len(), least_len, 4)?;
    list.iter().try_for_each(|&cost| range(field, cost, 0, most))
}
