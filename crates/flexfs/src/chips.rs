//! Which chips a volume can be made on: the built-in ones, and the sizes that each kind can have.
//!
//! Invariant: a size that is refused comes with those beside it that are not, written as they may be typed.

use emulator::{Chip, EmulatorError, Profile, ProfileError};
use flexfs_core::{Error, FormatOptions, Fs, most_blocks, spare_bytes_needed};
use ftl::{DRIVE_TAG_BYTES, DriveFormat};
use torture::crash::VolumeOver;

use crate::output::grouped;
use crate::size;

/// The built-in chips that can carry a volume, the default first.
pub const NAMES: [&str; 4] = [Profile::DEFAULT, "flexfs-slc", "codesign-mlc8", "tlc-3d"];

/// The log-block paper's chip, on which translation layers are measured.
pub const OF_LAYERS: &str = "k9f5608u0m";

/// The fewest erase blocks that a volume can do with.
const LEAST_BLOCKS: u64 = 12;

/// All built-in chips: those that can carry a volume, then those for translation layers alone.
pub fn all_names() -> Vec<&'static str> {
    NAMES.into_iter().chain(only_for_layers()).collect()
}

/// The built-in chips that can carry a translation layer, and no volume.
pub fn only_for_layers() -> impl Iterator<Item = &'static str> {
    Profile::names().iter().copied().filter(|name| !NAMES.contains(name))
}

/// A chip of that kind with `bytes` of native capacity; `flag` is how its size is asked for.
pub fn sized(profile: &Profile, bytes: u64, flag: &str) -> Result<Profile, String> {
    sized_over(VolumeOver::Chip, profile, bytes, flag)
}

/// The same for a volume over a drive, which needs more blocks, and more spare bytes.
pub fn sized_over(over: VolumeOver, profile: &Profile, bytes: u64, flag: &str) -> Result<Profile, String> {
    let shape = &profile.geometry;
    let least = match over {
        VolumeOver::Chip => LEAST_BLOCKS,
        VolumeOver::Codesign => {
            let needed = spare_bytes_needed(shape.page_bytes) + DRIVE_TAG_BYTES;
            if shape.spare_bytes < needed {
                return Err(format!(
                    "{}: a page has {} spare bytes; over a drive {needed} are needed, {DRIVE_TAG_BYTES} of them for the drive",
                    profile.name, shape.spare_bytes
                ));
            }
            DriveFormat::chip_blocks(LEAST_BLOCKS as u32, shape.dies()).into()
        }
    };
    if let Err(why) = carries(profile, LEAST_BLOCKS) {
        return Err(format!("{}: {why}; take --profile {}", profile.name, NAMES.join(" or ")));
    }
    let most = of_chip(profile).min(most_blocks(shape.page_bytes).into());
    within(profile, bytes, flag, (least, most))
}

/// The same, whether or not chips of that kind carry a file system.
pub fn fitted(profile: &Profile, bytes: u64, flag: &str) -> Result<Profile, String> {
    within(profile, bytes, flag, (LEAST_BLOCKS, of_chip(profile)))
}

/// A chip of so many blocks: from, to (both included).
fn within(
    profile: &Profile,
    bytes: u64,
    flag: &str,
    (least_blocks, most_blocks): (u64, u64),
) -> Result<Profile, String> {
    let (name, block) = (&profile.name, profile.block_bytes());
    let (smallest, largest) = (block * least_blocks, block * most_blocks);
    let [asked, least, most] = [bytes, smallest, largest].map(size::typed);
    let multiple = format!("it must be a multiple of {block} bytes, from {least} on");
    if bytes < smallest {
        return Err(format!("{asked} is too small for {name}: {multiple}; take {flag} {least}"));
    }
    if bytes > largest {
        let blocks = grouped(most_blocks);
        return Err(format!(
            "{asked} is too large for {name}: at most {blocks} blocks fit; take {flag} {most} or less"
        ));
    }
    let below = bytes / block * block;
    if below < bytes {
        let (low, high) = (size::typed(below), size::typed(below + block));
        return Err(format!("{asked} does not fit {name}: {multiple}; take {flag} {low} or {flag} {high}"));
    }
    profile.with_capacity(bytes).map_err(|error| error.to_string())
}

/// The blocks that a chip of that kind can have.
fn of_chip(profile: &Profile) -> u64 {
    match profile.with_capacity(u64::MAX) {
        Err(ProfileError::Capacity { most, .. }) => most / profile.block_bytes(),
        _ => u64::from(u32::MAX),
    }
}

/// The capacity of a chip of that kind that is nearest to `bytes`.
pub fn nearest(profile: &Profile, bytes: u64) -> u64 {
    let block = profile.block_bytes();
    (bytes.saturating_add(block / 2) / block).max(LEAST_BLOCKS) * block
}

/// Whether a chip of that kind with so many blocks carries a volume, tried on one in memory.
fn carries(profile: &Profile, blocks: u64) -> Result<(), String> {
    let chip = profile.with_capacity(blocks * profile.block_bytes()).map_err(EmulatorError::from);
    let mut chip = chip.and_then(|profile| Chip::new(&profile, 0)).map_err(|error| error.to_string())?;
    let options =
        FormatOptions { volume_id: [0; 16], label: String::new(), blank: true, now_ns: 0, ..FormatOptions::default() };
    match Fs::format(&mut chip, &options) {
        Err(error @ Error::Unsuitable(_)) => Err(error.to_string()),
        // What a chip's life does to this one says nothing of others.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chips_that_are_named_and_no_others_carry_a_volume_from_the_least_size_on() {
        for name in Profile::names() {
            let profile = Profile::builtin(name).unwrap();
            let carries = |blocks: u64| carries(&profile, blocks).is_ok();
            assert_eq!(carries(LEAST_BLOCKS), NAMES.contains(name), "{name}");
            assert!(!carries(LEAST_BLOCKS - 1) && all_names().contains(name), "{name}");
        }
        let why = sized(&Profile::builtin("k9f5608u0m").unwrap(), 16 << 20, "--size").unwrap_err();
        assert!(why.contains("pages must be") && why.contains("codesign-mlc8 or tlc-3d"), "{why}");
    }

    #[test]
    fn a_size_that_does_not_fit_is_refused_with_those_that_do() {
        let profile = Profile::builtin("tlc-3d").unwrap();
        let refused = |bytes| sized(&profile, bytes, "--size").unwrap_err();
        assert!(refused(512 << 20).ends_with("take --size 504MiB or --size 516MiB"), "{}", refused(512 << 20));
        for bytes in [0, 1, 5 << 20, (144 << 20) - 1] {
            assert!(refused(bytes).ends_with("take --size 144MiB"), "{}", refused(bytes));
        }
        for fitting in [144, 504, 516] {
            assert_eq!(sized(&profile, fitting << 20, "").unwrap().capacity_bytes(), fitting << 20);
        }
    }

    /// The number that was asked for was suggested, or no number at all.
    #[test]
    fn a_size_that_is_too_large_is_refused_with_the_largest_that_is_not() {
        let profile = Profile::default();
        let refused = |bytes| sized(&profile, bytes, "--size").unwrap_err();
        let (blocks, largest) = (303_104, 303_104 * profile.block_bytes());
        for bytes in [largest + 1, largest + profile.block_bytes(), 1 << 40, u64::MAX] {
            let told = format!("at most {} blocks fit; take --size {} or less", grouped(blocks), size::typed(largest));
            assert!(refused(bytes).ends_with(&told), "{}", refused(bytes));
        }
        assert_eq!(sized(&profile, largest, "--size").unwrap().capacity_bytes(), largest);
        let mut short = profile.clone();
        short.geometry.pages_per_block = 16;
        assert!(carries(&short, blocks).is_ok() && carries(&short, blocks + 1).is_err());
        let layers = Profile::builtin(OF_LAYERS).unwrap();
        for bytes in [1 << 40, u64::MAX] {
            let why = fitted(&layers, bytes, "--size").unwrap_err();
            assert!(why.contains("at most 8,388,608 blocks fit; take --size 128GiB or less"), "{why}");
        }
    }

    #[test]
    fn the_nearest_size_fits() {
        let profile = Profile::builtin("tlc-3d").unwrap();
        for (asked, found) in [(512, 516), (509, 504), (504, 504), (0, 144)] {
            assert_eq!(nearest(&profile, asked << 20), found << 20);
        }
    }
}
