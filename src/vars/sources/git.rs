//! `git`: a file of a repository, rendered and read as a file of the project is; templates in it see the repository's files.

use super::file;
use crate::{
    diagnostic::FieldPath,
    schema::{GitFile, GitRef, VarsSource},
    secret::redact_url,
    vars::{Context, GitSource, Templates, VarsError, load::Loaded},
};

/// Reads the file. Only the file may be missing, not the repository or the revision.
pub(in crate::vars) async fn read(
    source: &GitFile,
    entry: &VarsSource,
    git: Option<&dyn GitSource>,
    templates: &Templates,
    context: &Context,
) -> Result<Loaded, VarsError> {
    let git = git.ok_or(VarsError::NotAvailable { kind: "git" })?;
    let checkout = git.checkout(&source.url, source.reference.as_ref()).await;
    let checkout = checkout.map_err(VarsError::outside)?;
    let label = label(&source.url, source.reference.as_ref());
    let templates =
        templates.of_source(checkout.tree, Some(label.as_str().into()), vec![String::new()]);
    file::read(&source.path, entry, &templates, context).map_err(|error| match error {
        VarsError::FileNotFound { path, .. } => VarsError::FileNotFound {
            path,
            searched: vec![label],
            field: FieldPath::root().child("git").child("path"),
        },
        other => other,
    })
}

/// How a revision of a repository is named to the user.
pub(in crate::vars) fn label(url: &str, reference: Option<&GitRef>) -> String {
    let url = redact_url(url);
    reference.map_or_else(|| url.clone(), |reference| format!("{url}@{reference}"))
}
