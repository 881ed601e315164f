use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    schema::Violation,
    tree::TreeError,
    yaml::{self, Problem, YamlError},
};

/// Fields that `.kluctl.yaml` had in former versions of Kluctl.
const FORMER_FIELDS: [&str; 4] = ["deployment", "clusters", "secretsConfig", "sealedSecrets"];

/// Why a project or its target cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The configuration file cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The configuration file is not valid.
    #[error("the project configuration is not valid")]
    Config(Vec<YamlError>),
    /// The arguments given do not fit.
    #[error("{}", .0.message)]
    Arguments(Box<Diagnostic>),
    /// A template in a target cannot be rendered.
    #[error("{}", .0.message)]
    Template(Box<Diagnostic>),
    /// A target breaks a rule after rendering.
    #[error("{}", .diagnostic.message)]
    Rule {
        /// What, and where in the configuration.
        diagnostic: Box<Diagnostic>,
    },
    /// No target of this name.
    #[error("target {name} does not exist in the project")]
    UnknownTarget {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
        /// The configuration file, when the project has one.
        file: Option<String>,
    },
    /// The target exists but cannot be used.
    #[error("target {name} cannot be used")]
    Target {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<ProjectError>,
    },
    /// The project has targets and none was selected.
    #[error("a target must be selected")]
    NoTargetSelected {
        /// The names there are.
        known: Vec<String>,
    },
}

impl From<YamlError> for ProjectError {
    fn from(error: YamlError) -> Self {
        Self::Config(vec![error])
    }
}

impl ProjectError {
    /// All problems; never empty.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::Config(errors) => errors.iter().map(describe_config).collect(),
            _ => vec![self.describe()],
        }
    }

    pub(super) fn rule(
        violation: Violation,
        diagnostic: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Self {
        let described = Diagnostic::new(Class::Project, violation.message)
            .with_field(violation.path.to_string())
            .with_expected(violation.expected);
        Self::Rule { diagnostic: Box::new(diagnostic(described)) }
    }
}

impl Describe for ProjectError {
    fn describe(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Tree(_) => diagnostic,
            Self::Config(errors) => errors.first().map_or(diagnostic, describe_config),
            Self::Arguments(inner) | Self::Template(inner) | Self::Rule { diagnostic: inner } => {
                (**inner).clone()
            }
            Self::UnknownTarget { name, known, file } => {
                let near = yaml::closest(name, known.iter().map(String::as_str));
                let near = near.map(|near| format!("did you mean `{near}`?"));
                let others = match file {
                    _ if !known.is_empty() => format!("targets: {}", known.join(", ")),
                    Some(file) => format!("{file} defines no targets; leave the target out"),
                    None => "the project has no .kluctl.yaml; leave the target out".to_owned(),
                };
                let mut diagnostic = diagnostic;
                diagnostic.hints = near.into_iter().chain([others]).collect();
                diagnostic
            }
            Self::Target { name, source } => {
                let inner = source.describe();
                let message = format!("target {name} cannot be used: {}", inner.message);
                Diagnostic { message, ..inner }
            }
            Self::NoTargetSelected { known } if known.is_empty() => {
                diagnostic.with_hint("none of the project's targets has a name")
            }
            Self::NoTargetSelected { known } => {
                diagnostic.with_hint(format!("targets: {}", known.join(", ")))
            }
        }
    }
}

fn describe_config(error: &YamlError) -> Diagnostic {
    let mut diagnostic = error.describe();
    if let Problem::UnknownField { name, .. } = error.problem()
        && FORMER_FIELDS.contains(&name.as_str())
    {
        diagnostic.hints = vec!["a field of former Kluctl versions; remove it".to_owned()];
    }
    diagnostic
}
