//! Repairs of `flexfs fsck`: what is safe (`-p`), or whatever it takes to have a sound volume again (`-y`).
//!
//! Invariant: what is safe takes nothing away; the rest is told file by file.

use std::path::Path;

use anyhow::{Result, anyhow};
use flexfs_core::{Doubt, Ended, Error, Fs, HOST_CACHE_BYTES, MountOptions, Salvaged};
use rustix::rand::GetRandomFlags;
use serde_json::{Value, json};

use crate::any_chip::AnyChip;
use crate::clock::now_ns;
use crate::image;
use crate::output::grouped;
use crate::progress;
use crate::tree::shown;

/// Files in `lost+found` that are named, and files that are lost; of more there is their number.
const NAMED_MAX: usize = 100;

/// What was done to a volume.
pub enum Repaired {
    /// Nothing: it was mounted and unmounted.
    Nothing,
    /// It had not been unmounted: mounting recovered it, as it always does.
    Recovered,
    /// Counts were wrong, and nothing else.
    Counts,
    /// What could not be read was taken out of it.
    Mended(Salvaged),
    /// Its index was built again of what stood on the chip.
    Rebuilt(Salvaged),
}

/// Repairs the volume in an image: everything, or only what is safe.
pub fn repair(path: &Path, everything: bool) -> Result<Repaired> {
    let chip = image::open_chip(path, false)?;
    let options = MountOptions { now_ns: now_ns(), cache_bytes: HOST_CACHE_BYTES, ..MountOptions::default() };
    let told = |error: Error| anyhow!("{}: {}", path.display(), image::explain(&error, path));
    let (fs, repaired) = match image::mount(chip, options.clone()) {
        Ok(fs) => mend(fs, everything, &options).map_err(told)?,
        Err((chip, Error::Corrupt { .. } | Error::NotFlexfs(_))) if everything => {
            rebuild(chip, &options).map_err(told)?
        }
        // The check that follows says what is wrong with it.
        Err((_, Error::Corrupt { .. })) => return Ok(Repaired::Nothing),
        Err((_, error)) => return Err(told(error)),
    };
    image::leave(fs, path, now_ns())?;
    Ok(repaired)
}

/// Mends a volume that could be mounted.
fn mend(mut fs: Fs<AnyChip>, everything: bool, options: &MountOptions) -> Result<(Fs<AnyChip>, Repaired), Error> {
    let info = fs.info()?;
    let ended = info.ended;
    let as_it_is = if info.clean || ended.is_some() { Repaired::Nothing } else { Repaired::Recovered };
    let sound = matches!(fs.check(), Ok(report) if report.findings.is_empty());
    match ended {
        _ if sound => return Ok((fs, as_it_is)),
        Some(Ended::Damaged) if everything => return rebuild(fs.into_chip(), options),
        // Nothing can be written any more, and what can be read is best left as it is.
        Some(_) => return Ok((fs, as_it_is)),
        None => {}
    }
    match fs.mend(everything, now_ns()) {
        Ok(None) => Ok((fs, as_it_is)),
        Ok(Some(done)) if done == (Salvaged { files: done.files, ..Salvaged::default() }) => Ok((fs, Repaired::Counts)),
        Ok(Some(done)) => Ok((fs, Repaired::Mended(done))),
        // The index cannot be read whole.
        Err(Error::Corrupt { .. }) if everything => rebuild(fs.into_chip(), options),
        Err(Error::Corrupt { .. }) => Ok((fs, as_it_is)),
        // What was begun does not count: it was not unmounted.
        Err(error) => Err(error),
    }
}

fn rebuild(chip: AnyChip, options: &MountOptions) -> Result<(Fs<AnyChip>, Repaired), Error> {
    let mut volume_id = [0; 16];
    // Without chance there is still the time.
    if rustix::rand::getrandom(&mut volume_id, GetRandomFlags::empty()).is_err() {
        volume_id[..8].copy_from_slice(&options.now_ns.to_le_bytes());
    }
    let bar = progress::share("fsck");
    let outcome = Fs::salvage(chip, volume_id, options.clone(), &mut |done, all| {
        bar.set_length(all.into());
        bar.set_position(done.into());
    });
    bar.finish_and_clear();
    let (fs, salvaged) = outcome.map_err(|(_, error)| error)?;
    Ok((fs, Repaired::Rebuilt(salvaged)))
}

impl Repaired {
    /// Whether errors were corrected.
    pub fn corrected(&self) -> bool {
        !matches!(self, Repaired::Nothing | Repaired::Recovered)
    }

    /// What was done, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let (first, done) = match self {
            Repaired::Nothing => return Vec::new(),
            Repaired::Recovered => return vec!["it had not been unmounted and was recovered".to_owned()],
            Repaired::Counts => return vec!["wrong counts were corrected".to_owned()],
            Repaired::Mended(done) => ("what could not be read was taken out", done),
            Repaired::Rebuilt(done) => ("the index was built again of what stands on the chip", done),
        };
        let mut lines = vec![format!("{first}; there are {} files and directories now", grouped(done.files))];
        let more = |of: usize| of.checked_sub(NAMED_MAX).filter(|&more| more > 0).map(|more| grouped(more as u64));
        let named = done.moved.iter().take(NAMED_MAX);
        lines.extend(named.map(|(path, doubt)| format!("{}: {}", shown(path), why(*doubt))));
        lines.extend(more(done.moved.len()).map(|more| format!("and {more} more in /lost+found")));
        lines.extend(done.lost.iter().take(NAMED_MAX).map(|path| format!("{}: nothing of it is left", shown(path))));
        lines.extend(more(done.lost.len()).map(|more| format!("and {more} more of which nothing is left")));
        let count = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{} {many}", grouped(count))),
        };
        lines.extend(count(
            done.unreadable,
            "page could not be read: what it held may be there as it was earlier",
            "pages could not be read: what they held may be there as it was earlier",
        ));
        lines.extend(count(
            done.unfinished,
            "page of an operation that a power cut left unfinished was left out",
            "pages of operations that a power cut left unfinished were left out",
        ));
        lines.extend(count(
            done.attributes,
            "extended attribute was left out: it may have been removed",
            "extended attributes were left out: they may have been removed, or are not whole",
        ));
        lines.extend(count(
            done.deleted,
            "remainder of a deleted file was left out",
            "remainders of deleted files were left out",
        ));
        if done.renamed {
            lines.push("nothing told the volume's label and identity: it has a new one".to_owned());
        }
        lines
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let (kind, done) = match self {
            Repaired::Nothing => return Value::Null,
            Repaired::Recovered => return json!({ "kind": "recovered" }),
            Repaired::Counts => ("counts", &Salvaged::default()),
            Repaired::Mended(done) => ("mended", done),
            Repaired::Rebuilt(done) => ("rebuilt", done),
        };
        let moved = done.moved.iter().map(|(path, doubt)| json!({ "path": shown(path), "why": why(*doubt) }));
        json!({
            "kind": kind,
            "moved": moved.collect::<Vec<_>>(),
            "lost": done.lost.iter().map(|path| shown(path)).collect::<Vec<_>>(),
            "unreadable": done.unreadable,
            "attributes": done.attributes,
            "deleted": done.deleted,
            "unfinished": done.unfinished,
            "new_identity": done.renamed,
        })
    }
}

fn why(doubt: Doubt) -> String {
    match doubt {
        Doubt::Deleted => "it may have been deleted".to_owned(),
        Doubt::Incomplete { chunks: 1 } => "one of its pages is missing, or should not be there".to_owned(),
        Doubt::Incomplete { chunks } => {
            format!("{} of its pages are missing, or should not be there", grouped(chunks))
        }
        Doubt::NoInode => "its owner, permissions and length are lost".to_owned(),
        Doubt::NoName => "its name is lost".to_owned(),
        _ => "it is in doubt".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of more lost files than are named nothing was said, and paths began with two slashes.
    #[test]
    fn of_more_files_than_are_named_the_number_is_told() {
        let moved = (0..NAMED_MAX).map(|file| (format!("lost+found/{file}").into_bytes(), Doubt::NoInode)).collect();
        let lost = (0..NAMED_MAX + 7).map(|file| format!("dir/{file}").into_bytes()).collect();
        let done = Salvaged { files: 1234, moved, lost, ..Salvaged::default() };
        let lines = Repaired::Rebuilt(done).lines();
        assert!(lines[0].ends_with("; there are 1,234 files and directories now"), "{}", lines[0]);
        assert_eq!(lines[1], "/lost+found/0: its owner, permissions and length are lost");
        assert_eq!(lines[1 + NAMED_MAX], "/dir/0: nothing of it is left");
        assert_eq!(lines.last().unwrap(), "and 7 more of which nothing is left");
        assert_eq!(lines.len(), 1 + NAMED_MAX + NAMED_MAX + 1);
    }
}
