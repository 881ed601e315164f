use super::config_file::Place;
use crate::{
    diagnostic::{Class, Describe, Diagnostic, Position, SourceLocation},
    jinja::JinjaError,
    project::args::ArgsError,
    schema::Violation,
    tree::TreeError,
    vars::{RenderedFile, VarsError},
    yaml::YamlError,
};

/// What is wrong with a deployment project.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadProblem {
    /// A file or directory cannot be read.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// A configuration file is not UTF-8.
    #[error("{path} is not UTF-8 text")]
    NotText {
        /// The file.
        path: String,
        /// Where the first byte is that is no text.
        at: Position,
    },
    /// The template of a configuration file failed.
    #[error("{} cannot be rendered", file.path())]
    Template {
        /// The file.
        file: Box<RenderedFile>,
        /// What the template engine says.
        #[source]
        source: Box<JinjaError>,
    },
    /// A configuration file is not valid.
    #[error("{} is not valid", file.path())]
    Yaml {
        /// The file.
        file: Box<RenderedFile>,
        /// What the parser says.
        #[source]
        source: YamlError,
    },
    /// Fields contradict each other.
    #[error("{}", .0.message)]
    Rule(Violation),
    /// The root project has a condition.
    #[error("the root project cannot have `when`")]
    RootWhen,
    /// An included directory is no deployment project.
    #[error("{dir} has no deployment.yaml")]
    NoDeploymentFile {
        /// The directory.
        dir: String,
        /// Whether it has a kustomization, which suggests that `path` was meant.
        has_kustomization: bool,
    },
    /// The directory of an item or include is missing.
    #[error("directory {dir} does not exist")]
    MissingDirectory {
        /// The directory as the user knows it.
        dir: String,
    },
    /// The path leads to a file.
    #[error("{dir} is not a directory")]
    NotADirectory {
        /// The path as the user knows it.
        dir: String,
    },
    /// The path leaves the source.
    #[error("path {path:?} leads outside of the project's source root")]
    Escapes {
        /// The path as written.
        path: String,
    },
    /// A condition cannot be evaluated.
    #[error("the condition {expression:?} cannot be evaluated")]
    When {
        /// The expression.
        expression: String,
        /// What the template engine says.
        #[source]
        source: Box<JinjaError>,
    },
    /// A project includes itself without end.
    #[error("the project includes itself: {}", chain.join(" → "))]
    Cycle {
        /// The directories from the root to the repetition.
        chain: Vec<String>,
    },
    /// Includes are nested too deeply.
    #[error("includes are nested more than {limit} deep: … → {}", chain.join(" → "))]
    TooDeep {
        /// The limit.
        limit: usize,
        /// The innermost files.
        chain: Vec<String>,
    },
    /// The includes multiply.
    #[error("the includes add up to more than {limit} projects")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Variables cannot be loaded.
    #[error("variables cannot be loaded")]
    Vars(#[source] Box<VarsError>),
    /// The arguments of a library are not right.
    #[error("{}", .0.message)]
    Arguments(Box<Diagnostic>),
    /// A Git include cannot be had.
    #[error("{}", diagnostic.message)]
    Git {
        /// What the Git source says.
        diagnostic: Box<Diagnostic>,
    },
    /// Something that comes later.
    #[error("{what} are not supported yet")]
    NotSupported {
        /// What.
        what: &'static str,
    },
    /// The run was interrupted.
    #[error("loading the project was interrupted")]
    Cancelled,
}

/// A deployment project that cannot be loaded: what is wrong, and where.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct LoadError {
    #[source]
    problem: Box<LoadProblem>,
    place: Option<Place>,
}

impl LoadError {
    pub(super) fn at(problem: impl Into<LoadProblem>, place: Place) -> Self {
        Self { problem: Box::new(problem.into()), place: Some(place) }
    }

    /// What is wrong.
    pub fn problem(&self) -> &LoadProblem {
        &self.problem
    }
}

impl<P: Into<LoadProblem>> From<P> for LoadError {
    fn from(problem: P) -> Self {
        Self { problem: Box::new(problem.into()), place: None }
    }
}

impl From<VarsError> for LoadProblem {
    fn from(error: VarsError) -> Self {
        Self::Vars(Box::new(error))
    }
}

impl LoadProblem {
    /// Arguments of a library that are not right.
    pub(super) fn arguments(error: &ArgsError) -> Self {
        let mut diagnostic = error.describe();
        if let (ArgsError::Required { .. }, Some(hint)) = (error, diagnostic.hints.first_mut()) {
            "give it in `args` of the item that includes the library".clone_into(hint);
        }
        Self::Arguments(Box::new(diagnostic))
    }
}

impl Describe for LoadProblem {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Template { file, source } => file.describe(source),
            Self::Yaml { file, source } => file.complete(source.describe()),
            Self::Rule(violation) => plain().with_expected(&violation.expected),
            Self::NotText { path, at } => {
                plain().with_location(SourceLocation::new(path, at.line, at.column))
            }
            Self::RootWhen => plain().with_hint("use `when` on items, or in included projects"),
            Self::NoDeploymentFile { has_kustomization: true, .. } => {
                plain().with_hint("it has a kustomization; use `path` instead of `include`")
            }
            Self::NoDeploymentFile { .. } => {
                plain().with_expected("deployment.yaml or deployment.yml")
            }
            Self::When { source, .. } => {
                // The place is that of the field; the engine's own would be inside of the expression.
                let mut diagnostic = plain();
                diagnostic.causes.push(source.message.clone());
                diagnostic
            }
            Self::Cycle { .. } => plain()
                .with_hint("give one of the includes a `when` that becomes false, or remove it"),
            Self::Vars(source) => source.describe(),
            Self::Arguments(diagnostic) | Self::Git { diagnostic } => (**diagnostic).clone(),
            Self::Cancelled => Diagnostic::new(Class::Cancelled, self.to_string()),
            _ => plain(),
        }
    }
}

impl Describe for LoadError {
    fn describe(&self) -> Diagnostic {
        let (diagnostic, field) = match &*self.problem {
            LoadProblem::Vars(error) => error.describe_entry(),
            problem => (problem.describe(), crate::diagnostic::FieldPath::root()),
        };
        match &self.place {
            Some(place) => place.below(&field).complete(diagnostic),
            None => diagnostic,
        }
    }
}
