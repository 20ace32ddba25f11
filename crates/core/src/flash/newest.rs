//! Finding the newest anchor on a chip, without knowing anything else of it.
//!
//! Invariant: where anchors are whole it reads a number of pages that grows with the logarithm of a block's pages, never
//! with the chip.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::shape::Shape;
use crate::error::{Error, Result};
use crate::format::anchor::{ANCHOR_BLOCKS, Anchor, NotAnchor, half_used};
use crate::format::tag::{Kind, TAG_BYTES, Tag, is_blank};

/// An anchor found at mount.
pub struct Found {
    pub anchor: Anchor,
    pub block: u32,
    pub unit: u32,
    /// The first unit behind the last that is not blank.
    pub end: u32,
}

/// How closely a block has been looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Not,
    /// Its first units.
    Quick,
    Whole,
}

/// Units at the start of a block that a quick look takes in: one may be damaged.
const FIRST_UNITS: u32 = 3;

/// The newest anchor on a chip.
pub fn find<N: Nand>(nand: &mut N, shape: &Shape) -> Result<Found> {
    let mut newest: Option<Found> = None;
    let mut other_version = None;
    let (mut bad, mut holders) = (Vec::new(), Vec::new());
    let mut looks = [Look::Not; ANCHOR_BLOCKS as usize];
    let mut next = Some((0, Look::Quick));
    while let Some((block, look)) = next {
        if let Some(to) = looks.get_mut(block as usize) {
            *to = look;
        }
        if nand.is_bad(block) {
            bad.push(block);
        } else {
            let first_units = if look == Look::Whole { shape.slc.units } else { FIRST_UNITS };
            match newest_in(nand, shape, block, first_units)? {
                Ok(Some(here)) => {
                    holders.push(block);
                    if newest.as_ref().is_none_or(|found| found.anchor.serial < here.anchor.serial) {
                        newest = Some(here);
                    }
                }
                Ok(None) => {}
                Err(version) => other_version = Some(version),
            }
        }
        let lacks = |look: Look| {
            move |&(_, seen): &(u32, Look)| seen == Look::Not || (look == Look::Whole && seen == Look::Quick)
        };
        let mut blocks = (0..shape.geometry.blocks).zip(looks);
        let found = newest.as_ref().map(|found| (found.block, found.anchor.pair));
        // Where a block of the pair has gone bad, or was about to be made ready, another may have taken its place: the
        // newest could stand anywhere.
        let making_ready = newest.as_ref().is_some_and(|found| found.unit + 1 == half_used(shape.slc.units));
        let gone = |block: &u32| bad.contains(block) || (making_ready && !holders.contains(block));
        let settled = found.is_some_and(|(_, pair)| !pair.iter().any(gone));
        let of_pair = |&(block, _): &(u32, Look)| found.is_some_and(|(at, pair)| block != at && pair.contains(&block));
        let in_pair = blocks.clone().filter(of_pair).find(lacks(Look::Whole)).map(|(block, _)| (block, Look::Whole));
        let anywhere = blocks.clone().find(lacks(Look::Quick)).map(|(block, _)| (block, Look::Quick));
        let nowhere = blocks.find(lacks(Look::Whole)).map(|(block, _)| (block, Look::Whole));
        next = match (found.is_some() || other_version.is_some(), settled) {
            (true, true) => in_pair,
            (true, false) => in_pair.or(anywhere),
            (false, _) => anywhere.or(nowhere),
        };
    }
    match (newest, other_version) {
        (_, Some(found)) => Err(Error::Version { found, supported: crate::format::anchor::VERSION }),
        (Some(found), None) => Ok(found),
        (None, None) => Err(Error::NotFlexfs("none of its first 16 blocks holds an anchor; format it with mkfs")),
    }
}

/// What a page that may hold an anchor holds.
pub(super) enum Page {
    Blank,
    Anchor(Box<Anchor>),
    OtherVersion(u32),
    /// Something else, or unreadable.
    Other,
}

/// Whether a unit that was to be programmed and the one before read as blank: a mount looks past one such unit, not past two.
pub(super) fn leaves_gap<N: Nand>(nand: &mut N, shape: &Shape, block: u32, unit: u32) -> Result<bool> {
    for unit in [Some(unit), unit.checked_sub(1)].into_iter().flatten() {
        if !matches!(read_page(nand, shape, block, unit)?, Page::Blank) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The newest anchor in a block, if one of the first units holds one; `Err` is a version that is not this
/// program.
fn newest_in<N: Nand>(
    nand: &mut N,
    shape: &Shape,
    block: u32,
    first_units: u32,
) -> Result<core::result::Result<Option<Found>, u32>> {
    for unit in 0..first_units {
        match read_page(nand, shape, block, unit)? {
            Page::Blank => return Ok(Ok(None)),
            Page::OtherVersion(version) => return Ok(Err(version)),
            Page::Anchor(_) => break,
            Page::Other if unit + 1 == first_units => return Ok(Ok(None)),
            Page::Other => {}
        }
    }
    let (mut written, mut blank) = (0, shape.slc.units);
    while written + 1 < blank {
        let middle = written + (blank - written) / 2;
        match read_page(nand, shape, block, middle)? {
            Page::Blank => blank = middle,
            _ => written = middle,
        }
    }
    // A makeshift block has gaps of one page, where a torn one may look blank.
    while let Some(unit) = Some(written + 2).filter(|&unit| unit < shape.slc.units)
        && !matches!(read_page(nand, shape, block, unit)?, Page::Blank)
    {
        written = unit;
        while written + 1 < shape.slc.units && !matches!(read_page(nand, shape, block, written + 1)?, Page::Blank) {
            written += 1;
        }
    }
    for unit in (0..=written).rev() {
        match read_page(nand, shape, block, unit)? {
            // One that others stood behind may have been hit by an erase that was cut, and read well only once more.
            Page::Anchor(_) if unit < written && !matches!(read_page(nand, shape, block, unit)?, Page::Anchor(_)) => {}
            Page::Anchor(anchor) => {
                return Ok(Ok(Some(Found { anchor: *anchor, block, unit, end: written + 1 })));
            }
            Page::OtherVersion(version) => return Ok(Err(version)),
            Page::Blank | Page::Other => {}
        }
    }
    Ok(Ok(None))
}

/// An anchor on one of the first pages of a good block, in whatever order the others are programmed. Damaged first pages
/// are passed over.
pub fn any_early_anchor<N: Nand>(nand: &mut N, shape: &Shape) -> Result<Option<Anchor>> {
    for unit in 0..FIRST_UNITS {
        for block in 0..ANCHOR_BLOCKS.min(shape.geometry.blocks) {
            if !nand.is_bad(block)
                && let Page::Anchor(anchor) = read_page(nand, shape, block, unit)?
            {
                return Ok(Some(*anchor));
            }
        }
    }
    Ok(None)
}

/// Whether two pages of the pair hold the newest clean anchor.
pub fn stands_twice<N: Nand>(nand: &mut N, shape: &Shape, pair: [u32; 2]) -> Result<bool> {
    let mut clean = Vec::new();
    for block in pair.into_iter().filter(|&block| !nand.is_bad(block)).collect::<Vec<_>>() {
        let Ok(Some(found)) = newest_in(nand, shape, block, shape.slc.units)? else { continue };
        let before = found.unit.checked_sub(1).map(|unit| read_page(nand, shape, block, unit)).transpose()?;
        let before = if let Some(Page::Anchor(anchor)) = before { Some(*anchor) } else { None };
        let both = [Some(found.anchor), before].into_iter().flatten();
        clean.extend(both.filter(|anchor| anchor.clean).map(|anchor| anchor.checkpoint));
    }
    let newest = clean.iter().max();
    Ok(clean.iter().filter(|checkpoint| Some(*checkpoint) == newest).count() > 1)
}

/// Whether a mount could come across an anchor in a block.
pub fn holds_anchor<N: Nand>(nand: &mut N, shape: &Shape, block: u32) -> Result<bool> {
    let units = if block < ANCHOR_BLOCKS { shape.slc.units } else { 0 };
    for unit in 0..units {
        if matches!(read_page(nand, shape, block, unit)?, Page::Anchor(_) | Page::OtherVersion(_)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A page that may hold an anchor.
pub(super) fn read_page<N: Nand>(nand: &mut N, shape: &Shape, block: u32, unit: u32) -> Result<Page> {
    let Some(&page) = nand.layout(CellMode::Slc).unit_pages(unit).first() else { return Ok(Page::Other) };
    let mut data = vec![0; shape.slot_bytes];
    let mut raw = [0; TAG_BYTES];
    match nand.read(block, page, 0, &mut data, &mut raw, Cause::Metadata) {
        Ok(_) => {}
        Err(NandError::Uncorrectable { .. }) => return Ok(Page::Other),
        Err(error) => return Err(error.into()),
    }
    if is_blank(&raw) && is_blank(&data) {
        return Ok(Page::Blank);
    }
    match Tag::decode(&raw, 0, &data) {
        Some(tag) if tag.kind == Kind::Anchor => Ok(match Anchor::decode(&data) {
            Ok(anchor) => Page::Anchor(Box::new(anchor)),
            Err(NotAnchor::Version(version)) => Page::OtherVersion(version),
            Err(NotAnchor::Foreign) => Page::Other,
        }),
        _ => Ok(Page::Other),
    }
}
