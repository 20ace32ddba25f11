//! Formatting, cut: what the power may leave of it is no volume, the old one or the new one, whole; and it can be done
//! again.
//!
//! Invariant: each program and erase of formatting leaves at least one torn chip, and each of those is judged.

use flexfs_core::{Error, Fs, MountOptions};

use super::base::Base;
use super::cut::{Cut, Cuts, draw};
use super::findings::{Findings, Violation};
use super::judge::{Depth, prove_writable, spread};
use super::panic::caught;
use crate::crash::{Emulated, History, Reading, Record, Rig, Tap, TestedChip, Twin};
use crate::ops::{glimpse, observe};
use emulator::Chip;

/// The volume is made with the identity of the old one: what is left of that would pass the checks of the new.
const SEED: u64 = 1;

/// Formatting under way, or what led to it.
struct Formatting<'a> {
    base: &'a Base,
    depth: Depth,
    only: Cuts<'a>,
    /// The volumes that may be found.
    old: Option<History>,
    new: History,
    now_ns: i64,
    /// The number of this step in its script.
    step: usize,
    findings: Findings,
}

/// Formats the chip that `used` has come to, or a new one of the kind of `base`, and judges every cut in that.
pub(super) fn run(
    base: &Base,
    used: Option<Result<Base, String>>,
    step: usize,
    depth: Depth,
    only: Cuts<'_>,
) -> Findings {
    let findings = Findings { cases: 1, ..Findings::default() };
    let begin = || {
        let chip = base.rig.chip(SEED)?;
        let empty = base.rig.format(base.rig.tested(chip.snapshot(), SEED)?, SEED)?.history;
        Ok(match used.transpose()? {
            Some(used) => (used.chip, Some(used.history), empty, used.now_ns),
            None => (chip, None, empty, base.now_ns),
        })
    };
    match caught(begin) {
        Ok((chip, old, new, now_ns)) => {
            let mut formatting = Formatting { base, depth, only, old, new, now_ns, step, findings };
            formatting.cut(chip, &[]);
            formatting.findings
        }
        Err(error) => Findings::unprepared(&error),
    }
}

impl Formatting<'_> {
    /// Formats a chip on which it was cut at `cuts` before; judges what that leaves, and what cuts in it do.
    fn cut(&mut self, chip: Chip, cuts: &[Cut]) {
        let picks = cuts.len().checked_sub(1).map_or(usize::MAX, |again| self.depth.again.get(again).map_or(0, |n| *n));
        let record = match (self.only, cuts.len()) {
            (Cuts::Only(_), _) => Record::All,
            (_, 0) if self.depth.every_tear => Record::All,
            _ if picks == 0 => Record::Nothing,
            _ => Record::Every(1),
        };
        let start = chip.operations();
        let mut torn = Vec::new();
        let outcome = caught(|| {
            let mut tap = Tap::fused(chip, &self.base.rig.faults);
            tap.record(record);
            let mut chip = TestedChip::to_format(tap, self.base.rig.over, SEED)?;
            Rig::format_only(&mut chip, SEED)?;
            chip.record(Record::Nothing);
            torn = chip.take_torn();
            if record != Record::Nothing
                && torn.last().map(|last| last.operation + 1) != Some(chip.emulated().operations())
            {
                return Err("not all flash operations were cut".into());
            }
            let done = chip.tap().cut_now().map_err(|error| format!("cutting after it: {error}"))?;
            self.must_be_new(done.chip)
        });
        if let Err(error) = outcome {
            self.tell(cuts, format!("formatted: {error}"));
        }
        if cuts.is_empty() {
            self.findings.points += (torn.last().map_or(start, |last| last.operation + 1) - start) as usize;
        } else if !matches!(self.only, Cuts::Only(_)) {
            torn = spread(torn, picks, draw(cuts));
        }
        for torn in torn {
            let cut = Cut::of(&torn, start, 0);
            if !self.only.wants(cuts.len(), cut) {
                continue;
            }
            let cuts = [cuts, &[cut]].concat();
            self.findings.count(&cuts);
            let mut chip = torn.chip;
            chip.power_on();
            if let Err(error) = caught(|| self.must_be_whole(chip.snapshot())) {
                self.tell(&cuts, error);
            }
            self.cut(chip, &cuts);
        }
    }

    fn tell(&mut self, cuts: &[Cut], error: String) {
        let violation = Violation { cuts: cuts.to_vec(), step: self.step, during: "format".into(), error };
        self.findings.violations.push(violation);
    }

    /// Formatting was done: the empty volume is there, in order, and can be written to.
    fn must_be_new(&self, mut chip: Chip) -> Result<(), String> {
        chip.power_on();
        let rig = &self.base.rig;
        let mut twin = rig.mount_new(TestedChip::opened(Tap::fused(chip, &rig.faults), rig.over)?)?;
        twin.must_be_writable()?;
        twin.settle(Reading::Twice)?;
        prove_writable(twin, self.base, Reading::Twice)
    }

    /// Formatting was cut: there is no volume, or one of the two, in order, that can be written to.
    fn must_be_whole(&self, chip: Chip) -> Result<(), String> {
        let (rig, now_ns) = (&self.base.rig, self.now_ns);
        let chip = match TestedChip::open(Tap::fused(chip, &rig.faults), rig.over) {
            Ok(chip) => chip,
            // The drive was being made, too.
            Err(failed) if self.old.is_none() && failed.is_for_lack_of_drive() => return Ok(()),
            Err(failed) => return Err(failed.to_string()),
        };
        let mut fs = match Fs::mount(chip, MountOptions { now_ns, ..rig.options.clone() }) {
            Ok(fs) => fs,
            Err((_, Error::NotFlexfs(_))) => return Ok(()),
            Err((_, error)) => return Err(format!("mount: {error}")),
        };
        let found = glimpse(&mut fs)?.digest();
        let Some(history) = self.old.iter().chain([&self.new]).find(|history| history.live().digest() == found) else {
            let expected = self.old.as_ref().unwrap_or(&self.new);
            return Err(format!("a mixture: {}", expected.explain(&observe(&mut fs)?)));
        };
        let mut twin = Twin { fs, history: history.clone(), now_ns };
        twin.must_be_writable()?;
        twin.settle(Reading::Twice)?;
        prove_writable(twin, self.base, Reading::Twice)
    }
}
