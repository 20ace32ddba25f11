//! Pages that nothing corrects any more, on a chip that held a whole volume.
//!
//! Invariant: what they held is an error, all else is right, and the volume takes writes beside them.

use emulator::{Chip, Corruption};
use flexfs_core::{Ended, Error, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};

use crate::content::{Fill, Texture, mix};
use crate::crash::History;
use crate::model::{Body, ModelFs, Node};
use crate::ops::{Call, Name, call_fs};

/// Pages damaged.
const DAMAGED: u64 = 6;
/// Bytes read at a time.
const LOOK_BYTES: usize = 4096;

/// What became of a chip's pages, and what a look at them is judged by.
struct Damaged {
    options: MountOptions,
    model: ModelFs,
    now_ns: i64,
    /// Whether some of them may read well once.
    fleeting: bool,
    /// Whether something was refused that may be there or not.
    open_end: bool,
}

/// Damages pages of an unmounted chip, looks at everything, writes beside it, and looks again: it is right or an error.
/// Says how many are, unless the mount is one. Of the pages that say where everything stands one is damaged at most: of a
/// volume at rest there are two.
pub(super) fn damage(
    mut chip: Chip,
    history: &History,
    options: MountOptions,
    now_ns: i64,
    seed: u64,
) -> Result<Option<u64>, String> {
    let options = MountOptions { now_ns, ..options };
    let look = Fs::mount(chip.snapshot(), MountOptions { read_only: true, ..options.clone() });
    let pair = look.map_err(|(_, error)| format!("last look: {error}"))?.anchor().map_or([0; 2], |anchor| anchor.pair);
    let (written, mut anchors, mut fleeting) = (chip.written_pages(), 0, false);
    for number in 0..DAMAGED {
        let draw = mix(seed ^ mix(number));
        let (block, page) = written[(draw % written.len() as u64) as usize];
        anchors += u32::from(pair.contains(&block));
        if anchors > 1 && pair.contains(&block) {
            continue;
        }
        let kinds =
            [Corruption::FlipBits(40), Corruption::FlipSpareBits(3), Corruption::Uncorrectable, Corruption::Unstable];
        let kind = kinds[(draw >> 32) as usize % kinds.len()];
        fleeting |= kind == Corruption::Unstable;
        chip.corrupt_page(block, page, kind).map_err(|error| error.to_string())?;
    }
    let fs = match Fs::mount(chip, options.clone()) {
        Ok(fs) => fs,
        Err((_, Error::Corrupt { .. } | Error::NotFlexfs(_))) => return Ok(None),
        Err((_, error)) => return Err(format!("mount of a damaged chip: {error}")),
    };
    Damaged { options, model: history.live().clone(), now_ns, fleeting, open_end: false }.judge(fs).map(Some)
}

impl Damaged {
    fn judge(mut self, mut fs: Fs<Chip>) -> Result<u64, String> {
        let mut refused = self.look(&mut fs)?;
        // Whatever the check finds, it comes to an end.
        let _ = fs.check();
        let wrote = self.write_beside(&mut fs)?;
        let (chip, unmounted) = fs.unmount(self.now_ns);
        match unmounted {
            Ok(()) | Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(format!("unmount of a damaged chip: {error}")),
        }
        match Fs::mount(chip, self.options.clone()) {
            Ok(_) if self.open_end => {}
            Ok(mut fs) => refused += self.look(&mut fs)?,
            Err((_, Error::Corrupt { .. })) if self.fleeting => {}
            Err((_, error)) => return Err(format!("second mount of a damaged chip: {error}")),
        }
        Ok(refused + u64::from(!wrote))
    }

    /// Looks at everything: how much of it is an error.
    fn look(&mut self, fs: &mut Fs<Chip>) -> Result<u64, String> {
        let mut refused = 0;
        let calls: Vec<Call> = self.model.nodes().flat_map(|(ino, node)| looks(ino, node)).collect();
        // Where the root's own inode cannot be read there is a stand-in for it, and the volume says that it is damaged.
        let stands_in = fs.info().map_err(|error| format!("info: {error}"))?.ended == Some(Ended::Damaged);
        for call in &calls {
            match (call_fs(fs, call, self.now_ns), self.model.apply(call, 0, self.now_ns)) {
                (Ok(found), Ok(expected)) if found == expected => {}
                (Ok(_), _) if stands_in && matches!(call, Call::Getattr { ino: ROOT_INO }) => refused += 1,
                (Err(Error::Corrupt { .. }), _) => refused += 1,
                (found, expected) => {
                    return Err(format!("{call:?}, of a damaged chip: {found:?}, the model says {expected:?}"));
                }
            }
        }
        Ok(refused)
    }

    /// Makes a file beside what is damaged, and syncs it. Whether that could be done.
    fn write_beside(&mut self, fs: &mut Fs<Chip>) -> Result<bool, String> {
        let name: Name = "written beside damage".into();
        let node = NewNode { mode: kind::FILE | 0o600, uid: 1, gid: 1, rdev: 0 };
        let ended = fs.info().map_err(|error| format!("info: {error}"))?.ended.is_some();
        let mut ino = 0;
        for part in 0..3 {
            let fill = Fill { seed: 1, start: 0, texture: Texture::Noise };
            let call = match part {
                0 => Call::Create { parent: ROOT_INO, name: name.clone(), node, attributes: Vec::new() },
                1 => Call::Write { ino, offset: 0, len: 5000, fill },
                _ => Call::Sync,
            };
            match call_fs(fs, &call, self.now_ns) {
                Ok(reply) => {
                    ino = reply.made().unwrap_or(ino);
                    self.model.apply(&call, ino, self.now_ns).map_err(|refused| format!("{call:?}: {refused:?}"))?;
                }
                Err(Error::Corrupt { .. } | Error::NoSpace) => {
                    self.open_end = part > 0;
                    return Ok(false);
                }
                Err(_) if ended => return Ok(false),
                Err(error) => return Err(format!("{call:?}, beside damage: {error}")),
            }
        }
        Ok(true)
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
