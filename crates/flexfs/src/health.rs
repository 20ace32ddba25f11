//! How much life a chip has left: in a word for `info`, and as a warning for whoever keeps a mount, long before its end.
//!
//! Invariant: a warning says what to do, and holds no figures that change, so that it is told once.

use flexfs_core::{Ended, Fs, Info};
use nand::{CellMode, Nand};

use crate::any_chip::AnyChip;

/// Chips come with one bad block in so many at most; where there are more, as many good ones to spare are few, and so
/// are these on any chip.
const FACTORY_BAD: u32 = 50;
const FEW_BLOCKS: u32 = 4;

/// A block this far through its endurance is worth a word.
const WORN: f64 = 0.8;

/// What is to be said of a chip.
pub struct Health {
    pub word: &'static str,
    /// How far the most worn block is through its native endurance.
    pub life_used: f64,
    pub warning: Option<&'static str>,
}

impl Health {
    /// The health of the chip under a mounted volume; `None` where the volume cannot tell.
    pub fn of_volume(fs: &mut Fs<AnyChip>) -> Option<Self> {
        let endurance = fs.chip().endurance(CellMode::Native);
        let info = fs.info().ok()?;
        let of_drive = fs.chip().drive().and_then(|drive| drive.erases_of_good_blocks().max());
        Some(Self::of(&info, of_drive.unwrap_or(info.erases_max), endurance))
    }

    /// The health of a chip of which these are the figures, whose most worn block was erased so often, and whose blocks endure so
    /// many erases.
    pub fn of(info: &Info, erases_max: u32, endurance: u32) -> Self {
        let life_used = f64::from(erases_max) / f64::from(endurance.max(1));
        let (word, warning) = match info.ended {
            Some(Ended::NoBlocks) => (
                "at its end",
                Some(
                    "too few good blocks are left: nothing can be written any more, what was synced can be read; copy it to \
                     another chip",
                ),
            ),
            Some(Ended::Damaged) => (
                "read-only",
                Some("it is damaged where it would have to be written: nothing more is written; check it with fsck"),
            ),
            Some(Ended::WriteOutage) => (
                "read-only",
                Some(
                    "the chip fails programs or erases on block after block: it may be write-protected, or its voltage too low; \
                     no block was marked bad for it, and what was synced can be read; mend that, unmount and mount again",
                ),
            ),
            // The failure itself has been told.
            Some(_) => ("read-only", None),
            None if life_used >= 1.0 => (
                "worn out",
                Some("its blocks have used up their endurance and will fail; copy what it holds to another chip"),
            ),
            None if is_short_of_blocks(info) => (
                "short of blocks",
                Some(
                    "many blocks are bad and few can be spared beside what is stored; make room, and have another chip ready",
                ),
            ),
            None if info.failing_blocks > 0 => ("failing", Some("blocks have begun to fail; have another chip ready")),
            None if life_used >= WORN => {
                ("worn", Some("its blocks have used 80 % of their endurance; have another chip ready"))
            }
            None if info.life.is_some_and(|life| life.ends_ns.is_some()) => (
                "overused",
                Some(
                    "what is written is more than its blocks can take for the lifetime that they are to have; write less, or \
                     ask for a shorter one: `flexfs info` tells when they will be worn out",
                ),
            ),
            None => ("good", None),
        };
        Self { word, life_used, warning }
    }
}

/// Whether more blocks have gone bad than a chip comes with, and few can still do so.
fn is_short_of_blocks(info: &Info) -> bool {
    let blocks = &info.blocks;
    let many = (blocks.free + blocks.slc + blocks.native + blocks.metadata + blocks.bad) / FACTORY_BAD;
    blocks.bad > many && info.spare_blocks <= many.max(FEW_BLOCKS)
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};
    use flexfs_core::{FormatOptions, MountOptions};

    use super::*;

    const ENDURANCE: u32 = 1000;

    /// What a new chip of 100 blocks says of itself.
    fn new() -> Info {
        let mut profile = Profile::builtin(Profile::DEFAULT).unwrap();
        profile.geometry.blocks = 100;
        let mut chip = Chip::new(&profile, 1).unwrap();
        let volume = FormatOptions {
            volume_id: [1; 16],
            label: String::new(),
            blank: true,
            now_ns: 0,
            ..FormatOptions::default()
        };
        Fs::format(&mut chip, &volume).unwrap();
        let mut fs = Fs::mount(chip, MountOptions::default()).map_err(|(_, error)| error).unwrap();
        fs.info().unwrap()
    }

    #[test]
    fn every_way_a_chip_nears_its_end_is_told_with_what_to_do() {
        let told = |change: &dyn Fn(&mut Info)| {
            let mut info = new();
            change(&mut info);
            let health = Health::of(&info, info.erases_max, ENDURANCE);
            (health.word, health.warning.unwrap_or_default())
        };
        assert_eq!(told(&|_| {}), ("good", ""));
        assert_eq!(told(&|info| info.erases_max = ENDURANCE * 8 / 10 - 1), ("good", ""));
        // A full volume on a chip with as many bad blocks as it may come with is nothing to be told of.
        assert_eq!(told(&|info| (info.blocks.bad, info.spare_blocks) = (2, 0)), ("good", ""));
        assert_eq!(told(&|info| (info.blocks.bad, info.spare_blocks) = (20, 40)), ("good", ""));
        type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Info));
        let cases: [Case; 8] = [
            ("worn", "have another chip ready", &|info| info.erases_max = ENDURANCE * 8 / 10),
            ("failing", "have another chip ready", &|info| info.failing_blocks = 1),
            ("short of blocks", "make room", &|info| (info.blocks.bad, info.spare_blocks) = (20, 2)),
            ("worn out", "copy what it holds", &|info| info.erases_max = ENDURANCE),
            ("at its end", "copy it to another chip", &|info| info.ended = Some(Ended::NoBlocks)),
            ("read-only", "fsck", &|info| info.ended = Some(Ended::Damaged)),
            ("read-only", "mount again", &|info| info.ended = Some(Ended::WriteOutage)),
            ("read-only", "", &|info| info.ended = Some(Ended::Chip)),
        ];
        for (word, advice, change) in cases {
            let (found, warning) = told(change);
            assert!(found == word && warning.contains(advice), "{word}: {found}, {warning}");
        }
    }
}
