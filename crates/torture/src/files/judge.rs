//! What is demanded of a chip whose power went off: it mounts, shows a state the history allows, is in order, can be
//! written to, and does the same when the power goes again while it recovers.
//!
//! Invariant: a chip that is judged is recovered by the same code as any other, mostly with the same options.

use emulator::TornKind;
use flexfs_core::{NewNode, ROOT_INO, kind};

use super::base::Base;
use super::cut::{Cut, Cuts, draw};
use super::findings::{Findings, Violation};
use super::panic::caught;
use crate::content::{Fill, Texture, mix};
use crate::crash::{History, Outcome, Reading, Record, Tap, TestedChip, Torn, Twin};
use crate::model::Body;
use crate::ops::{Call, Name};

/// How thoroughly a case is cut.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// In every way at each operation, or in one that is drawn.
    pub every_tear: bool,
    /// Operations of a recovery that are cut too, and of the recovery from that.
    pub again: [usize; 2],
    /// Of the chips that a script leaves torn, one in so many has its recovery cut.
    pub recovery_each: u64,
    /// Torn chips of one step of a script that are judged, at most: where there are more, so many of them, drawn.
    pub step_max: usize,
}

impl Depth {
    /// All torn chips of each step are judged, and their recoveries cut at two operations.
    pub const WHOLE: Depth = Depth { every_tear: true, again: [2, 1], recovery_each: 1, step_max: usize::MAX };
}

/// A torn chip and what it may hold.
pub(super) struct Suspect<'a> {
    pub torn: Torn,
    pub history: &'a History,
    pub now_ns: i64,
    pub step: usize,
    pub during: &'a str,
}

/// Of the chips cut twice or more, and of those whose recovery is not cut again, one in so many is written to.
const WRITTEN_TO: u64 = 8;

/// Judges a torn chip, and so many chips torn while it recovers and while those do; `cuts` are those that led to it.
pub(super) fn judge(
    base: &Base,
    again: [usize; 2],
    only: Cuts<'_>,
    suspect: Suspect<'_>,
    cuts: &[Cut],
    findings: &mut Findings,
) {
    findings.count(cuts);
    let Suspect { torn, history, now_ns, step, during } = suspect;
    let start = torn.chip.operations();
    let picks = again.get(cuts.len() - 1).copied().unwrap_or(0);
    let record = match only {
        Cuts::Only(_) => Record::All,
        _ if picks == 0 => Record::Nothing,
        _ => Record::Every(1),
    };
    let mut torn_again = Vec::new();
    let recovered = caught(|| {
        let twin = recover(base, (torn, cuts), history, now_ns, record, &mut torn_again)?;
        // Whoever runs one case again wants to know; of many a part will do.
        let wanted = (cuts.len() == 1 && picks > 0) || matches!(only, Cuts::Only(_));
        let written_to = wanted || draw(cuts).is_multiple_of(WRITTEN_TO);
        if written_to { prove_writable(twin, base, reading(cuts)) } else { Ok(()) }
    });
    let operations = torn_again.last().map_or(0, |last: &Torn| last.operation + 1 - start);
    findings.longest_recovery = findings.longest_recovery.max(operations);
    if let Err(error) = recovered {
        findings.violations.push(Violation { cuts: cuts.to_vec(), step, during: during.to_owned(), error });
    }
    if !matches!(only, Cuts::Only(_)) {
        torn_again = spread(torn_again, picks, draw(cuts));
    }
    for torn in torn_again {
        let cut = Cut::of(&torn, start, 0);
        if only.wants(cuts.len(), cut) {
            let cuts = [cuts, &[cut]].concat();
            judge(base, again, only, Suspect { torn, history, now_ns, step, during }, &cuts, findings);
        }
    }
}

/// Mounts a torn chip, which must not be read-only, and compares it with what it may hold; chips torn on the way are put
/// into `again`.
fn recover(
    base: &Base,
    (torn, cuts): (Torn, &[Cut]),
    history: &History,
    now_ns: i64,
    record: Record,
    again: &mut Vec<Torn>,
) -> Result<Twin<TestedChip>, String> {
    let mut chip = torn.chip;
    chip.power_on();
    let mut tap = Tap::fused(chip, &base.rig.faults);
    tap.record(record);
    let chip = TestedChip::opened(tap, base.rig.over)?;
    let mut twin = Twin::mount(chip, &base.options(draw(cuts) / WRITTEN_TO), history.clone(), now_ns)?;
    let chip = twin.fs.chip_mut();
    chip.record(Record::Nothing);
    *again = chip.take_torn();
    twin.must_be_writable()?;
    twin.settle(reading(cuts))?;
    Ok(twin)
}

/// Everything is read twice where a cut may have left what reads well once.
fn reading(cuts: &[Cut]) -> Reading {
    let unstable = |cut: &Cut| matches!(cut, Cut::In(_, tear, _) if tear.kind == TornKind::Unstable);
    if cuts.iter().any(unstable) { Reading::Twice } else { Reading::Once }
}

/// Some of many, drawn: one out of each of so many parts.
pub(super) fn spread(torn: Vec<Torn>, picks: usize, drawn: u64) -> Vec<Torn> {
    if torn.len() <= picks {
        return torn;
    }
    let at = |pick: usize| {
        let (from, to) = (pick * torn.len() / picks, (pick + 1) * torn.len() / picks);
        from + mix(drawn ^ pick as u64) as usize % (to - from)
    };
    let picked: Vec<usize> = (0..picks).map(at).collect();
    torn.into_iter().enumerate().filter(|(index, _)| picked.contains(index)).map(|(_, torn)| torn).collect()
}

/// Writes a file on a recovered volume (making room where there is none), syncs, cuts, and finds it again.
pub(super) fn prove_writable(mut twin: Twin<TestedChip>, base: &Base, reading: Reading) -> Result<(), String> {
    let name: Name = "written after the cut".into();
    let node = NewNode { mode: kind::FILE | 0o600, uid: 1, gid: 1, rdev: 0 };
    let create = Call::Create { parent: ROOT_INO, name: name.clone(), node, attributes: Vec::new() };
    until_it_fits(&mut twin, &create)?;
    let ino = twin.history.live().child(ROOT_INO, &name).map_err(|_| "the new file is not there".to_string())?;
    let fill = Fill { seed: 1, start: 0, texture: Texture::Noise };
    until_it_fits(&mut twin, &Call::Write { ino, offset: 0, len: 5000, fill })?;
    until_it_fits(&mut twin, &Call::Sync)?;
    let Twin { fs, mut history, now_ns } = twin;
    history.forget_handles();
    let chip = fs.into_chip().restarted().map_err(|error| format!("after writing: {error}"))?;
    let mut twin =
        Twin::mount(chip, &base.rig.options, history, now_ns).map_err(|error| format!("after writing: {error}"))?;
    twin.must_be_writable().map_err(|error| format!("after writing: {error}"))?;
    twin.settle(reading).map_err(|error| format!("after writing and remounting: {error}")).map(drop)
}

/// Makes a call, unlinking file after file while the volume is full.
fn until_it_fits(twin: &mut Twin<TestedChip>, call: &Call) -> Result<(), String> {
    loop {
        match twin.call(call)? {
            Outcome::Done => return Ok(()),
            Outcome::NoSpace => {}
            other => return Err(format!("{call:?} after the recovery: {other:?}")),
        }
        let live = twin.history.live();
        let is_file = |ino| live.node(ino).is_some_and(|node| matches!(node.body, Body::File(_)));
        let victim = live.nodes().find_map(|(dir, node)| {
            let (name, _) = node.entries()?.iter().find(|&(_, &ino)| is_file(ino))?;
            Some((dir, Name(name.clone())))
        });
        let Some((parent, name)) = victim else { return Err(format!("{call:?}: no space on an empty volume")) };
        twin.call(&Call::Unlink { parent, name })?;
        twin.call(&Call::Sync)?;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use emulator::InFlightLoss;

    use super::*;
    use crate::files::{Ground, Setup};

    /// Of long recoveries the first operation and the last were cut, and never those between.
    #[test]
    fn long_recoveries_are_cut_anywhere() {
        let base = Base::prepare(Setup::named("slc").unwrap(), Ground::Tree).unwrap();
        let torn_at = |operation| Torn { chip: base.chip.clone(), operation, tear: None, reach: InFlightLoss::Off };
        let torn = |count| (0..count).map(torn_at).collect();
        let picked = |count, picks, drawn| {
            spread(torn(count), picks, drawn).iter().map(|torn| torn.operation).collect::<Vec<_>>()
        };
        assert_eq!(picked(3, 8, 1), [0, 1, 2]);
        assert!(picked(100, 0, 1).is_empty());
        let mut all = BTreeSet::new();
        for drawn in 0..1_000 {
            let two = picked(20, 2, drawn);
            assert!(two.len() == 2 && two[0] < 10 && two[1] >= 10, "{two:?}");
            all.extend(two);
        }
        assert_eq!(all.len(), 20, "each is picked some time");
    }
}
