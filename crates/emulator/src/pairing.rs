//! The order in which a block's pages are programmed, and which pages share a word line.
//!
//! Derived from a profile's few words (`unit`, `pairing`, `pairing_stride`), never listed by hand. Invariant: every
//! page of a block belongs to exactly one word line, and level 0 of a word line is always programmed first.

use nand::Layout;

use serde::{Deserialize, Serialize};

use crate::error::ProfileError;

/// How much one program operation writes in native mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramUnit {
    /// One page.
    Page,
    /// All the pages of a word line at once.
    WordLine,
}

/// Which pages share a word line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Neighbours in number.
    None,
    /// Linux's `dist3`, in steps of `pairing_stride` pages.
    Dist3,
}

/// How a block is programmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programming {
    /// What one program writes in native mode; in SLC mode it is always a page.
    pub unit: ProgramUnit,
    /// Which pages share a word line.
    pub pairing: Pairing,
    /// Neighbouring pages that make one step of the pairing.
    pub pairing_stride: u32,
}

impl Programming {
    /// How a block of so many pages is programmed, with one bit a cell and with `bits`.
    ///
    /// # Errors
    /// The pairing does not go with so many pages or bits.
    pub fn layouts(&self, pages_per_block: u32, bits: u8) -> Result<[Layout; 2], ProfileError> {
        let Pages { slc, native, .. } = pages(self, pages_per_block, bits)?;
        Ok([slc, native])
    }
}

/// What the pages of a block are to each other.
pub(crate) struct Pages {
    /// For each page its level on the word line: 0 is the LSB page, the only one SLC mode uses.
    pub(crate) levels: Vec<u8>,
    /// The programming order with one bit per cell.
    pub(crate) slc: Layout,
    /// The programming order with all bits per cell.
    pub(crate) native: Layout,
}

/// Works out the pages of a block of `pages_per_block` pages with `bits` bits per cell.
pub(crate) fn pages(programming: &Programming, pages_per_block: u32, bits: u8) -> Result<Pages, ProfileError> {
    if bits == 1 {
        let plain = Layout::plain(pages_per_block);
        return Ok(Pages { levels: vec![0; pages_per_block as usize], slc: plain.clone(), native: plain });
    }
    let word_lines = match programming.pairing {
        Pairing::Dist3 => dist3(pages_per_block, programming.pairing_stride, bits)?,
        Pairing::None => consecutive(pages_per_block, bits)?,
    };
    let mut levels = vec![0; pages_per_block as usize];
    let mut endangers = vec![Vec::new(); pages_per_block as usize];
    for line in &word_lines {
        for (level, &page) in line.iter().enumerate() {
            levels[page as usize] = level as u8;
            endangers[page as usize] = line[..level].to_vec();
        }
    }
    let lsb: Vec<u32> = (0..pages_per_block).filter(|&page| levels[page as usize] == 0).collect();
    let slc = Layout::new(pages_per_block, 1, lsb, Vec::new())?;
    let native = match programming.unit {
        ProgramUnit::Page => Layout::new(pages_per_block, 1, (0..pages_per_block).collect(), endangers)?,
        // All pages of a word line go in one program: none of them was there before it.
        ProgramUnit::WordLine => Layout::new(pages_per_block, u32::from(bits), word_lines.concat(), Vec::new())?,
    };
    Ok(Pages { levels, slc, native })
}

/// Word lines of neighbouring pages: 0 1 2, 3 4 5, and so on.
fn consecutive(pages_per_block: u32, bits: u8) -> Result<Vec<Vec<u32>>, ProfileError> {
    let bits = u32::from(bits);
    if !pages_per_block.is_multiple_of(bits) {
        return Err(ProfileError::Field {
            field: "geometry.pages_per_block",
            why: format!("must be a multiple of bits_per_cell, {bits}"),
        });
    }
    Ok((0..pages_per_block / bits).map(|line| (line * bits..(line + 1) * bits).collect()).collect())
}

/// Linux's "dist3" scheme: step 0 pairs with 2, then every odd step `s` with `s + 3`, and the last two odd steps
/// close up. A step is `stride` neighbouring pages: with 1 the pairs are (0,2) (1,4) (3,6) .. (253,255); with 2, as
/// on parts that program two pages of a step one after the other, (0,4) (1,5) (2,8) (3,9) .. (251,255).
fn dist3(pages_per_block: u32, stride: u32, bits: u8) -> Result<Vec<Vec<u32>>, ProfileError> {
    if bits != 2 {
        return Err(ProfileError::Field {
            field: "programming.pairing",
            why: format!("\"dist3\" is for 2 bits per cell, not {bits}"),
        });
    }
    if stride == 0 || pages_per_block / stride < 4 || !pages_per_block.is_multiple_of(2 * stride) {
        return Err(ProfileError::Field {
            field: "programming.pairing_stride",
            why: format!("a block of {pages_per_block} pages does not divide into pairs of steps of {stride} pages"),
        });
    }
    let steps = pages_per_block / stride;
    let step_pairs = (0..steps / 2).map(|pair| match pair {
        0 => (0, 2),
        _ if pair == steps / 2 - 1 => (steps - 3, steps - 1),
        _ => (2 * pair - 1, 2 * pair + 2),
    });
    let page_pairs =
        step_pairs.flat_map(|(low, high)| (0..stride).map(move |page| vec![low * stride + page, high * stride + page]));
    Ok(page_pairs.collect())
}
