//! Brings background work under way, so that the calls to come meet it half done.
//!
//! A call that finds too little room does whole pieces of work, and what calls leave to be done in between is little. So
//! it is time that makes the work: after a year blocks of the log are emptied because what they hold fades, and a
//! checkpoint writes the index anew for the same reason. Invariant: what is done follows from the volume and a seed; a
//! volume on which the work does not begin is left in order.

use super::base::let_pass;
use super::overlap::{UnderWay, under_way};
use crate::content::{Fill, Texture, mix};
use crate::crash::{Outcome, TestedChip, Twin};
use crate::model::{Body, Node};
use crate::ops::{Call, Work};

/// Years that pass until the work is under way, at most.
const YEARS_MAX: u64 = 3;
/// Overwrites in each, with a sync after them.
const OVERWRITES: u64 = 4;
/// Background steps in each, at most.
const STEPS_MAX: usize = 3000;
/// Steps for which the work is under way before the calls come, at most: a checkpoint is short, and of the blocks that
/// are emptied it need not be the first.
const CHECKPOINT_STEPS: u64 = 8;
const EMPTYING_STEPS: u64 = 40;

/// Lets time pass and takes background steps until a piece of work has been under way for some of these.
pub(super) fn stir(twin: &mut Twin<TestedChip>, work: Work, seed: u64) -> Result<(), String> {
    let steps_max = match work {
        Work::Checkpoint => CHECKPOINT_STEPS,
        Work::Emptying => EMPTYING_STEPS,
    };
    for year in 0..YEARS_MAX {
        let_pass(twin);
        overwrite(twin, seed ^ mix(year))?;
        if is_brought_under_way(twin, work, 1 + mix(seed) % steps_max)? {
            break;
        }
    }
    Ok(())
}

/// Takes background steps until the work has been under way for so many of them. Whether it comes that far.
fn is_brought_under_way(twin: &mut Twin<TestedChip>, work: Work, steps: u64) -> Result<bool, String> {
    let mut taken = 0;
    for _ in 0..STEPS_MAX {
        twin.background(1)?;
        let UnderWay { checkpoint, emptying } = under_way(twin)?;
        let found = match work {
            Work::Checkpoint => checkpoint,
            Work::Emptying => emptying,
        };
        taken += u64::from(found);
        if found && taken >= steps {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Overwrites drawn chunks of drawn files, and syncs; as much of it as there is room for.
fn overwrite(twin: &mut Twin<TestedChip>, seed: u64) -> Result<(), String> {
    let chunk_bytes = u64::from(twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?.chunk_bytes);
    let chunks = |node: &Node| match node.body {
        Body::File(_) => node.size() / chunk_bytes,
        _ => 0,
    };
    let nodes = twin.history.live().nodes().map(|(ino, node)| (ino, chunks(node)));
    let files: Vec<(u64, u64)> = nodes.filter(|&(_, chunks)| chunks > 0).collect();
    for number in 0..OVERWRITES {
        let drawn = mix(seed ^ mix(number));
        let Some(&(ino, chunks)) = files.get(drawn as usize % files.len().max(1)) else { break };
        let fill = Fill { seed: drawn, start: 0, texture: Texture::Noise };
        let offset = (drawn >> 32) % chunks * chunk_bytes;
        if twin.call(&Call::Write { ino, offset, len: chunk_bytes as usize, fill })? != Outcome::Done {
            break;
        }
    }
    twin.call(&Call::Sync).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Base, Ground, Setup};

    #[test]
    fn either_work_is_brought_under_way_on_each_setup_again_and_again() {
        for setup in Setup::all() {
            let base = Base::prepare(setup, Ground::Busy).unwrap();
            let mut twin = base.mounted().unwrap();
            assert_eq!(under_way(&mut twin).unwrap(), UnderWay::default(), "{}: a volume just mounted", setup.name);
            for seed in 0..3 {
                stir(&mut twin, Work::Checkpoint, seed).unwrap();
                assert!(under_way(&mut twin).unwrap().checkpoint, "{}, {seed}", setup.name);
                stir(&mut twin, Work::Emptying, seed).unwrap();
                assert!(under_way(&mut twin).unwrap().emptying, "{}, {seed}", setup.name);
            }
            twin.compare().unwrap();
        }
    }
}
