//! How many operations of the chip are under way at a time, on which a recovery relies: after a cut at most one program
//! or erase may have been torn, on however many dies.

use emulator::Chip;
use flexfs_core::{MountOptions, Policy};
use nand::{Cause, CellMode, Failure, Nand, NandError, NandWrapper};
use torture::crash::{Emulated, History, Reading, Rig, Twin};
use torture::ops::{Step, Supply};

/// A chip that allows one operation at a time.
struct Single {
    chip: Chip,
    in_flight: bool,
    operations: u64,
}

impl Single {
    fn begin(&mut self) {
        assert!(!self.in_flight, "a second operation is posted before the first one has ended");
        (self.in_flight, self.operations) = (true, self.operations + 1);
    }
}

impl Emulated for Single {
    fn emulated(&self) -> &Chip {
        &self.chip
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }
}

impl NandWrapper for Single {
    type Inner = Chip;

    fn inner(&self) -> &Chip {
        &self.chip
    }

    fn inner_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.begin();
        self.chip.program(block, unit, mode, data, spare, cause)
    }

    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.begin();
        self.chip.erase(block, cause)
    }

    fn pass_barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.in_flight = false;
        self.chip.barrier(failures)
    }

    fn pass_settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.in_flight = false;
        self.chip.settle(die, failures)
    }
}

fn mounted(chip: Single, mut history: History, now_ns: i64, rig: &Rig) -> Twin<Single> {
    history.forget_handles();
    let mut twin = Twin::mount(chip, &rig.options, history, now_ns).unwrap();
    twin.settle(Reading::Once).unwrap();
    twin
}

#[test]
fn no_operation_is_posted_before_the_last_one_has_ended() {
    for (profile, blocks, pages) in [("codesign-mlc8", 64, 16), ("tlc-3d", 42, 24)] {
        for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
            let rig = Rig::small(profile, blocks, pages, MountOptions { policy, ..MountOptions::default() }).unwrap();
            let chip = Single { chip: rig.chip(1).unwrap(), in_flight: false, operations: 0 };
            let mut twin = rig.format(chip, 1).unwrap();
            let shape = rig.shape(&mut twin, 85, 20).unwrap();
            let mut supply = Supply::new(1);
            let (mut remounts, mut recoveries) = (0, 0);
            for _ in 0..1_500 {
                match shape.draw(&supply.words(), twin.history.live()) {
                    Step::Call(call) => drop(twin.call(&call).unwrap()),
                    Step::Background(steps) => drop(twin.background(steps).unwrap()),
                    Step::Remount => {
                        let (now_ns, (chip, history)) = (twin.now_ns, twin.unmount().unwrap());
                        twin = mounted(chip, history, now_ns, &rig);
                        remounts += 1;
                    }
                    Step::Cut(failing) => {
                        let Twin { fs, history, now_ns } = twin;
                        let mut chip = fs.into_chip();
                        if recoveries < 2 {
                            chip.chip.faults_mut().fail_program_at(failing);
                        }
                        twin = mounted(chip, history, now_ns, &rig);
                        recoveries += 1;
                    }
                }
            }
            let info = twin.fs.info().unwrap();
            let chip = twin.fs.chip();
            assert!(chip.operations > 200 && remounts > 3 && recoveries > 3, "{remounts} {recoveries}");
            assert_eq!(info.blocks.bad + info.failing_blocks, 2, "blocks that failed");
        }
    }
}
