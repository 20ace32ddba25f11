//! The file system over the drive that maps only blocks: power cuts in the operations of both, failing blocks, wear. The drive
//! is started again from its chip at every mount. `FLEXFS_DRIVE_SEEDS` says how many random histories of each kind are run.

use emulator::Chip;
use flexfs_core::{Fs, MountOptions, NewNode, Policy, ROOT_INO, kind};
use ftl::{BlockMapDrive, DriveFormat};
use torture::content::mix;
use torture::crash::{BASE_NS, Rig, Run, Tally, VolumeOver};
use torture::files::{Campaign, Case, Depth, Ground, MediaRun, Setup, formats, media_run, mixes, sequences};

type Drive = BlockMapDrive<Chip>;

/// Steps of a random history that is cut at each operation, and one of so many sequences and formattings that are run here.
const MIX_STEPS: usize = 25;
const EACH: usize = 100;

#[test]
fn cuts_of_a_volume_and_its_drive_lose_nothing_synced() {
    let setups = Setup::all_over(VolumeOver::Codesign).iter();
    let thinned = |case: Case| Case { depth: Depth { again: [1, 0], ..case.depth }, ..case };
    let mixed = setups.clone().flat_map(|setup| mixes(setup, Ground::Full, 0..1, MIX_STEPS));
    let paired = setups.clone().flat_map(|setup| sequences(setup).unwrap()).step_by(EACH);
    let formatted = setups.flat_map(|setup| formats(setup).unwrap()).step_by(EACH / 10);
    let cases = mixed.chain(paired).chain(formatted).map(thinned).collect();
    let report = Campaign { cases, threads: 2, fail_fast: false }.run(&|_| {});
    let told: Vec<String> =
        report.told.iter().map(|(_, case, violation)| format!("{violation}: {}", case.command(violation))).collect();
    assert_eq!(told, [""; 0]);
    assert!(report.findings.cuts > 5_000 && report.findings.double_cuts > 2_000, "{:?}", report.findings);
}

#[test]
fn random_histories_over_a_drive_lose_nothing() {
    let seeds = std::env::var("FLEXFS_DRIVE_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    let mut tally = Tally::default();
    for (profile, blocks, pages) in [("flexfs-mlc", 56, 32), ("codesign-mlc8", 96, 16), ("flexfs-slc", 56, 16)] {
        for (seed, policy) in
            (0..seeds).flat_map(|seed| [Policy::default(), Policy::NATIVE_ONLY].map(|policy| (seed, policy)))
        {
            let options = MountOptions { policy, ..MountOptions::default() };
            let rig = Rig::small(profile, blocks, pages, options).unwrap();
            let rig = Rig { over: VolumeOver::Codesign, ..rig };
            tally += Run::seeded(rig, seed, 300, 85, 40)
                .map_err(|error| format!("{profile}, seed {seed}, {policy}: {error}"))
                .unwrap();
        }
    }
    assert!(tally.cuts > 100 && tally.remounts > 100, "{tally:?}");
}

/// Where every program and erase fails for a while no block is retired: each of these histories looks.
#[test]
fn failing_blocks_and_outages_lose_nothing_over_a_drive() {
    let mut all = MediaRun::default();
    for seed in 0..100 {
        all += media_run(VolumeOver::Codesign, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(all.failures > 100 && all.tally.outages > 20 && all.written_beside > 50, "{all:?}");
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
    let free: Vec<u32> = fs.chip().report().channels.iter().map(|channel| channel.free_blocks).collect();
    println!("free blocks by channel: {free:?}");
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
