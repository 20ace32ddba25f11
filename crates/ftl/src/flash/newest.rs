//! The newest page of a volume: the one that a power cut may have torn.
//!
//! Invariant: nothing is built upon it before it was read twice, and its sector is written anew.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::tag::Tag;
use super::{Flash, Found, Place};
use crate::Result;

/// The newer of two pages.
pub fn newer(one: Option<(Place, Tag)>, other: Option<(Place, Tag)>) -> Option<(Place, Tag)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.1.stamp > one.1.stamp { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Whether a page reads as it did.
pub fn still_reads<N: Nand>(flash: &mut Flash<N>, newest: Option<(Place, Tag)>) -> Result<bool> {
    let Some((at, tag)) = newest else { return Ok(true) };
    Ok(flash.read(at, &mut [], Cause::Metadata)? == Found::Page(tag))
}

/// The bytes of the newest page, for its sector to be written anew: it may be torn and not show it. `None` where it
/// holds no sector, or is not where `is_latest` says that its sector stands, or cannot be read any more.
pub fn to_write_anew<N: Nand>(
    flash: &mut Flash<N>,
    newest: Option<(Place, Tag)>,
    is_latest: impl FnOnce(&Flash<N>, u32, Place) -> bool,
) -> Result<Option<(u32, Vec<u8>)>> {
    let newest = newest.filter(|(at, tag)| tag.kind.is_payload() && is_latest(flash, tag.logical, *at));
    let Some((at, tag)) = newest else { return Ok(None) };
    let mut data = alloc::vec![0; flash.page_bytes()];
    let found = flash.read(at, &mut data, Cause::Metadata)?;
    Ok(found.tag().map(|_| (tag.logical, data)))
}
