//! The bounds of the numbers in a profile.
//!
//! Invariant: a number outside its bounds is refused with the name of its field; a NaN lies in no bounds.

use crate::error::ProfileError;

/// `value` must lie in `least..=most`; written so that a NaN is refused.
pub(crate) fn range<T: PartialOrd + std::fmt::Display>(
    field: &'static str,
    value: T,
    least: T,
    most: T,
) -> Result<(), ProfileError> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(ProfileError::Field { field, why: format!("is {value}: it must lie in {least}..={most}") })
}
