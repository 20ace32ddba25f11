//! The file system over the drive that maps only blocks: random histories, with power cuts in the operations of both. The
//! drive is started again from its chip at every mount. `FLEXFS_DRIVE_SEEDS` says how many of each kind.

use emulator::Chip;
use flexfs_core::{Fs, MountOptions, NewNode, Policy, ROOT_INO, kind};
use ftl::{BlockMapDrive, DriveFormat};
use torture::content::mix;
use torture::crash::{BASE_NS, History, Outcome, Reading, Rig, Twin};
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

/// Starts and mounts what the power left; in one of three it goes again, up to twice.
fn mounted(mut chip: Chip, rig: &Rig, history: &History, now_ns: i64, tally: &mut DriveTally) -> Twin<Drive> {
    for again in 0..3 {
        chip.power_on();
        let number = tally.cuts + tally.remounts;
        if again < 2 && number.is_multiple_of(3) {
            chip.faults_mut().cut_power_at(u64::from(number / 3 % 13));
        }
        let options = MountOptions { now_ns, ..rig.options.clone() };
        let mounted = match Drive::start(chip) {
            Ok(drive) => Fs::mount(drive, options).map_err(|(drive, error)| (drive.into_chip(), error.to_string())),
            Err((left, error)) => Err((left, error.to_string())),
        };
        match mounted {
            Ok(mut fs) => {
                fs.chip_mut().chip_mut().faults_mut().cancel_cut();
                return Twin { fs, history: history.clone(), now_ns };
            }
            Err((left, error)) => {
                assert!(!left.is_powered(), "start and mount: {error}");
                chip = left;
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

/// Blocks that endure 20 cycles, overwritten twelve times over while half of the data stays, with ten power cuts between.
#[test]
fn blocks_and_channels_of_a_drive_wear_evenly() {
    const CHUNK: u64 = 4096;
    const PAUSE_NS: i64 = 50_000_000;
    let mut rig = Rig::small("codesign-mlc8", 256, 16, MountOptions::default()).unwrap();
    (rig.profile.endurance.slc_erases, rig.profile.endurance.native_erases) = (20, 20);
    let drive =
        Drive::create(rig.chip(1).unwrap(), &DriveFormat { number: 1, blank: true }).map_err(|(_, error)| error);
    let mut twin = rig.format(drive.unwrap(), 1).unwrap();
    let capacity = twin.fs.statfs().unwrap().capacity_bytes * 3 / 4;
    let file = |name: &[u8], fs: &mut Fs<Drive>| {
        let node = NewNode { mode: kind::FILE | 0o600, uid: 0, gid: 0, rdev: 0 };
        fs.create(ROOT_INO, name, node, BASE_NS).unwrap().ino
    };
    let (kept, changed) = (file(b"kept", &mut twin.fs), file(b"changed", &mut twin.fs));
    let chunks = capacity / 2 / CHUNK;
    let mut fs = twin.fs;
    for chunk in 0..chunks {
        for ino in [kept, changed] {
            fs.write(ino, chunk * CHUNK, &page(ino, chunk), BASE_NS).unwrap();
        }
    }
    fs.sync().unwrap();
    let writes = 12 * capacity / CHUNK;
    for number in 0..writes {
        if number % (writes / 11) == writes / 12 {
            let mut chip = fs.into_chip().into_chip();
            chip.cut_power().unwrap();
            chip.power_on();
            let drive = Drive::start(chip).map_err(|(_, error)| error).unwrap();
            fs = Fs::mount(drive, MountOptions { now_ns: BASE_NS, ..rig.options.clone() })
                .map_err(|(_, error)| error)
                .unwrap();
        }
        let chunk = mix(number) % chunks;
        fs.write(changed, chunk * CHUNK, &page(number, chunk), BASE_NS).unwrap();
        if number % 16 == 0 {
            fs.sync().unwrap();
        }
        let (mut now_ns, next_ns) = (number as i64 * PAUSE_NS, (number as i64 + 1) * PAUSE_NS);
        fs.request(now_ns);
        while let Some(step_ns) = fs.background(now_ns, BASE_NS + now_ns).unwrap().filter(|&at| at < next_ns) {
            now_ns = step_ns.max(now_ns + 1_000_000);
        }
    }
    let mut found = [0; CHUNK as usize];
    for chunk in 0..chunks {
        fs.read(kept, chunk * CHUNK, &mut found).unwrap();
        assert!(found[..] == page(kept, chunk)[..], "chunk {chunk} of the file that stayed");
    }
    let chip = fs.chip().chip();
    let erases: Vec<u32> = chip.erase_counts().collect();
    let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
    let most = *erases.iter().max().unwrap();
    let of_channel = |channel: usize| erases.iter().skip(channel).step_by(8).sum::<u32>();
    let channels: Vec<u32> = (0..8).map(of_channel).collect();
    let (least_of, most_of) = (channels.iter().min().unwrap(), channels.iter().max().unwrap());
    assert!(f64::from(most) <= 1.6 * mean, "{most} erases of a block, {mean:.2} on average");
    assert!(f64::from(*most_of) <= 1.3 * f64::from(*least_of), "erases by channel: {channels:?}");
}

fn page(seed: u64, chunk: u64) -> Vec<u8> {
    (0..512).flat_map(|word| mix(seed << 32 ^ chunk << 10 ^ word).to_le_bytes()).collect()
}
