//! Pages that nothing corrects any more, on a chip that held a whole volume.
//!
//! Invariant: what they held is an error, all else is right, and what is written beside them is there after a mount.

use std::collections::BTreeMap;

use emulator::{Chip, Corruption, FaultConfig};
use flexfs_core::{Ended, Error, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};

use crate::content::{Fill, Texture, mix};
use crate::crash::{History, Tap, TestedChip, VolumeOver};
use crate::model::{Body, ModelFs, Node};
use crate::ops::{Call, Name, Reply, call_fs};

/// Pages damaged.
const DAMAGED: u64 = 6;
/// The file that is written beside them, and its bytes.
const BESIDE: &str = "written beside damage";
const BESIDE_BYTES: usize = 5000;
/// Bytes read at a time.
const LOOK_BYTES: usize = 4096;

/// What came of looking at a damaged chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Looks that were refused.
    pub refused: u64,
    /// Whether it was not even mounted.
    pub unmounted: bool,
    /// Whether a file could be written and synced.
    pub written: bool,
}

/// What a damaged volume is judged by.
struct Damaged {
    options: MountOptions,
    model: ModelFs,
    now_ns: i64,
    /// Whether pages may read well once, so that what was seen may be gone.
    fleeting: bool,
}

/// A file that was made beside the damage.
enum Beside {
    /// It was not.
    Refused,
    /// It may be there in part: something was refused after it was made.
    InPart,
    Synced(Ino),
}

/// Damages pages of an unmounted chip, looks at everything, writes beside it, and looks again: it is right or an error,
/// and what was written is right. Of the pages that say where everything stands one is damaged at most: of a volume at
/// rest there are two, and as many of a drive. Of a block of a drive one page stays whole: it has the tag that the block is found
/// by.
pub(super) fn damage(
    mut chip: Chip,
    over: VolumeOver,
    history: &History,
    options: MountOptions,
    now_ns: i64,
    seed: u64,
) -> Result<Seen, String> {
    let options = MountOptions { now_ns, ..options };
    let kept_pairs = kept_pairs(&chip, over, &options)?;
    let fleeting = mix(!seed).is_multiple_of(2);
    let kinds =
        [Corruption::FlipBits(40), Corruption::FlipSpareBits(3), Corruption::Uncorrectable, Corruption::Unstable];
    let kinds = &kinds[..if fleeting { 4 } else { 3 }];
    let (written, mut damaged) = (chip.written_pages(), [0; 2]);
    let mut whole: BTreeMap<u32, usize> = BTreeMap::new();
    written.iter().for_each(|(block, _)| *whole.entry(*block).or_default() += 1);
    for number in 0..DAMAGED {
        let draw = mix(seed ^ mix(number));
        let (block, page) = written[(draw % written.len() as u64) as usize];
        let left = whole.entry(block).or_default();
        if over == VolumeOver::Codesign && *left <= 1 {
            continue;
        }
        *left = left.saturating_sub(1);
        let kept = kept_pairs.iter().zip(&mut damaged).find(|(pair, _)| pair.contains(&Some(block)));
        if let Some((_, damaged)) = kept {
            *damaged += 1;
            if *damaged > 1 {
                continue;
            }
        }
        let kind = kinds[(draw >> 32) as usize % kinds.len()];
        chip.faults_mut().corrupt_page(block, page, kind).map_err(|error| error.to_string())?;
    }
    let chip = TestedChip::opened(Tap::new(chip, FaultConfig::default()), over)?;
    let fs = match Fs::mount(chip, options.clone()) {
        Ok(fs) => fs,
        Err((_, Error::Corrupt { .. })) => return Ok(Seen { unmounted: true, ..Seen::default() }),
        Err((_, error)) => return Err(format!("mount of a damaged chip: {error}")),
    };
    Damaged { options, model: history.live().clone(), now_ns, fleeting }.judge(fs)
}

/// The blocks of anchors, and those of a drive's records, as the chip counts.
fn kept_pairs(chip: &Chip, over: VolumeOver, options: &MountOptions) -> Result<[[Option<u32>; 2]; 2], String> {
    let tested = TestedChip::opened(Tap::new(chip.snapshot(), FaultConfig::default()), over)?;
    let look = Fs::mount(tested, MountOptions { read_only: true, ..options.clone() });
    let fs = look.map_err(|(_, error)| format!("last look: {error}"))?;
    let pair = fs.anchor().map_or([0; 2], |anchor| anchor.pair);
    Ok(match fs.chip().drive() {
        Some(drive) => [pair.map(|block| drive.physical(block)), drive.record_blocks().map(Some)],
        None => [pair.map(Some), [None; 2]],
    })
}

impl Damaged {
    fn judge(mut self, mut fs: Fs<TestedChip>) -> Result<Seen, String> {
        let refused = self.look(&mut fs, None, false)?;
        // Whatever the check finds, it comes to an end.
        let _ = fs.check();
        let before = self.model.clone();
        let beside = self.write_beside(&mut fs)?;
        if !matches!(beside, Beside::Synced(_)) {
            self.model = before;
        }
        let (chip, unmounted) = fs.unmount(self.now_ns);
        match unmounted {
            Ok(()) | Err(Error::Corrupt { .. } | Error::NoSpace | Error::ReadOnly) => {}
            Err(error) => return Err(format!("unmount of a damaged chip: {error}")),
        }
        let chip = chip.restarted().map_err(|error| format!("a damaged chip: {error}"))?;
        match (Fs::mount(chip, self.options.clone()), &beside) {
            (Ok(mut fs), &Beside::Synced(ino)) => self.look(&mut fs, Some(ino), false)?,
            (Ok(mut fs), Beside::InPart) => self.look(&mut fs, None, true)?,
            (Ok(mut fs), Beside::Refused) => self.look(&mut fs, None, false)?,
            (Err((_, Error::Corrupt { .. })), _) if self.fleeting => 0,
            (Err((_, error)), _) => return Err(format!("second mount of a damaged chip: {error}")),
        };
        Ok(Seen { refused, unmounted: false, written: matches!(beside, Beside::Synced(_)) })
    }

    /// Looks at everything: how much of it is an error. None of that is of `whole`, unless what was read may be gone; of
    /// the root nothing is compared if it is not known.
    fn look(&mut self, fs: &mut Fs<TestedChip>, whole: Option<Ino>, unknown_root: bool) -> Result<u64, String> {
        let mut refused = 0;
        let calls: Vec<Call> = self.model.nodes().flat_map(|(ino, node)| looks(ino, node)).collect();
        // Where the root's own inode cannot be read there is a stand-in for it, and the volume says that it is damaged.
        let stands_in = fs.info().map_err(|error| format!("info: {error}"))?.ended == Some(Ended::Damaged);
        let of_whole = |call: &Call| match call {
            Call::Lookup { name, .. } => whole.is_some() && *name == BESIDE.into(),
            // It has none, but the last leaf is the one that says so of any new inode, and it may be what is damaged.
            Call::Listxattr { .. } => false,
            _ => whole.is_some() && call.target() == whole,
        };
        for call in &calls {
            let of_root = matches!(*call, Call::Getattr { ino } | Call::Readdir { dir: ino } if ino == ROOT_INO);
            match (call_fs(fs, call, self.now_ns), self.model.apply(call, 0, self.now_ns)) {
                _ if of_root && unknown_root => {}
                (Ok(found), Ok(expected)) if found == expected => {}
                (Ok(_), _) if stands_in && matches!(call, Call::Getattr { ino: ROOT_INO }) => refused += 1,
                (Err(Error::Corrupt { .. }), _) if self.fleeting || !of_whole(call) => refused += 1,
                (found, expected) => {
                    return Err(format!("{call:?}, of a damaged chip: {found:?}, the model says {expected:?}"));
                }
            }
        }
        Ok(refused)
    }

    /// Makes a file beside what is damaged, and syncs it.
    fn write_beside(&mut self, fs: &mut Fs<TestedChip>) -> Result<Beside, String> {
        let node = NewNode { mode: kind::FILE | 0o600, uid: 1, gid: 1, rdev: 0 };
        let mut made = None;
        for part in 0..3 {
            let fill = Fill { seed: 1, start: 0, texture: Texture::Noise };
            let call = match made {
                None => Call::Create { parent: ROOT_INO, name: BESIDE.into(), node, attributes: Vec::new() },
                Some(ino) if part == 1 => Call::Write { ino, offset: 0, len: BESIDE_BYTES, fill },
                Some(_) => Call::Sync,
            };
            let refused = if made.is_some() { Beside::InPart } else { Beside::Refused };
            match call_fs(fs, &call, self.now_ns) {
                Ok(Reply::Count(count)) if count < BESIDE_BYTES => return Ok(refused),
                Ok(reply) => {
                    made = made.or(reply.made());
                    let ino = made.unwrap_or_default();
                    self.model.apply(&call, ino, self.now_ns).map_err(|refused| format!("{call:?}: {refused:?}"))?;
                }
                Err(Error::Corrupt { .. } | Error::NoSpace) => return Ok(refused),
                Err(Error::ReadOnly) if fs.info().is_ok_and(|info| info.ended.is_some()) => return Ok(refused),
                Err(error) => return Err(format!("{call:?}, beside damage: {error}")),
            }
        }
        made.map(Beside::Synced).ok_or("a file just made has no inode".into())
    }
}

/// Calls that together see all of an inode.
fn looks(ino: Ino, node: &Node) -> Vec<Call> {
    let mut calls = vec![Call::Getattr { ino }, Call::Listxattr { ino }];
    calls.extend(node.xattrs.keys().map(|name| Call::Getxattr { ino, name: Name(name.clone()) }));
    match &node.body {
        // The last one begins at the end, or past it.
        Body::File(bytes) => {
            let offsets = (0..=bytes.size()).step_by(LOOK_BYTES);
            calls.extend(offsets.map(|offset| Call::Read { ino, offset, len: LOOK_BYTES }));
        }
        Body::Dir { entries, .. } => {
            calls.extend([Call::Readdir { dir: ino }, Call::ParentOf { dir: ino }]);
            calls.extend(entries.keys().map(|name| Call::Lookup { parent: ino, name: Name(name.clone()) }));
        }
        Body::Symlink(_) => calls.push(Call::Readlink { ino }),
        Body::Special => {}
    }
    calls
}
