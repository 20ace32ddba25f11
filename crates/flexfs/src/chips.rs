//! Which chips a volume can be made on: the built-in ones, and the sizes that each kind can have.
//!
//! Invariant: a size that is refused comes with those beside it that are not, written as they may be typed.

use emulator::{Chip, EmulatorError, Profile};
use flexfs_core::{Error, FormatOptions, Fs};

use crate::size;

/// The built-in chips that can carry a volume, the default first.
pub const NAMES: [&str; 3] = [Profile::DEFAULT, "codesign-mlc8", "tlc-3d"];

/// The log-block paper's chip, on which translation layers are measured.
pub const OF_LAYERS: &str = "k9f5608u0m";

/// The fewest erase blocks that a volume can do with.
const LEAST_BLOCKS: u64 = 12;

/// A chip of that kind with `bytes` of native capacity; `flag` is how its size is asked for.
pub fn sized(profile: &Profile, bytes: u64, flag: &str) -> Result<Profile, String> {
    check_kind(profile, profile.block_bytes() * LEAST_BLOCKS)?;
    fitted(profile, bytes, flag)
}

/// The same, whether or not chips of that kind carry a file system.
pub fn fitted(profile: &Profile, bytes: u64, flag: &str) -> Result<Profile, String> {
    let (name, block) = (&profile.name, profile.block_bytes());
    let smallest = block * LEAST_BLOCKS;
    let (asked, least) = (size::typed(bytes), size::typed(smallest));
    let multiple = format!("it must be a multiple of {block} bytes, from {least} on");
    if bytes < smallest {
        return Err(format!("{asked} is too small for {name}: {multiple}; take {flag} {least}"));
    }
    let below = bytes / block * block;
    if below < bytes {
        let (low, high) = (size::typed(below), size::typed(below.saturating_add(block)));
        return Err(format!("{asked} does not fit {name}: {multiple}; take {flag} {low} or {flag} {high}"));
    }
    profile.with_capacity(bytes).map_err(|_| format!("{asked} is more than {name} can have; take a smaller {flag}"))
}

/// The capacity of a chip of that kind that is nearest to `bytes`.
pub fn nearest(profile: &Profile, bytes: u64) -> u64 {
    let block = profile.block_bytes();
    (bytes.saturating_add(block / 2) / block).max(LEAST_BLOCKS) * block
}

/// Whether chips of that kind carry a volume at all, tried on one in memory.
fn check_kind(profile: &Profile, smallest: u64) -> Result<(), String> {
    let refused = |why: String| format!("{}: {why}; take --profile {}", profile.name, NAMES.join(" or "));
    let chip = profile.with_capacity(smallest).map_err(EmulatorError::from).and_then(|profile| Chip::new(&profile, 0));
    let mut chip = chip.map_err(|error| refused(error.to_string()))?;
    let options =
        FormatOptions { volume_id: [0; 16], label: String::new(), blank: true, now_ns: 0, ..FormatOptions::default() };
    match Fs::format(&mut chip, &options) {
        Err(error @ Error::Unsuitable(_)) => Err(refused(error.to_string())),
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
            let carries = |blocks: u64| check_kind(&profile, blocks * profile.block_bytes()).is_ok();
            assert_eq!(carries(LEAST_BLOCKS), NAMES.contains(name), "{name}");
            assert!(!carries(LEAST_BLOCKS - 1), "{name}");
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
        let endless = u64::MAX / profile.block_bytes() * profile.block_bytes();
        assert!(refused(endless).contains("smaller --size") && refused(u64::MAX).contains("--size"));
        for fitting in [144, 504, 516] {
            assert_eq!(sized(&profile, fitting << 20, "").unwrap().capacity_bytes(), fitting << 20);
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
