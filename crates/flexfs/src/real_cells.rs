//! The cells of a real chip: as a profile or an option tells of them, as the volume keeps them, and as the driver uses them.
//!
//! Invariant: the volume keeps everything that the driver needs, so that a mount takes no option.

use emulator::{Pairing, Profile, ProgramUnit, Programming};
use flexfs_core::CellRecord;
use mtd::ChipCells;
use nand::Geometry;

/// Erases that a block of one bit a cell endures, unless somebody says how many.
pub const USUAL_ENDURANCE: u32 = 100_000;

/// The most erases that a volume can keep.
const ENDURANCE_MAX: u32 = (1 << 24) - 1;

/// Cells of one bit.
pub fn one_bit(endurance: u32) -> CellRecord {
    let erases = endurance.min(ENDURANCE_MAX);
    CellRecord { bits_per_cell: 1, pairing: 0, pairing_stride: 1, endurance: [erases; 2] }
}

/// The cells that a profile describes.
pub fn of_profile(profile: &Profile) -> Result<CellRecord, String> {
    let Programming { unit, pairing, pairing_stride } = &profile.programming;
    if *unit != ProgramUnit::Page {
        return Err("a program of a real chip writes one page; choose a profile with unit = \"page\"".to_owned());
    }
    let stride = u8::try_from(*pairing_stride).map_err(|_| "a pairing stride of more than 255".to_owned())?;
    let endurance = [profile.endurance.slc_erases, profile.endurance.native_erases];
    Ok(CellRecord {
        bits_per_cell: profile.geometry.bits_per_cell,
        pairing: u8::from(*pairing == Pairing::Dist3),
        pairing_stride: stride,
        endurance: endurance.map(|erases| erases.min(ENDURANCE_MAX)),
    })
}

/// The cells that a volume kept, for the driver of a chip.
pub fn chip_cells(record: &CellRecord, geometry: &Geometry) -> Result<ChipCells, String> {
    let pairing = match record.pairing {
        0 => Pairing::None,
        1 => Pairing::Dist3,
        other => return Err(format!("the volume names the pairing scheme {other}, which this version does not know")),
    };
    let programming = Programming { unit: ProgramUnit::Page, pairing, pairing_stride: record.pairing_stride.into() };
    let layouts = programming.layouts(geometry.pages_per_block, record.bits_per_cell);
    Ok(ChipCells {
        bits_per_cell: record.bits_per_cell,
        layouts: layouts.map_err(|error| error.to_string())?,
        endurance: record.endurance,
    })
}

#[cfg(test)]
mod tests {
    use nand::CellMode;

    use super::*;

    #[test]
    fn what_a_volume_keeps_is_what_its_profile_says() {
        let profile = Profile::default();
        let record = of_profile(&profile).unwrap();
        let chip = emulator::Chip::new(&profile.with_capacity(16 << 20).unwrap(), 1).unwrap();
        let cells = chip_cells(&record, nand::Nand::geometry(&chip)).unwrap();
        assert_eq!(cells.layouts, CellMode::ALL.map(|mode| nand::Nand::layout(&chip, mode).clone()));
        assert_eq!(cells.endurance, CellMode::ALL.map(|mode| nand::Nand::endurance(&chip, mode)));
        assert_eq!(cells.bits_per_cell, 2);
    }

    #[test]
    fn chips_that_program_several_pages_at_once_are_refused() {
        let told = of_profile(&Profile::builtin("tlc-3d").unwrap()).unwrap_err();
        assert!(told.contains("one page"), "{told}");
    }
}
