//! The volumes that inputs damage: small, real, and made anew by each process in the same way.
//!
//! Between them they hold every kind of slot, node and key, in both cell modes, originals and copies, before and after
//! a clean unmount. Invariant: undamaged, each mounts, and a check finds nothing.

use std::sync::LazyLock;

use emulator::{Chip, FaultConfig, Profile};
use flexfs_core::{Compression, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, Result, SetAttr, kind};
use ftl::DRIVE_TAG_BYTES;
use torture::content::{Fill, Texture};
use torture::crash::{BASE_NS, Emulated, Rig, Tap, TestedChip, VolumeOver};

/// Small files in one directory: enough for an index of two levels.
const SMALL_FILES: u64 = 70;
/// Synced overwrites: enough that blocks are emptied by copying, on each of the chips.
const OVERWRITES: u64 = 260;
const LARGE_CHUNKS: u64 = 14;
const STEP_NS: i64 = 1_024_000;

/// A volume that nobody has mounted.
pub struct Volume {
    pub name: &'static str,
    pub chip: Chip,
}

/// All of them, made when first asked for.
pub fn volumes() -> &'static [Volume] {
    static VOLUMES: LazyLock<Vec<Volume>> = LazyLock::new(|| {
        let kinds = [("mlc", mlc()), ("tlc", tlc()), ("many blocks", many_blocks())];
        let both = kinds.into_iter().flat_map(|(name, profile)| {
            let [clean, unclean] = make(&profile).unwrap_or_else(|error| panic!("making the volume {name}: {error}"));
            [Volume { name, chip: clean }, Volume { name, chip: unclean }]
        });
        both.collect()
    });
    &VOLUMES
}

/// Volumes over drives, on chips of one die and of eight.
pub fn drives() -> &'static [Volume] {
    static DRIVES: LazyLock<Vec<Volume>> = LazyLock::new(|| {
        let kinds =
            [("a drive", cut_down("flexfs-mlc", 36, 16)), ("a drive of 8 dies", cut_down("codesign-mlc8", 64, 16))];
        let both = kinds.into_iter().flat_map(|(name, mut profile)| {
            profile.geometry.spare_bytes += DRIVE_TAG_BYTES;
            let made = make_over(VolumeOver::Codesign, &profile);
            let [clean, unclean] = made.unwrap_or_else(|error| panic!("making the volume over {name}: {error}"));
            [Volume { name, chip: clean }, Volume { name, chip: unclean }]
        });
        both.collect()
    });
    &DRIVES
}

fn cut_down(name: &str, blocks: u32, pages_per_block: u32) -> Profile {
    let mut profile = Profile::builtin(name).unwrap_or_else(|error| panic!("{error}"));
    profile.geometry.blocks = blocks;
    profile.geometry.pages_per_block = pages_per_block;
    profile
}

fn mlc() -> Profile {
    cut_down("flexfs-mlc", 32, 16)
}

/// Two slots a page, six a unit.
fn tlc() -> Profile {
    let mut profile = cut_down("tlc-3d", 32, 24);
    profile.geometry.page_bytes = 8192;
    profile
}

/// More blocks than an anchor can list, so that there are pages of the block table; the smallest pages.
fn many_blocks() -> Profile {
    let mut profile = cut_down("flexfs-mlc", 150, 8);
    profile.geometry.page_bytes = 2048;
    profile
}

/// Unmounted, and with the power cut in the middle of use.
fn make(profile: &Profile) -> std::result::Result<[Chip; 2], String> {
    make_over(VolumeOver::Chip, profile)
}

/// The same over a chip or a drive.
fn make_over(over: VolumeOver, profile: &Profile) -> std::result::Result<[Chip; 2], String> {
    let options = MountOptions { cache_bytes: 128 << 10, now_ns: BASE_NS, ..MountOptions::default() };
    let rig = Rig { profile: profile.clone(), faults: FaultConfig::default(), options: options.clone(), over };
    let mut fs = rig.format(rig.tested(rig.chip(1)?, 1)?, 1)?.fs;
    let mount = |chip, policy, compression| {
        let chip = TestedChip::opened(Tap::new(chip, rig.faults.clone()), over)?;
        Fs::mount(chip, MountOptions { policy, compression, ..options.clone() }).map_err(|(_, error)| error.to_string())
    };
    let said = |error: flexfs_core::Error| error.to_string();
    furnish(&mut fs).map_err(said)?;
    let mut fs = mount(unmounted(fs)?, Policy::NATIVE_ONLY, Compression::Lz4)?;
    write_natively(&mut fs).map_err(said)?;
    let mut fs = mount(unmounted(fs)?, Policy::BASELINE, Compression::None)?;
    wear(&mut fs).map_err(said)?;
    leave_things_open(&mut fs).map_err(said)?;
    let mut cut = fs.chip().emulated().snapshot();
    cut.cut_power().map_err(|error| error.to_string())?;
    cut.power_on();
    Ok([unmounted(fs)?, cut])
}

fn unmounted(fs: Fs<TestedChip>) -> std::result::Result<Chip, String> {
    let (chip, outcome) = fs.unmount(BASE_NS);
    outcome.map(|()| chip.into_chip()).map_err(|error| error.to_string())
}

fn node(mode: u32) -> NewNode {
    NewNode { mode: mode | 0o644, uid: 1, gid: 2, rdev: 0 }
}

fn bytes(seed: u64, len: u64, texture: Texture) -> Vec<u8> {
    Fill { seed, start: 0, texture }.bytes(len as usize)
}

fn file(fs: &mut Fs<TestedChip>, parent: Ino, name: &str, contents: &[u8]) -> Result<Ino> {
    let ino = fs.create(parent, name.as_bytes(), node(kind::FILE), BASE_NS)?.ino;
    fs.write(ino, 0, contents, BASE_NS)?;
    Ok(ino)
}

/// One of everything.
fn furnish(fs: &mut Fs<TestedChip>) -> Result<()> {
    let chunk_bytes = u64::from(fs.statfs()?.chunk_bytes);
    let outer = fs.create(ROOT_INO, b"outer", node(kind::DIR), BASE_NS)?.ino;
    let inner = fs.create(outer, b"inner", node(kind::DIR), BASE_NS)?.ino;
    for number in 0..SMALL_FILES {
        file(fs, outer, &format!("small{number}"), &bytes(number, number * 7, Texture::Noise))?;
    }
    fs.sync()?;
    let large = file(fs, ROOT_INO, "large", &bytes(1, LARGE_CHUNKS * chunk_bytes, Texture::Noise))?;
    fs.link(large, inner, b"linked", BASE_NS)?;
    fs.setxattr(large, b"user.short", b"value", false, false, BASE_NS)?;
    fs.setxattr(large, b"user.long", &bytes(2, 1500, Texture::Text), false, false, BASE_NS)?;
    let holes = file(fs, inner, "holes", b"begins")?;
    for chunk in [3, 4, 9, 4000] {
        fs.write(holes, chunk * chunk_bytes + 5, &bytes(chunk, chunk_bytes, Texture::Noise), BASE_NS)?;
    }
    fs.punch(holes, 4 * chunk_bytes, chunk_bytes, BASE_NS)?;
    let kept = file(fs, ROOT_INO, "kept", b"short")?;
    fs.allocate(kept, 0, 4 * chunk_bytes, false, BASE_NS)?;
    fs.allocate(kept, 8 * chunk_bytes, 2 * chunk_bytes, true, BASE_NS)?;
    fs.symlink(outer, b"soft", b"inner/holes", 0, 0, BASE_NS)?;
    fs.symlink(outer, b"softer", &[b'x'; 1900], 0, 0, BASE_NS)?;
    fs.create(inner, b"pipe", node(kind::FIFO), BASE_NS)?;
    fs.create(inner, b"device", NewNode { rdev: 0x103, ..node(kind::CHAR) }, BASE_NS)?;
    fs.create(ROOT_INO, &[b'n'; 255], node(kind::FILE), BASE_NS)?;
    fs.sync()
}

/// Bare and compressed chunks in native blocks.
fn write_natively(fs: &mut Fs<TestedChip>) -> Result<()> {
    let chunk_bytes = u64::from(fs.statfs()?.chunk_bytes);
    file(fs, ROOT_INO, "native", &bytes(3, 20 * chunk_bytes, Texture::Noise))?;
    file(fs, ROOT_INO, "packed", &bytes(4, 8 * chunk_bytes, Texture::Text))?;
    fs.sync()
}

/// Overwrites until blocks had to be emptied.
fn wear(fs: &mut Fs<TestedChip>) -> Result<()> {
    let chunk_bytes = u64::from(fs.statfs()?.chunk_bytes);
    let large = fs.lookup(ROOT_INO, b"large")?.ino;
    let mut now_ns = BASE_NS;
    for number in 0..OVERWRITES {
        now_ns += STEP_NS;
        let chunk = number * 5 % LARGE_CHUNKS;
        fs.write(large, chunk * chunk_bytes, &bytes(number, chunk_bytes, Texture::Noise), now_ns)?;
        fs.sync()?;
        fs.background(now_ns, now_ns)?;
    }
    Ok(())
}

/// What stands in the log but in no checkpoint: every kind of node, an orphan, a group without an end.
fn leave_things_open(fs: &mut Fs<TestedChip>) -> Result<()> {
    let now_ns = BASE_NS + 1000 * STEP_NS;
    let outer = fs.lookup(ROOT_INO, b"outer")?.ino;
    let large = fs.lookup(ROOT_INO, b"large")?.ino;
    let kept = fs.lookup(ROOT_INO, b"kept")?.ino;
    let orphan = file(fs, ROOT_INO, "orphan", b"held open")?;
    fs.open(orphan)?;
    fs.unlink(ROOT_INO, b"orphan", now_ns)?;
    fs.unlink(outer, b"small1", now_ns)?;
    fs.removexattr(large, b"user.short", now_ns)?;
    fs.setxattr(large, b"user.new", b"newer", false, false, now_ns)?;
    fs.setattr(large, SetAttr { size: Some(10_000), ..SetAttr::default() }, now_ns)?;
    fs.allocate(kept, 20_000, 9000, true, now_ns)?;
    fs.sync()?;
    file(fs, outer, "later", &bytes(5, 9000, Texture::Noise))?;
    fs.sync()?;
    file(fs, outer, "last", &bytes(6, 600, Texture::Noise))?;
    fs.write(large, 0, b"never synced", now_ns).map(drop)
}
