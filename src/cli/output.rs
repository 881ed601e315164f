//! Standard output is for data, standard error for everything else.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::environment::{Environment, write_file};
use crate::diagnostic::{Class, Diagnostic};

/// Writes data to standard output. A reader that went away is no error.
///
/// # Errors
/// When the data cannot be written.
pub(super) fn to_stdout(text: &str) -> Result<(), Diagnostic> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("standard output cannot be written: {error}");
            Err(Diagnostic::new(Class::Internal, message))
        }
        _ => Ok(()),
    }
}

/// Writes a message to standard error. Nobody is left to tell when that fails.
pub(super) fn to_stderr(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// Writes data to each of the files, of which `-` is standard output.
///
/// # Errors
/// The first file that cannot be written.
pub(super) fn to_files(
    environment: &Environment,
    files: &[PathBuf],
    text: &str,
) -> Result<(), Diagnostic> {
    for file in files {
        if file == Path::new("-") {
            to_stdout(text)?;
        } else {
            write_file(&environment.path(file), text.as_bytes())?;
        }
    }
    Ok(())
}
