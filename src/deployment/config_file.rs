use serde::de::DeserializeOwned;

use crate::{
    diagnostic::{Diagnostic, FieldPath, Position, SourceLocation},
    tree::{EntryKind, SourceTree, TreeError},
    vars::{Context, RenderedFile, Templates},
    yaml::{self, Positions, Schema},
};

use super::error::LoadProblem;

/// A configuration file of a project after reading, with what is needed to point into it.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    file: RenderedFile,
    positions: Positions,
}

/// A place in a configuration file, kept to complete diagnostics later.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    file: std::sync::Arc<ConfigFile>,
    field: FieldPath,
}

impl ConfigFile {
    /// Reads a file: renders it when `context` is given, then parses its first document strictly.
    pub(crate) fn read<T: DeserializeOwned>(
        path: &str,
        templates: &Templates,
        context: Option<&Context>,
    ) -> Result<(T, Self), Vec<LoadProblem>> {
        let content = templates.tree().read(path).map_err(|error| vec![error.into()])?;
        let source = std::str::from_utf8(&content).map_err(|error| {
            let at = Position::of_byte(&content, error.valid_up_to());
            vec![LoadProblem::NotText { path: path.to_owned(), at }]
        })?;
        let unrendered = templates.file(path, source, source);
        let file = match context {
            None => unrendered,
            Some(context) => match templates.render(path, source, context) {
                Ok(rendered) => templates.file(path, source, &rendered),
                Err(error) => {
                    let file = Box::new(unrendered);
                    return Err(vec![LoadProblem::Template { file, source: Box::new(error) }]);
                }
            },
        };
        let invalid = |source| LoadProblem::Yaml { file: Box::new(file.clone()), source };
        let document = yaml::parse_document(path, file.rendered().as_bytes(), Schema::Config)
            .map_err(|error| vec![invalid(error)])?;
        let value = yaml::from_document_gathering(path, &document)
            .map_err(|errors| errors.into_iter().map(invalid).collect::<Vec<_>>())?;
        Ok((value, Self { file, positions: document.positions }))
    }

    /// The path in the source.
    pub(crate) fn path(&self) -> &str {
        self.file.path()
    }

    /// Adds the place of a field to a diagnostic.
    fn complete(&self, diagnostic: Diagnostic, field: &FieldPath) -> Diagnostic {
        let position: Option<Position> = self.positions.of(field);
        let at = SourceLocation { file: self.path().to_owned(), position };
        let diagnostic = self.file.complete(diagnostic.with_location(at));
        if field.0.is_empty() { diagnostic } else { diagnostic.with_field(field.to_string()) }
    }
}

impl Place {
    pub(crate) fn new(file: &std::sync::Arc<ConfigFile>, field: FieldPath) -> Self {
        Self { file: file.clone(), field }
    }

    /// The path of the file in its source.
    pub(crate) fn path(&self) -> &str {
        self.file.path()
    }

    /// A field below this place.
    pub(crate) fn below(&self, field: &FieldPath) -> Self {
        let mut path = self.field.clone();
        path.0.extend(field.0.iter().cloned());
        Self { file: self.file.clone(), field: path }
    }

    /// A field directly below this place.
    pub(crate) fn child(&self, key: &str) -> Self {
        Self { file: self.file.clone(), field: self.field.child(key) }
    }

    /// Adds this place to a diagnostic, unless it is about another file.
    pub(crate) fn complete(&self, diagnostic: Diagnostic) -> Diagnostic {
        if diagnostic.at.is_some() {
            return diagnostic;
        }
        self.file.complete(diagnostic, &self.field)
    }
}

/// The file that is there of a name with either extension; the order of extensions is the order of preference.
pub(crate) fn find(
    tree: &dyn SourceTree,
    dir: &str,
    stem: &str,
    extensions: [&str; 2],
) -> Result<Option<String>, TreeError> {
    for extension in extensions {
        let path = crate::tree::join(dir, &format!("{stem}.{extension}"))?;
        // A link that leads outside of the tree is an error, not a missing file.
        if tree.kind(&path)? == Some(EntryKind::File) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
