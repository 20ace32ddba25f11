//! Power cuts with several operations in flight: which of them are torn is told, and what is told reproduces.

use emulator::{Chip, FaultConfig, InFlightLoss, TornKind};
use nand::CellMode::Slc;
use nand::{Nand, NandError};

use crate::common::{PageContents, contents, four_dies, page_contents, program};

/// A chip whose power goes in a program on die 3, with one more in flight on each other die.
fn cut_with(loss: InFlightLoss) -> Chip {
    let mut chip = four_dies();
    let faults = FaultConfig { torn: TornKind::Uncorrectable, in_flight_loss: loss, ..FaultConfig::default() };
    chip.faults_mut().set(faults);
    chip.faults_mut().cut_power_at(3);
    for block in 0..3 {
        program(&mut chip, block, 0, Slc).unwrap();
    }
    assert_eq!(chip.busy_dies().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(program(&mut chip, 3, 0, Slc), Err(NandError::PowerOff));
    chip.power_on();
    chip
}

fn torn(mut chip: Chip) -> [bool; 4] {
    [0, 1, 2, 3].map(|block| page_contents(&mut chip, block, 0).is_err())
}

#[test]
fn a_cut_tears_the_operations_that_are_told() {
    assert_eq!(torn(cut_with(InFlightLoss::Off)), [false, false, false, true]);
    assert_eq!(torn(cut_with(InFlightLoss::Always)), [true; 4]);
    for mask in 0..8 {
        let expected = [0, 1, 2].map(|die| mask >> die & 1 == 1);
        assert_eq!(torn(cut_with(InFlightLoss::Dies(mask)))[..3], expected, "{mask:#b}");
    }
}

#[test]
fn a_cut_that_is_told_leaves_the_same_bytes_again() {
    for torn in [TornKind::Seeded, TornKind::Garbage] {
        let cut = |loss| -> Vec<PageContents> {
            let mut chip = four_dies();
            chip.faults_mut().set(FaultConfig { torn, in_flight_loss: loss, ..FaultConfig::power_cuts(5) });
            for block in 0..4 {
                program(&mut chip, block, 0, Slc).unwrap();
            }
            chip.cut_power().unwrap();
            chip.power_on();
            contents(&mut chip)
        };
        let losses = [InFlightLoss::Seeded, InFlightLoss::Off, InFlightLoss::Always, InFlightLoss::Dies(0b1010)];
        for loss in losses {
            assert!(cut(loss) == cut(loss), "{torn:?}, {loss:?}");
        }
        assert!(cut(InFlightLoss::Off) != cut(InFlightLoss::Always));
    }
}

#[test]
fn an_operation_that_was_settled_is_torn_by_no_cut() {
    let mut chip = four_dies();
    chip.faults_mut().set(FaultConfig {
        torn: TornKind::Uncorrectable,
        in_flight_loss: InFlightLoss::Always,
        ..FaultConfig::default()
    });
    program(&mut chip, 0, 0, Slc).unwrap();
    chip.settle(0, &mut Vec::new()).unwrap();
    program(&mut chip, 1, 0, Slc).unwrap();
    chip.cut_power().unwrap();
    chip.power_on();
    assert_eq!(torn(chip), [false, true, false, false]);
}
