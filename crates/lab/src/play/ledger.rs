//! What the files of a workload must hold, to be compared with what a volume gives back. Invariant: it is read on a copy
//! of the chip, so that looking changes no figure.

use emulator::Chip;
use flexfs_core::{Error, Fs, MountOptions, ROOT_INO};

use super::PlayError;
use torture::content::{Fill, Texture};
use torture::crash::BASE_NS;

/// Files of the root directory by name, each the first bytes of a fill.
#[derive(Clone, Debug, Default)]
pub struct Ledger(std::collections::BTreeMap<String, (u64, u64)>);

impl Ledger {
    /// Notes that a file of that seed is so long now, and gives the bytes that were appended.
    pub fn append(&mut self, name: &str, seed: u64, bytes: u64) -> Vec<u8> {
        let (_, len) = self.0.entry(name.to_owned()).or_insert((seed, 0));
        let start = *len;
        *len += bytes;
        fill(seed).skip(start).bytes(bytes as usize)
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Compares every file with what the volume on a copy of `chip` gives back, and lets that check itself.
    pub fn verify(&self, chip: &Chip) -> Result<(), PlayError> {
        let options = MountOptions { now_ns: BASE_NS + chip.now_ns() as i64, ..MountOptions::default() };
        let mounted = Fs::mount(chip.snapshot(), options);
        let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting to read back", source })?;
        let failed = |doing| move |source: Error| PlayError::Fs { doing, source };
        let mut names = 0;
        for (name, &(seed, len)) in &self.0 {
            let ino = fs.lookup(ROOT_INO, name.as_bytes()).map_err(failed("looking up a file"))?.ino;
            let mut found = vec![0; len as usize + 1];
            let count = fs.read(ino, 0, &mut found).map_err(failed("reading back"))?;
            found.truncate(count);
            if found != fill(seed).bytes(len as usize) {
                return Err(PlayError::Wrong(format!("{name} does not hold what was written")));
            }
        }
        fs.readdir(ROOT_INO, 0, &mut |_| {
            names += 1;
            true
        })
        .map_err(failed("listing the directory"))?;
        if names != self.0.len() {
            return Err(PlayError::Wrong(format!("there are {names} files instead of {}", self.0.len())));
        }
        match fs.check().map_err(failed("checking"))?.findings.first() {
            None => Ok(()),
            Some(first) => Err(PlayError::Wrong(format!("the check found: {first}"))),
        }
    }
}

fn fill(seed: u64) -> Fill {
    Fill { seed, start: 0, texture: Texture::Noise }
}
