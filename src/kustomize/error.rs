use super::id::Id;
use crate::{
    diagnostic::{Class, Describe, Diagnostic, SourceLocation},
    tree::TreeError,
    yaml::YamlError,
};

/// Why a kustomization could not be built. Each error names the file, and as far as known line, column, field and object.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum KustomizeError {
    /// A directory without a kustomization file.
    #[error("{}", self.describe())]
    NoKustomization {
        /// The directory in the tree.
        dir: String,
        /// Where it is referred to; `None` for the directory that was asked for.
        referrer: Option<Box<Place>>,
    },
    /// A directory with more than one kustomization file.
    #[error("{}", self.describe())]
    SeveralKustomizations {
        /// The directory in the tree.
        dir: String,
        /// The files found.
        files: Vec<&'static str>,
    },
    /// A file that a kustomization names could not be read.
    #[error("{}", self.describe())]
    Read {
        /// Where it is named.
        place: Box<Place>,
        /// The tree's reason.
        #[source]
        source: TreeError,
    },
    /// A web server has no file for a URL.
    #[error("{}", self.describe())]
    Status {
        /// Where the URL is named.
        place: Box<Place>,
        /// The URL, without credentials.
        url: String,
        /// The status of the answer.
        status: u16,
    },
    /// A file is no YAML.
    #[error("{}", self.describe())]
    Yaml(#[from] YamlError),
    /// A field of a kustomization, or of a file that configures the build, is wrong.
    #[error("{0}")]
    Kustomization(Box<Diagnostic>),
    /// A manifest is wrong.
    #[error("{0}")]
    Manifest(Box<Diagnostic>),
    /// A transformation does not fit the object it is applied to.
    #[error("{0}")]
    Transform(Box<Diagnostic>),
    /// Two objects have the same identity.
    #[error("{0}")]
    Duplicate(Box<Diagnostic>),
}

impl Describe for KustomizeError {
    fn describe(&self) -> Diagnostic {
        match self {
            Self::NoKustomization { dir, referrer } => {
                let shown = shown_dir(dir);
                let message = format!("no kustomization file in directory {shown}");
                let diagnostic = match referrer {
                    Some(place) => place.problem(message),
                    None => Diagnostic::new(Class::Project, message),
                };
                diagnostic.with_hint("add a kustomization.yaml, or name a file")
            }
            Self::SeveralKustomizations { dir, files } => {
                let message =
                    format!("directory {} has several kustomization files", shown_dir(dir));
                Diagnostic::new(Class::Project, message)
                    .with_hint(format!("keep one of {}", files.join(", ")))
            }
            Self::Read { place, source } => place.problem(source.to_string()),
            Self::Status { place, url, status } => {
                place.problem(format!("{url} answers with status {status}"))
            }
            Self::Yaml(error) => error.describe(),
            Self::Kustomization(diagnostic)
            | Self::Manifest(diagnostic)
            | Self::Transform(diagnostic)
            | Self::Duplicate(diagnostic) => (**diagnostic).clone(),
        }
    }
}

pub(crate) fn shown_dir(dir: &str) -> &str {
    if dir.is_empty() { "." } else { dir }
}

/// A field of a file, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, line and column.
    pub at: SourceLocation,
    /// Path of the field, empty for the whole document.
    pub field: String,
}

impl Place {
    /// A diagnostic about this place.
    pub(crate) fn problem(&self, message: impl Into<String>) -> Diagnostic {
        let diagnostic = Diagnostic::new(Class::Project, message).with_location(self.at.clone());
        if self.field.is_empty() { diagnostic } else { diagnostic.with_field(self.field.clone()) }
    }

    /// An error about this place of a kustomization.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> KustomizeError {
        KustomizeError::Kustomization(Box::new(self.problem(message)))
    }

    /// A field below this one.
    #[must_use]
    pub(crate) fn child(&self, name: &str) -> Self {
        let field =
            if self.field.is_empty() { name.to_owned() } else { format!("{}.{name}", self.field) };
        Self { at: self.at.clone(), field }
    }
}

/// The error for a second object of the same identity.
pub(crate) fn duplicate(
    id: &Id,
    first: Option<&SourceLocation>,
    second: &SourceLocation,
) -> KustomizeError {
    let mut diagnostic =
        Diagnostic::new(Class::Project, format!("{} {} is defined twice", id.gvk.kind, id.name))
            .with_location(second.clone())
            .with_object(id.to_string());
    if let Some(first) = first {
        diagnostic = diagnostic.with_hint(format!("also defined at {first}"));
    }
    KustomizeError::Duplicate(Box::new(
        diagnostic.with_hint("rename or remove one of them, or change it with a patch"),
    ))
}

/// Shorthand of this module's functions.
pub(crate) type Result<T, E = KustomizeError> = std::result::Result<T, E>;
