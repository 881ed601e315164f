use super::ProjectError;
use crate::{
    diagnostic::{Diagnostic, FieldPath, SourceLocation},
    schema::ProjectFile,
    tree::{self, EntryKind, SourceTree, TreeError},
    yaml::{self, Positions, Schema},
};

/// A project's configuration as read, before any target is chosen.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// The configuration file as a path in its tree (or as it was called); `None` when the project has none.
    pub file: Option<String>,
    /// What it says; empty without a file.
    pub config: ProjectFile,
    positions: Positions,
}

impl Project {
    /// Reads the configuration of the project in directory `dir` of `tree`: `config_file` if given (a path in the tree), else
    /// `.kluctl.yml` or `.kluctl.yaml`. A project without either is one without targets and arguments.
    ///
    /// # Errors
    /// When the file given does not exist, cannot be read, is no YAML, or has fields or types that do not belong there.
    pub fn load(
        tree: &dyn SourceTree,
        dir: &str,
        config_file: Option<&str>,
    ) -> Result<Self, ProjectError> {
        let file = match config_file {
            Some(file) => tree::join("", file)?,
            None => match find(tree, dir)? {
                Some(file) => file,
                None => return Ok(Self::default()),
            },
        };
        let content = tree.read(&file)?;
        Self::parse(&file, &content)
    }

    /// Reads a configuration that may lie outside of any tree; `file` is what it is called in messages.
    ///
    /// # Errors
    /// When the content is no YAML, or has fields or types that do not belong there.
    pub fn parse(file: &str, content: &[u8]) -> Result<Self, ProjectError> {
        let document = yaml::parse_document(file, content, Schema::Config)?;
        let config =
            yaml::from_document_gathering(file, &document).map_err(ProjectError::Config)?;
        let project = Self { file: Some(file.to_owned()), config, positions: document.positions };
        project.check_arguments()?;
        Ok(project)
    }

    fn check_arguments(&self) -> Result<(), ProjectError> {
        let unnamed = self.config.args.iter().position(|declared| declared.name.is_empty());
        let Some(index) = unnamed else { return Ok(()) };
        let path = FieldPath::root().child("args").child(index).child("name");
        let violation = crate::schema::Violation {
            path: path.clone(),
            message: "is empty".to_owned(),
            expected: "the argument's name".to_owned(),
        };
        Err(ProjectError::rule(violation, |diagnostic| self.locate(diagnostic, &path)))
    }

    /// The names of all targets that have one, as written, each once, in the order of the file.
    pub fn target_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for target in &self.config.targets {
            if !target.name.is_empty() && !names.contains(&target.name.as_str()) {
                names.push(&target.name);
            }
        }
        names
    }

    /// Adds the place of a field in the configuration file to a diagnostic.
    pub(super) fn locate(&self, diagnostic: Diagnostic, field: &FieldPath) -> Diagnostic {
        let Some(file) = &self.file else { return diagnostic };
        let position = self.positions.of(field);
        let mut diagnostic =
            diagnostic.with_location(SourceLocation { file: file.clone(), position });
        if !field.0.is_empty() {
            diagnostic.field = Some(field.to_string());
        }
        diagnostic
    }
}

fn find(tree: &dyn SourceTree, dir: &str) -> Result<Option<String>, TreeError> {
    for name in [".kluctl.yml", ".kluctl.yaml"] {
        let path = tree::join(dir, name)?;
        // A link that leads outside of the tree is an error, not a missing file.
        if tree.kind(&path)? == Some(EntryKind::File) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
