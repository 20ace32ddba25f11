//! Errors of the host's file system, in one line: the path, what is wrong there, and what can be done where that is
//! plain.

use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::{Error, Result, anyhow};

/// Says of a failed call which path it was about.
pub trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| told(path, &error))
    }
}

impl<T> At<T> for walkdir::Result<T> {
    /// The path is the walk's start; the error knows where it happened.
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| {
            let path = error.path().unwrap_or(path).to_path_buf();
            let shown = error.to_string();
            match error.into_io_error() {
                Some(error) => told(&path, &error),
                None => anyhow!("{shown}"),
            }
        })
    }
}

/// A failed call about a path.
pub fn told(path: &Path, error: &io::Error) -> Error {
    anyhow!("{}: {}", path.display(), why(path, error))
}

/// What is wrong at a path.
fn why(path: &Path, error: &io::Error) -> String {
    let above = || path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    match error.kind() {
        ErrorKind::NotFound => match above().take_while(|above| above.symlink_metadata().is_err()).last() {
            Some(missing) => format!("there is no directory {}; make it, or check the name", missing.display()),
            None => "no such file or directory; check the name".to_owned(),
        },
        ErrorKind::NotADirectory => match above().find(|above| above.is_file()) {
            Some(file) => format!("{} is not a directory; check the name", file.display()),
            None => error.to_string(),
        },
        ErrorKind::PermissionDenied if path.symlink_metadata().is_ok() => {
            "permission denied; run as its owner or root".to_owned()
        }
        ErrorKind::PermissionDenied => {
            "permission denied in its directory; run as the directory's owner or root, or choose another".to_owned()
        }
        ErrorKind::StorageFull => "no space is left on its file system; free some".to_owned(),
        ErrorKind::AlreadyExists => "something else of that name is there; choose another".to_owned(),
        ErrorKind::InvalidData => "not a text file; check the name".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "its file system is mounted read-only; choose another place".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_no_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| format!("{:#}", std::fs::metadata(path).at(path).unwrap_err());
        let path = dir.path().join("none/below/x");
        assert!(
            said(&path)
                .ends_with(&format!("there is no directory {}/none; make it, or check the name", dir.path().display()))
        );
        assert!(said(&dir.path().join("x")).ends_with("x: no such file or directory; check the name"));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(said(&file.join("x")).contains(&format!("{} is not a directory", file.display())));
        assert!(said(Path::new("none/x")).contains("there is no directory none;"));
    }
}
