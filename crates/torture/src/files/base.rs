//! The volumes that torture begins with, made.
//!
//! Invariant: a base is prepared without failures and unmounted cleanly, and is the same each time it is made.

use emulator::{BitErrors, Chip};
use flexfs_core::{Compression, MountOptions, NewNode, Policy, ROOT_INO, kind};

use super::setup::{Ground, ONE_SLOT_BYTES_MAX, Setup};
use crate::content::{Fill, Texture};
use crate::crash::{Emulated, History, Outcome, Rig, Tap, TestedChip, Twin};
use crate::ops::{Call, Name, Op, Shape, Step};

/// Part of the capacity that [`Ground::Full`] and [`Ground::Busy`] fill, in percent.
const FULL_PERCENT: u64 = 85;
/// Chunks of the largest file that a volume is filled with; on [`Ground::Busy`] files are small, so that there are many.
pub(super) const FILE_CHUNKS: u64 = 13;
const BUSY_FILE_CHUNKS: u64 = 2;
/// Part of the capacity that [`Ground::Faded`] fills, in percent; for how long it has no power, in days; and what part of
/// what the ECC corrects in a codeword is wrong in one then, on average.
const FADED_PERCENT: u64 = 40;
const FADED_DAYS: u64 = 365;
const FADED_SHARE: f64 = 0.7;
pub(super) const DAY_NS: u64 = 86_400_000_000_000;
const FADED_NS: u64 = FADED_DAYS * DAY_NS;
/// Erases by which blocks of [`Ground::Worn`] are apart when it is done.
const WORN_ERASES: u32 = 20;
/// Blocks full of what never changes there, and overwrites after which they are ever that far apart.
const COLD_BLOCKS: usize = 4;
const WEAR_ROUNDS_MAX: u64 = 20_000;
/// The endurance its chip has: the gap that levelling allows is a part of it.
const WORN_ENDURANCE: u32 = 400;

/// Overwrites after which a page of the block table is ever written.
const TABLE_ROUNDS_MAX: u64 = 1_000;

/// Bytes of the smallest page that carries a volume, and of one of two slots.
const PAGE_BYTES_MIN: u32 = 2048;
const TWO_SLOT_BYTES: u32 = 8192;

/// One mount in so many need not be like the one before.
const OTHER_OPTIONS: u64 = 4;
const MODES: [Policy; 3] = [Policy::BASELINE, Policy::SLC_ONLY, Policy::NATIVE_ONLY];
const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Lz4];

/// The tree: what sequences of operations work on.
const TREE: &str = "mkdir A; mkdir B; create foo; append foo 10000; setxattr foo 40; create A/bar; append A/bar 4096; \
                    symlink ln; sync";

/// A volume to begin with.
pub struct Base {
    pub rig: Rig,
    pub chip: Chip,
    pub history: History,
    pub now_ns: i64,
    /// What random histories on it look like.
    pub shape: Shape,
}

impl Base {
    /// Prepares a volume.
    pub fn prepare(setup: &Setup, ground: Ground) -> Result<Self, String> {
        let mut rig = setup.rig()?;
        match ground {
            Ground::Worn => rig.profile.endurance.native_erases = WORN_ENDURANCE,
            Ground::Faded => let_fade(&mut rig),
            Ground::Busy => {
                let_fade(&mut rig);
                rig.profile.geometry.page_bytes = busy_page_bytes(rig.profile.geometry.page_bytes);
            }
            Ground::Tree | Ground::Full => {}
        }
        let mut twin = rig.format(rig.tested(rig.chip(1)?, 1)?, 1)?;
        for (seed, op) in (0..).zip(Op::list(TREE)?) {
            let Some(Step::Call(call)) = op.step(twin.history.live(), seed) else { return Err(format!("tree: {op}")) };
            expect_done(&mut twin, &call)?;
        }
        match ground {
            Ground::Tree => {}
            Ground::Full => fill(&mut twin, FULL_PERCENT, FILE_CHUNKS)?,
            Ground::Busy => fill(&mut twin, FULL_PERCENT, BUSY_FILE_CHUNKS)?,
            Ground::Faded => fill(&mut twin, FADED_PERCENT, FILE_CHUNKS)?,
            Ground::Worn => wear(&mut twin)?,
        }
        let shape = rig.shape(&mut twin, FULL_PERCENT, 0)?;
        let mut now_ns = twin.now_ns;
        let (chip, mut history) = twin.unmount()?;
        history.forget_handles();
        let mut chip = chip.into_chip();
        if ground == Ground::Faded {
            chip.advance_to_ns(chip.now_ns() + FADED_NS);
            now_ns += FADED_NS as i64;
        }
        let base = Self { rig, chip, history, now_ns, shape };
        let mut base = if ground == Ground::Full { base.until_table_is_due()? } else { base };
        base.chip.reset_counters();
        Ok(base)
    }

    /// Where the table of blocks has pages, lets so many blocks change that whatever writes a checkpoint next writes one:
    /// random histories are too short to come from one page to the next.
    fn until_table_is_due(mut self) -> Result<Self, String> {
        let mut before: Option<(Self, Vec<u64>)> = None;
        for round in 0..TABLE_ROUNDS_MAX {
            let mut twin = self.mounted()?;
            let tables = twin.fs.anchor().map(|anchor| anchor.tables).unwrap_or_default();
            match before {
                _ if tables.is_empty() => return Ok(self),
                Some((due, old)) if old != tables => return Ok(due),
                _ => {}
            }
            overwrite(&mut twin, round)?;
            let (rig, shape, now_ns) = (self.rig.clone(), self.shape, twin.now_ns);
            let (chip, mut history) = twin.unmount()?;
            history.forget_handles();
            before = Some((self, tables));
            self = Self { rig, chip: chip.into_chip(), history, now_ns, shape };
        }
        Err("no page of the block table is written".into())
    }

    /// The volume, mounted on a copy of its chip.
    pub(super) fn mounted(&self) -> Result<Twin<TestedChip>, String> {
        self.mounted_on(self.chip.snapshot(), self.history.clone(), self.now_ns)
    }

    /// The volume, mounted on another chip that came of its own.
    fn mounted_on(&self, chip: Chip, history: History, now_ns: i64) -> Result<Twin<TestedChip>, String> {
        let chip = TestedChip::opened(Tap::new(chip, self.rig.faults.clone()), self.rig.over)?;
        Twin::mount(chip, &self.rig.options, history, now_ns)
    }

    /// What a later mount is told: of what may be drawn, most of it says what the setup does, and the rest any mode and
    /// compression.
    pub(super) fn options(&self, drawn: u64) -> MountOptions {
        let mut options = self.rig.options.clone();
        if drawn.is_multiple_of(OTHER_OPTIONS) {
            options.policy = MODES[(drawn >> 8) as usize % MODES.len()];
            options.compression = COMPRESSIONS[(drawn >> 16) as usize % COMPRESSIONS.len()];
        }
        options
    }
}

/// Bytes of a page on [`Ground::Busy`]: where a page is a slot, as few as there may be, so that the index has many pages;
/// else those of two slots.
fn busy_page_bytes(page_bytes: u32) -> u32 {
    if page_bytes <= ONE_SLOT_BYTES_MAX { PAGE_BYTES_MIN } else { TWO_SLOT_BYTES }
}

fn expect_done<C: Emulated>(twin: &mut Twin<C>, call: &Call) -> Result<(), String> {
    match twin.call(call)? {
        Outcome::Done => Ok(()),
        other => Err(format!("{call:?}: {other:?}")),
    }
}

fn new_file<C: Emulated>(twin: &mut Twin<C>, name: String) -> Result<u64, String> {
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let name = Name(name.into_bytes());
    expect_done(twin, &Call::Create { parent: ROOT_INO, name: name.clone(), node, attributes: Vec::new() })?;
    twin.history.live().child(ROOT_INO, &name).map_err(|_| "a file just made is not there".to_string())
}

/// Lets bits of what is written go wrong with time, none at first.
fn let_fade(rig: &mut Rig) {
    let ecc = &rig.profile.ecc;
    let wrong_bits = FADED_SHARE * f64::from(ecc.correctable_bits) / FADED_DAYS as f64;
    let rate = wrong_bits / (8 * ecc.codeword_bytes) as f64;
    for errors in [&mut rig.profile.errors.slc, &mut rig.profile.errors.native] {
        (errors.fresh, errors.wear, errors.per_read, errors.retention_per_day) = (0.0, 0.0, 0.0, rate);
    }
    rig.faults.bit_errors = BitErrors::Correctable;
}

/// Lets the time pass after which what is written has faded.
pub(super) fn let_pass(twin: &mut Twin<TestedChip>) {
    let chip = twin.fs.chip_mut().emulated_mut();
    chip.advance_to_ns(chip.now_ns() + FADED_NS);
    twin.now_ns += FADED_NS as i64;
}

/// Writes files of up to so many chunks until so many percent of the capacity are stored.
pub(super) fn fill<C: Emulated>(twin: &mut Twin<C>, percent: u64, file_chunks: u64) -> Result<(), String> {
    let stat = twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
    let (bytes, chunk_bytes) = (stat.capacity_bytes * percent / 100, u64::from(stat.chunk_bytes));
    for number in 0u64.. {
        if twin.history.live().stored_bytes() >= bytes {
            break;
        }
        let ino = new_file(twin, format!("fill{number}"))?;
        let len = (chunk_bytes * (1 + number % file_chunks)) as usize;
        let fill = Fill { seed: number, start: 0, texture: Texture::Noise };
        expect_done(twin, &Call::Write { ino, offset: 0, len, fill })?;
        expect_done(twin, &Call::Sync)?;
    }
    Ok(())
}

/// Overwrites the first chunk of one of the files that [`fill`] made.
fn overwrite(twin: &mut Twin<TestedChip>, round: u64) -> Result<(), String> {
    let named = |number: u64| twin.history.live().child(ROOT_INO, format!("fill{number}").as_bytes());
    let files: Vec<u64> = (0..).map_while(|number| named(number).ok()).collect();
    let ino = files[round as usize % files.len()];
    let fill = Fill { seed: round, start: 0, texture: Texture::Noise };
    expect_done(twin, &Call::Write { ino, offset: 0, len: 4096, fill })?;
    expect_done(twin, &Call::Sync)
}

/// Overwrites a file until the blocks that take part are well ahead of those that hold another.
fn wear(twin: &mut Twin<TestedChip>) -> Result<(), String> {
    let cold = new_file(twin, "cold".into())?;
    let len = COLD_BLOCKS * twin.fs.chip().emulated().profile().block_bytes() as usize;
    expect_done(
        twin,
        &Call::Write { ino: cold, offset: 0, len, fill: Fill { seed: 0, start: 0, texture: Texture::Noise } },
    )?;
    expect_done(twin, &Call::Sync)?;
    let ino = new_file(twin, "hot".into())?;
    for round in 0..WEAR_ROUNDS_MAX {
        // Blocks of anchors wear by themselves.
        let erases =
            twin.fs.blocks().filter(|block| !matches!(block.used_as, "anchor" | "bad")).map(|block| block.erases);
        let (least, most) = erases.fold((u32::MAX, 0), |(least, most), erases| (least.min(erases), most.max(erases)));
        if most >= least.saturating_add(WORN_ERASES) {
            return Ok(());
        }
        let fill = Fill { seed: round, start: 0, texture: Texture::Noise };
        expect_done(twin, &Call::Write { ino, offset: 0, len: 16 * 4096, fill })?;
        expect_done(twin, &Call::Sync)?;
    }
    Err("blocks do not wear unevenly".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ops::Supply;

    #[test]
    fn every_setup_and_ground_can_be_prepared() {
        for setup in Setup::all() {
            for ground in Ground::ALL {
                let base = Base::prepare(setup, ground).unwrap_or_else(|error| panic!("{}: {error}", setup.name));
                assert!(base.history.live().child(ROOT_INO, b"foo").is_ok() && base.history.pending().is_empty());
            }
        }
    }

    #[test]
    fn on_a_full_chip_of_many_blocks_whatever_ends_in_a_checkpoint_writes_a_page_of_their_table() {
        let base = Base::prepare(Setup::named("many-blocks").unwrap(), Ground::Full).unwrap();
        let tables = |twin: &Twin<TestedChip>| twin.fs.anchor().unwrap().tables;
        let mount = |chip, history, now_ns| base.mounted_on(chip, history, now_ns).unwrap();
        for seed in 0..10 {
            let mut twin = mount(base.chip.snapshot(), base.history.clone(), base.now_ns);
            let (before, mut supply) = (tables(&twin), Supply::new(seed));
            for _ in 0..60 {
                match base.shape.draw(&supply.words(), twin.history.live()) {
                    Step::Call(call) => drop(twin.call(&call).unwrap()),
                    Step::Background(steps) => drop(twin.background(steps).unwrap()),
                    Step::Remount | Step::Cut(_) => {}
                }
            }
            expect_done(&mut twin, &Call::Sync).unwrap();
            let mut chip = twin.fs.chip().tap().cut_now().unwrap().chip;
            chip.power_on();
            let recovered = mount(chip, twin.history.clone(), twin.now_ns);
            assert!(!before.is_empty() && tables(&recovered) != before, "seed {seed}: {before:?}");
            let (now_ns, (chip, mut history)) = (twin.now_ns, twin.unmount().unwrap());
            history.forget_handles();
            assert_ne!(tables(&mount(chip.into_chip(), history, now_ns)), before, "seed {seed}");
        }
    }

    /// Looks at a full volume of that chip after each step of random histories.
    fn in_histories(chip: &str, mut look: impl FnMut(&mut Twin<TestedChip>)) {
        let base = Base::prepare(Setup::named(chip).unwrap(), Ground::Full).unwrap();
        for seed in 0..10 {
            let mut twin = base.mounted().unwrap();
            let mut supply = Supply::new(seed);
            for _ in 0..60 {
                if let Step::Call(call) = base.shape.draw(&supply.words(), twin.history.live()) {
                    twin.call(&call).unwrap();
                }
                look(&mut twin);
            }
        }
    }

    #[test]
    fn random_histories_of_the_chip_that_allocates_write_to_all_three_heads() {
        let mut heads = BTreeSet::new();
        in_histories("allocating", |twin| heads.extend(twin.fs.blocks().filter_map(|block| block.head)));
        assert!(["slc", "native", "slc-hot"].iter().all(|head| heads.contains(head)), "{heads:?}");
    }

    #[test]
    fn random_histories_of_the_chip_that_is_to_last_raise_and_lower_the_share_of_slc() {
        let mut indexes = BTreeSet::new();
        in_histories("lifetime", |twin| {
            indexes.insert(twin.fs.info().unwrap().life.unwrap().wear_index);
        });
        let (least, most) = (indexes.first().unwrap(), indexes.last().unwrap());
        assert!(*least < 200_000 && *most > 500_000 && indexes.len() > 30, "{least} to {most}, {}", indexes.len());
    }
}
