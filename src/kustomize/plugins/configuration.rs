use super::Context;
use crate::{
    diagnostic::{Position, SourceLocation},
    kustomize::{
        decode::{Located, Node},
        error::{KustomizeError, Place, Result},
        origin::Origin,
    },
    tree::TreeError,
    yaml::{self, Document, Schema as YamlSchema},
};

/// The object that configures a plug-in.
pub(super) struct Configuration {
    pub document: Document,
    /// File, or field of a kustomization, for messages.
    pub source: String,
    /// What the plug-in does is recorded as this.
    pub origin: Option<Origin>,
}

impl Configuration {
    pub(super) fn node(&self) -> Node<'_> {
        Node::lenient(&self.source, &self.document)
    }

    pub(super) fn at(&self) -> SourceLocation {
        let at = self.node().place().at;
        let position = at.position.map(|start| Position { column: 1, ..start });
        SourceLocation { position, ..at }
    }

    pub(super) fn place(&self) -> Place {
        Place { at: self.at(), field: String::new() }
    }

    /// The kind of built-in plug-in.
    ///
    /// # Errors
    /// When it is not one of kustomize's own.
    pub(super) fn kind(&self) -> Result<&str> {
        let text = |key: &str| self.document.value.get(key).and_then(serde_json::Value::as_str);
        let kind = text("kind").unwrap_or_default();
        if text("apiVersion") == Some("builtin") {
            return Ok(kind);
        }
        let problem = self.place().problem(format!("plug-in {kind} is not built in"));
        Err(KustomizeError::Kustomization(Box::new(
            problem
                .with_expected("apiVersion: builtin")
                .with_hint("programs and containers are not run"),
        )))
    }

    /// The error for a kind that cannot be used here.
    pub(super) fn wrong_kind(&self, kind: &str, expected: &[&str]) -> KustomizeError {
        let problem = self.place().problem(format!("unknown kind \"{kind}\""));
        KustomizeError::Kustomization(Box::new(
            match yaml::closest(kind, expected.iter().copied()) {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => problem.with_expected(format!("one of {}", expected.join(", "))),
            },
        ))
    }
}

/// Reads the configurations that a field names: written in place first, then files and directories.
pub(super) fn read(
    context: &Context<'_>,
    entries: &[Located<String>],
) -> Result<Vec<Configuration>> {
    let mut found = Vec::new();
    let is_inline = |entry: &&Located<String>| {
        let text = entry.value.trim();
        text.contains('\n') || text.starts_with('{')
    };
    for Located { value: text, place } in entries.iter().filter(is_inline) {
        let source = format!("{} ({})", place.at.file, place.field);
        for document in yaml::parse_documents(&source, text.as_bytes(), YamlSchema::Manifest)? {
            let file = context.path.join(context.file);
            let origin = context.build.origins.plugin(&file, &document.value);
            found.push(Configuration { document, source: source.clone(), origin });
        }
    }
    // An entry without text configures nothing.
    let is_file = |entry: &&Located<String>| !is_inline(entry) && !entry.value.trim().is_empty();
    for entry in entries.iter().filter(is_file) {
        let Located { value: path, place } = entry;
        let shown = context.path.join(path);
        match context.files.read(context.dir, path, place) {
            Ok((file, text)) => {
                for document in yaml::parse_documents(&file, &text, YamlSchema::Manifest)? {
                    let origin = context.build.origins.plugin(&shown, &document.value);
                    found.push(Configuration { document, source: file.clone(), origin });
                }
            }
            Err(KustomizeError::Read { source: TreeError::WrongKind { .. }, .. }) => {
                for resource in (context.load)(entry)?.into_vec() {
                    let origin = context.build.origins.plugin(&shown, &resource.value);
                    let source = resource.at.file;
                    found.push(Configuration { document: resource.value.into(), source, origin });
                }
            }
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}
