//! The file system over the drive that maps only blocks: random histories, with power cuts in the operations of both. The
//! drive is started again from its chip at every mount. `FLEXFS_DRIVE_SEEDS` says how many of each kind.

use emulator::Chip;
use flexfs_core::{MountOptions, Policy};
use ftl::{BlockMapDrive, DriveFormat};
use torture::crash::{History, Outcome, Reading, Rig, Twin};
use torture::ops::{Step, Supply};

type Drive = BlockMapDrive<Chip>;

/// Operations after which a history is taken for running in circles.
const FUSE_OPERATIONS: u64 = 20_000;

/// What histories came to.
#[derive(Default)]
struct DriveTally {
    cuts: u32,
    cuts_in_recoveries: u32,
    remounts: u32,
}

fn started(mut chip: Chip) -> Drive {
    chip.power_on();
    Drive::start(chip).map_err(|(_, error)| error).unwrap()
}

/// Mounts what the power left; in one mount of three it goes again, up to twice.
fn mounted(mut chip: Chip, rig: &Rig, history: &History, now_ns: i64, tally: &mut DriveTally) -> Twin<Drive> {
    for again in 0..3 {
        let mut drive = started(chip);
        let number = tally.cuts + tally.remounts;
        if again < 2 && number.is_multiple_of(3) {
            drive.chip_mut().faults_mut().cut_power_at(u64::from(number / 3 % 13));
        }
        let options = MountOptions { now_ns, ..rig.options.clone() };
        match flexfs_core::Fs::mount(drive, options) {
            Ok(mut fs) => {
                fs.chip_mut().chip_mut().faults_mut().cancel_cut();
                return Twin { fs, history: history.clone(), now_ns };
            }
            Err((drive, error)) => {
                chip = drive.into_chip();
                assert!(!chip.is_powered(), "mount: {error}");
                tally.cuts_in_recoveries += 1;
            }
        }
    }
    panic!("the power went three times in mounts");
}

fn run(rig: &Rig, seed: u64, steps: usize, tally: &mut DriveTally) -> Result<(), String> {
    let format = DriveFormat { number: seed as u32, blank: true };
    let drive = Drive::create(rig.chip(seed)?, &format).map_err(|(_, error)| error.to_string())?;
    let mut twin = rig.format(drive, seed)?;
    let shape = rig.shape(&mut twin, 85, 40)?;
    let mut supply = Supply::new(seed);
    let mut cut_armed = false;
    for number in 0..steps {
        let step = shape.draw(&supply.words(), twin.history.live());
        let within = |error: String| format!("seed {seed}, step {number}, {step:?}: {error}");
        if !cut_armed {
            twin.fs.chip_mut().chip_mut().faults_mut().cut_power_at(FUSE_OPERATIONS);
        }
        let outcome = match &step {
            Step::Call(call) => twin.call(call),
            Step::Background(steps) => twin.background(*steps),
            Step::Cut(operations) => {
                twin.fs.chip_mut().chip_mut().faults_mut().cut_power_at(*operations);
                cut_armed = true;
                Ok(Outcome::Done)
            }
            Step::Remount => {
                let now_ns = twin.now_ns;
                let (drive, history) = twin.unmount().map_err(within)?;
                let chip = drive.into_chip();
                cut_armed &= chip.is_powered();
                twin = mounted(chip, rig, &history, now_ns, tally);
                tally.remounts += 1;
                Ok(Outcome::PowerLost)
            }
        };
        if outcome.map_err(within)? == Outcome::PowerLost {
            if !twin.fs.chip().chip().is_powered() {
                assert!(cut_armed, "seed {seed}, step {number}: it runs in circles");
                tally.cuts += 1;
                let Twin { fs, history, now_ns } = twin;
                twin = mounted(fs.into_chip().into_chip(), rig, &history, now_ns, tally);
            }
            cut_armed = false;
            twin.fs.chip_mut().chip_mut().faults_mut().cancel_cut();
            twin.settle(Reading::Twice).map_err(within)?;
            twin.history.forget_handles();
        }
    }
    twin.fs.chip_mut().chip_mut().faults_mut().cancel_cut();
    twin.compare()
}

#[test]
fn random_histories_over_a_drive_lose_nothing() {
    let seeds = std::env::var("FLEXFS_DRIVE_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    let mut tally = DriveTally::default();
    for (profile, blocks, pages) in [("flexfs-mlc", 56, 32), ("codesign-mlc8", 96, 16), ("flexfs-slc", 56, 16)] {
        for (seed, policy) in
            (0..seeds).flat_map(|seed| [Policy::default(), Policy::NATIVE_ONLY].map(|policy| (seed, policy)))
        {
            let rig = Rig::small(profile, blocks, pages, MountOptions { policy, ..MountOptions::default() }).unwrap();
            run(&rig, seed, 300, &mut tally).map_err(|error| format!("{profile}, {policy}: {error}")).unwrap();
        }
    }
    assert!(
        tally.cuts > 100 && tally.cuts_in_recoveries > 5 && tally.remounts > 100,
        "{} {} {}",
        tally.cuts,
        tally.cuts_in_recoveries,
        tally.remounts
    );
}
