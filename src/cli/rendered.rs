//! Rendered files on disk.

use std::path::{Path, PathBuf};

use super::environment::write_private_file;
use crate::{
    diagnostic::{Class, Diagnostic},
    engine::Prepared,
    yaml,
};

/// A new directory that stays when the command has ended.
///
/// # Errors
/// When the system gives none.
pub(super) fn temporary_dir() -> Result<PathBuf, Diagnostic> {
    let dir = tempfile::Builder::new().prefix("kluctl-render-").tempdir().map_err(|error| {
        Diagnostic::new(Class::Internal, "no temporary directory can be made").with_cause(&error)
    })?;
    Ok(dir.keep())
}

/// Writes the files of each item, and its objects as `.rendered.yml`, to `<dir>/<source>/<item>`.
///
/// # Errors
/// The first file that cannot be written.
pub(super) fn write(prepared: &Prepared, dir: &Path) -> Result<(), Diagnostic> {
    for item in &prepared.rendered_files {
        let item_dir = dir.join(item.source.to_string()).join(&item.render_dir);
        for (path, content) in item.files.files() {
            let below = path.strip_prefix(&item.dir).unwrap_or(path).trim_start_matches('/');
            write_private_file(&item_dir.join(below), content)?;
        }
        let objects = prepared.desired.items[item.index].objects.iter();
        let text = yaml::emit_documents(objects.map(|object| object.value()));
        write_private_file(&item_dir.join(".rendered.yml"), text.as_bytes())?;
    }
    Ok(())
}
