//! The files in which a mount is recorded. Invariant: each is a new file, made before the image is touched, and gone again
//! unless the mount comes up.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use flexfs_core::Fs;
use lab::trace;
use tempfile::{NamedTempFile, TempPath};
use torture::record::{Header, Recorder};

use crate::any_chip::{AnyChip, is_device};
use crate::cli::Settings;
use crate::destination::Destinations;
use crate::fuse::Recordings;
use crate::host::{At, told};

/// Files of recordings that have not begun.
pub struct Files {
    trace: Option<NamedTempFile>,
    decisions: Option<(NamedTempFile, Header)>,
}

/// Whether the files that the settings ask for can be made, for a mount of `image`.
pub fn check(settings: &Settings, image: &Path) -> Result<()> {
    if is_device(image) && settings.record_decisions.is_some() {
        bail!("{}: decisions are recorded on an image, which can be played again; leave that out", image.display());
    }
    let destinations = Destinations::beside(image);
    let asked = [&settings.record, &settings.record_decisions];
    asked.into_iter().flatten().try_for_each(|path| destinations.check_new(path))
}

impl Files {
    /// Makes the files that the settings ask for; decisions need a header.
    pub fn make(settings: &Settings, header: Option<Header>, image: &Path) -> Result<Self> {
        let destinations = Destinations::beside(image);
        let make = |path: &PathBuf| -> Result<NamedTempFile> {
            let file = destinations.create_new(path)?;
            Ok(NamedTempFile::from_parts(file, TempPath::try_from_path(path).at(path)?))
        };
        let decisions = match &settings.record_decisions {
            None => None,
            Some(path) => Some((make(path)?, header.ok_or_else(|| without_decisions(path))?)),
        };
        Ok(Self { trace: settings.record.as_ref().map(make).transpose()?, decisions })
    }

    /// Begins to write down what is asked for of a volume just mounted.
    pub fn begin(&self, fs: &mut Fs<AnyChip>) -> Result<Recordings> {
        let mut recordings = Recordings::default();
        if let Some(file) = &self.trace {
            let begun = trace::Recorder::begin(writer(file)?, fs).map_err(|error| told(file.path(), &error))?;
            recordings.trace = Some(begun);
        }
        if let Some((file, header)) = &self.decisions {
            if fs.chip().drive().is_some() {
                bail!(
                    "{}: decisions are recorded on a bare chip, not over a drive; leave that out",
                    file.path().display()
                );
            }
            let begun = Recorder::begin(writer(file)?, header, fs).map_err(|error| told(file.path(), &error))?;
            recordings.decisions = Some(begun);
        }
        Ok(recordings)
    }

    /// The mount works: the files stay.
    pub fn keep(self) {
        let files = [self.trace, self.decisions.map(|(file, _)| file)];
        files.into_iter().flatten().for_each(|mut file| file.disable_cleanup(true));
    }
}

fn writer(file: &NamedTempFile) -> Result<Box<BufWriter<File>>> {
    let written = file.as_file().try_clone().map_err(|error| told(file.path(), &error))?;
    Ok(Box::new(BufWriter::new(written)))
}

fn without_decisions(path: &Path) -> anyhow::Error {
    anyhow!(
        "{}: decisions are recorded of mounts that write, and not of compression, which follows contents",
        path.display()
    )
}
