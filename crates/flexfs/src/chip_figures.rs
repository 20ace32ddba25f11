//! What is told of a chip, whatever it holds: its kind and size, and how often its blocks were erased.
//!
//! Invariant: bad blocks are left out of all that is said of erases.

use nand::{CellMode, Geometry, Nand};
use serde_json::{Value, json};

use crate::output::grouped;
use crate::size;

/// Ranges of erase counts that are shown.
const RANGES: u32 = 8;
/// The longest bar of the histogram.
const BAR: usize = 40;

/// The figures of a chip.
pub struct ChipFigures {
    pub profile: String,
    geometry: Geometry,
    /// Erases a block endures: as SLC, natively.
    pub endurance: [u32; 2],
    /// Erase counts of the blocks that are not bad.
    erases: Vec<u32>,
}

impl ChipFigures {
    /// The figures of a chip of this name whose good blocks were erased so often.
    pub fn of<N: Nand>(chip: &N, name: &str, erases: Vec<u32>) -> Self {
        Self {
            profile: name.to_owned(),
            geometry: chip.geometry().clone(),
            endurance: CellMode::ALL.map(|mode| chip.endurance(mode)),
            erases,
        }
    }

    /// Its kind and size in a line.
    pub fn line(&self) -> String {
        let geometry = &self.geometry;
        let bits = match geometry.bits_per_cell {
            1 => "1 bit".to_owned(),
            many => format!("{many} bits"),
        };
        format!(
            "{}: {}, {} blocks of {} pages of {}, {bits} a cell, {} spare bytes",
            self.profile,
            size::human(geometry.native_bytes()),
            grouped(geometry.blocks.into()),
            geometry.pages_per_block,
            size::human(geometry.page_bytes.into()),
            geometry.spare_bytes,
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let geometry = &self.geometry;
        json!({
            "bytes": geometry.native_bytes(),
            "blocks": geometry.blocks,
            "pages_per_block": geometry.pages_per_block,
            "page_bytes": geometry.page_bytes,
            "spare_bytes": geometry.spare_bytes,
            "bits_per_cell": geometry.bits_per_cell,
            "dies": geometry.dies(),
        })
    }

    /// How worn it is, in a line.
    pub fn wear_line(&self) -> String {
        let (least, most) = self.extremes();
        format!(
            "{} least, {:.1} mean, {} most (a block endures {} as SLC, {} natively)",
            grouped(least.into()),
            self.mean(),
            grouped(most.into()),
            grouped(self.endurance[0].into()),
            grouped(self.endurance[1].into()),
        )
    }

    /// The same for programs.
    pub fn wear_json(&self) -> Value {
        let (least, most) = self.extremes();
        let ranges = histogram(&self.erases);
        let ranges = ranges.iter().map(|(from, to, blocks)| json!({ "from": from, "to": to, "blocks": blocks }));
        json!({
            "histogram": ranges.collect::<Vec<_>>(),
            "min": least,
            "mean": self.mean(),
            "max": most,
            "total": self.total(),
            "endurance_slc": self.endurance[0],
            "endurance_native": self.endurance[1],
        })
    }

    /// Blocks by how often they were erased, a bar a line, each after a line end.
    pub fn bars(&self) -> String {
        let histogram = histogram(&self.erases);
        let most = histogram.iter().map(|(.., blocks)| *blocks).max().unwrap_or(0).max(1);
        let mut text = String::new();
        for (from, to, blocks) in histogram {
            let bar = "#".repeat((blocks * BAR).div_ceil(most));
            text.push_str(&format!("\n{:>9}  {bar} {}", format!("{from}-{to}"), grouped(blocks as u64)));
        }
        text
    }

    /// Erases of the block that was erased most often.
    pub fn erases_max(&self) -> u32 {
        self.extremes().1
    }

    fn extremes(&self) -> (u32, u32) {
        let (least, most) = (self.erases.iter().min(), self.erases.iter().max());
        (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
    }

    fn total(&self) -> u64 {
        self.erases.iter().copied().map(u64::from).sum()
    }

    fn mean(&self) -> f64 {
        self.total() as f64 / self.erases.len().max(1) as f64
    }
}

/// Blocks by how often they were erased: from, to (both included), how many.
fn histogram(erases: &[u32]) -> Vec<(u32, u32, usize)> {
    let (Some(&least), Some(&most)) = (erases.iter().min(), erases.iter().max()) else { return Vec::new() };
    let width = (most - least) / RANGES + 1;
    let ranges = (0..RANGES).map(|range| (least + range * width, least + (range + 1) * width - 1));
    let counted = ranges.filter(|&(from, _)| from <= most).map(|(from, to)| {
        let inside = erases.iter().filter(|&&count| (from..=to).contains(&count)).count();
        (from, to.min(most), inside)
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_in_one_range_of_the_histogram() {
        for erases in [vec![3], vec![0, 1, 2, 3], (0..1000).collect::<Vec<u32>>(), vec![5; 100], vec![0, 4_000_000_000]]
        {
            let ranges = histogram(&erases);
            assert_eq!(ranges.iter().map(|(.., blocks)| blocks).sum::<usize>(), erases.len(), "{ranges:?}");
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0) && ranges.len() <= RANGES as usize);
        }
        assert_eq!(histogram(&[]), []);
    }
}
