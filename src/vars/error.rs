use crate::{
    diagnostic::{Class, Describe, Diagnostic, FieldPath, Position, SourceLocation},
    jinja::JinjaError,
    object::JsonPathError,
    yaml::YamlError,
};

use super::RenderedFile;

/// Why a vars entry could not be loaded. The place of the entry is added by whoever knows the file it is in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VarsError {
    /// A string of the entry could not be rendered.
    #[error("the vars entry cannot be rendered")]
    Entry {
        /// The string, relative to the entry.
        field: FieldPath,
        /// What the template engine says.
        #[source]
        source: JinjaError,
    },
    /// After rendering, the entry is not valid any more.
    #[error("the rendered vars entry is not valid")]
    RenderedEntry(#[source] YamlError),
    /// The condition could not be evaluated.
    #[error("the condition cannot be evaluated")]
    When(#[source] JinjaError),
    /// The file is nowhere in the directories that are searched.
    #[error("vars file {path} does not exist")]
    FileNotFound {
        /// As written.
        path: String,
        /// Directories that were searched.
        searched: Vec<String>,
        /// The field that names the file, relative to the entry.
        field: FieldPath,
    },
    /// The file cannot be read.
    #[error("vars file cannot be read")]
    FileUnreadable(#[from] crate::tree::TreeError),
    /// The file is not UTF-8.
    #[error("vars file {path} is not UTF-8 text")]
    NotText {
        /// The file.
        path: String,
        /// Where the first byte is that is no text.
        at: Position,
    },
    /// The file's template failed.
    #[error("vars file {} cannot be rendered", file.path())]
    FileTemplate {
        /// The file.
        file: Box<RenderedFile>,
        /// What the template engine says.
        #[source]
        source: JinjaError,
    },
    /// The file is no YAML.
    #[error("vars file {} is not valid", file.path())]
    FileYaml {
        /// The file.
        file: Box<RenderedFile>,
        /// What the parser says.
        #[source]
        source: YamlError,
    },
    /// The file is encrypted.
    #[error("vars file {path} is encrypted with SOPS, which is not supported yet")]
    Encrypted {
        /// The file.
        path: String,
    },
    /// The variables are no mapping.
    #[error("{what} holds {found}")]
    NotAMapping {
        /// File or object.
        what: String,
        /// The type found.
        found: &'static str,
        /// Whether a `targetPath` would make it acceptable.
        target_path_helps: bool,
    },
    /// A `targetPath` that does not name one field.
    #[error("targetPath {path:?} does not name one field")]
    TargetPath {
        /// As written.
        path: String,
        /// What the parser says, when it is no path at all.
        #[source]
        source: Option<JsonPathError>,
    },
    /// A leaf of `systemEnvVars` is not a name.
    #[error("the name of an environment variable must be a string, not {found}")]
    EnvironmentName {
        /// Path of the leaf below `systemEnvVars`.
        field: FieldPath,
        /// Its type.
        found: &'static str,
    },
    /// The environment variable is not set and has no default.
    #[error("environment variable {name} is not set")]
    EnvironmentMissing {
        /// Its name.
        name: String,
        /// Path of the leaf below `systemEnvVars`.
        field: FieldPath,
    },
    /// The value is no YAML. It may be secret and is not shown.
    #[error("the value of environment variable {name} is not valid YAML")]
    EnvironmentValue {
        /// Its name.
        name: String,
        /// Path of the leaf below `systemEnvVars`.
        field: FieldPath,
    },
    /// There is no access to a cluster.
    #[error("{kind} needs access to the target cluster")]
    NoCluster {
        /// The source field.
        kind: &'static str,
    },
    /// What lies outside of the project could not be asked.
    #[error("{}", diagnostic.message)]
    Outside {
        /// What whoever asked says.
        diagnostic: Box<Diagnostic>,
    },
    /// No such object.
    #[error("{object} does not exist in the target cluster")]
    ObjectNotFound {
        /// `namespace/Kind/name`, or with a label selector in place of the name.
        object: String,
    },
    /// Labels match more than one object.
    #[error("{object} matches {count} objects")]
    Ambiguous {
        /// `namespace/Kind` and the label selector.
        object: String,
        /// How many.
        count: usize,
    },
    /// The object has no such key.
    #[error("{object} has no key {key:?}")]
    KeyNotFound {
        /// `namespace/Kind/name`.
        object: String,
        /// The key.
        key: String,
    },
    /// A text cannot be used. It may be secret, so that the problem tells no more of it than the source allows.
    #[error("{what} {problem}")]
    Content {
        /// Where the text is from.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nothing at a JSON path.
    #[error("{what} does not exist")]
    FieldNotFound {
        /// The path, and where it was looked up.
        what: String,
    },
    /// A JSON path that is none.
    #[error("{field} is not a JSON path")]
    JsonPath {
        /// The field of the entry that holds the path.
        field: &'static str,
        /// What the parser says.
        #[source]
        source: JsonPathError,
    },
    /// A pattern that is none.
    #[error("pattern {pattern:?} cannot be used: {problem}")]
    Pattern {
        /// The field of the entry that holds the pattern.
        field: &'static str,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
    /// No group serves the kind, or several do.
    #[error("{}", kind_message(kind, served))]
    KindNotUnique {
        /// The kind.
        kind: String,
        /// The API versions that serve it.
        served: Vec<String>,
    },
    /// A repository without a default branch.
    #[error("{url} has no default branch")]
    NoDefaultBranch {
        /// The repository.
        url: String,
    },
    /// More than may be read.
    #[error("{what} exceeds {limit}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// The server refuses.
    #[error("{url} answers with status {status}")]
    HttpStatus {
        /// The URL, without credentials and query.
        url: String,
        /// The status code.
        status: u16,
    },
    /// No such secret.
    #[error("{what} does not exist")]
    SecretNotFound {
        /// The secret and its store.
        what: String,
    },
    /// The front offers no such source.
    #[error("vars from {kind} are not available here")]
    NotAvailable {
        /// The source field.
        kind: &'static str,
    },
    /// An entry without a source, which the check of the file would have found.
    #[error("the entry has no source")]
    NoSource,
}

fn kind_message(kind: &str, served: &[String]) -> String {
    match served {
        [] => format!("the target cluster serves no kind {kind}"),
        served => format!("kind {kind} is served by {}", served.join(" and ")),
    }
}

impl VarsError {
    pub(super) fn outside(diagnostic: Diagnostic) -> Self {
        Self::Outside { diagnostic: Box::new(diagnostic) }
    }

    /// The field at fault, relative to the vars entry.
    fn field(&self) -> FieldPath {
        let below = |first: &str, field: &FieldPath| {
            let mut path = FieldPath::root().child(first);
            path.0.extend(field.0.iter().cloned());
            path
        };
        match self {
            Self::Entry { field, .. } | Self::FileNotFound { field, .. } => field.clone(),
            Self::EnvironmentName { field, .. }
            | Self::EnvironmentMissing { field, .. }
            | Self::EnvironmentValue { field, .. } => below("systemEnvVars", field),
            Self::When(_) => FieldPath::root().child("when"),
            Self::TargetPath { .. } => FieldPath::root().child("targetPath"),
            Self::NotAvailable { kind } | Self::NoCluster { kind } => {
                FieldPath::root().child(*kind)
            }
            Self::JsonPath { field, .. } | Self::Pattern { field, .. } => {
                field.split('.').collect()
            }
            Self::KindNotUnique { .. } => FieldPath::root().child("clusterObject").child("kind"),
            Self::HttpStatus { .. } => FieldPath::root().child("http"),
            _ => FieldPath::root(),
        }
    }

    /// The error as a diagnostic, with the field relative to the vars entry apart. A diagnostic that already has a place is
    /// about another file than the one with the entry.
    pub(crate) fn describe_entry(&self) -> (Diagnostic, FieldPath) {
        (self.describe(), self.field())
    }
}

impl Describe for VarsError {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Entry { source, .. } => {
                let mut diagnostic = Diagnostic::new(Class::Project, source.message.clone());
                if !source.excerpt.is_empty() {
                    diagnostic.causes.push(format!("in `{}`", source.excerpt));
                }
                diagnostic
            }
            Self::When(source) => Diagnostic::new(Class::Project, source.message.clone()),
            Self::RenderedEntry(source) => plain().with_cause(source),
            Self::FileTemplate { file, source } => file.describe(source),
            Self::FileYaml { file, source } => file.complete(source.describe()),
            Self::FileNotFound { searched, .. } => {
                let shown =
                    |dir: &String| if dir.is_empty() { ".".to_owned() } else { dir.clone() };
                let searched: Vec<String> = searched.iter().map(shown).collect();
                plain()
                    .with_hint(format!("searched in {}", searched.join(", ")))
                    .with_hint("set ignoreMissing: true if it may be missing")
            }
            Self::NotText { path, at } => {
                plain().with_location(SourceLocation::new(path, at.line, at.column))
            }
            Self::FileUnreadable(source) => plain().with_cause(source),
            Self::NotAMapping { target_path_helps, .. } => {
                let expected = "a mapping of variables";
                match target_path_helps {
                    true => plain().with_expected(expected).with_hint("or give a targetPath"),
                    false => plain().with_expected(expected),
                }
            }
            Self::TargetPath { source, .. } => {
                let diagnostic = plain().with_expected("a path such as `a.b`");
                match source {
                    Some(source) => diagnostic.with_cause(source),
                    None => diagnostic,
                }
            }
            Self::EnvironmentName { .. } => plain().with_expected("NAME or NAME:default"),
            Self::EnvironmentMissing { name, field } => plain().with_hint(format!(
                "set it, give a default (`{field}: {name}:default`), or set ignoreMissing: true"
            )),
            Self::NoCluster { .. } => {
                plain().with_hint("there is no kubeconfig, or offline mode is on")
            }
            Self::NotAvailable { .. } => plain().with_hint(
                "this build, or the place where it runs, has no access to this kind of source",
            ),
            Self::Outside { diagnostic } => (**diagnostic).clone(),
            Self::JsonPath { source, .. } => plain().with_cause(source),
            Self::KindNotUnique { served, .. } if !served.is_empty() => {
                plain().with_hint("say which one with `apiVersion`")
            }
            Self::HttpStatus { status: 401 | 403, .. } => {
                plain().with_hint("give what the server asks for in `headers`")
            }
            Self::ObjectNotFound { .. }
            | Self::KeyNotFound { .. }
            | Self::FieldNotFound { .. }
            | Self::SecretNotFound { .. }
            | Self::HttpStatus { status: 404, .. } => {
                plain().with_hint("set ignoreMissing: true if it may be missing")
            }
            Self::Ambiguous { .. } => {
                plain().with_hint("use labels that only one object has, or its name")
            }
            _ => plain(),
        }
    }
}
