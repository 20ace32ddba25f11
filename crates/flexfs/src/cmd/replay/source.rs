//! The bytes of a recording: of a file or of standard input, unpacked where they are packed.
//!
//! Invariant: an error names the file, or standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use lab::trace::unpacked;

use crate::host::At;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// A recording that was read.
pub struct RecordingSource {
    /// Its name, for errors.
    pub shown: String,
    pub bytes: Vec<u8>,
}

impl RecordingSource {
    pub fn read(path: &Path) -> Result<Self> {
        let (shown, packed) = if path == Path::new(STANDARD_INPUT) {
            let (name, mut bytes) = (PathBuf::from("standard input"), Vec::new());
            io::stdin().read_to_end(&mut bytes).at(&name)?;
            (name, bytes)
        } else {
            (path.to_path_buf(), fs::read(path).at(path)?)
        };
        let shown = shown.display().to_string();
        let bytes = unpacked(packed).map_err(|error| anyhow!("{shown}: {error}"))?;
        Ok(Self { shown, bytes })
    }
}
