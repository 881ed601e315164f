use crate::{
    diagnostic::{Class, Describe, Diagnostic, SourceLocation},
    tree::TreeError,
    yaml::YamlError,
};

use super::MINIMUM_VERSION;

/// Why a chart cannot be used. Messages hold no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HelmError {
    /// A file of the chart, or beside it, cannot be read.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// A URL cannot be used.
    #[error("{url}: {reason}")]
    Url {
        /// The URL without credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A local chart lies outside of the project's source.
    #[error("chart {path} is outside of the project")]
    Outside {
        /// The path as written.
        path: String,
    },
    /// There is no chart in the directory.
    #[error("there is no chart in {path}, it has no Chart.yaml")]
    NoChart {
        /// The directory in the source.
        path: String,
    },
    /// The chart's own description is wrong.
    #[error("{path}: {problem}")]
    Metadata {
        /// Path of the `Chart.yaml`.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The chart is of a type that cannot be rendered.
    #[error("chart {chart} is of type {kind}, which cannot be installed")]
    NotInstallable {
        /// The chart.
        chart: String,
        /// Its type.
        kind: String,
    },
    /// The chart is not among the pulled ones.
    #[error("chart {chart} in version {version} was not pulled, {expected} does not exist")]
    NotPulled {
        /// The chart.
        chart: String,
        /// The version asked for.
        version: String,
        /// Where it should be.
        expected: String,
    },
    /// The pulled chart has another version.
    #[error("chart {chart} in {path} has version {found}, not {wanted}")]
    OtherVersion {
        /// The chart.
        chart: String,
        /// The directory in the source.
        path: String,
        /// The version in it.
        found: String,
        /// The version asked for.
        wanted: String,
    },
    /// A chart is larger than allowed.
    #[error("chart {chart} has more than {limit}")]
    TooLarge {
        /// The chart.
        chart: String,
        /// The limit in words.
        limit: &'static str,
    },
    /// The `helm` program is not there.
    #[error("{message}")]
    NoProgram {
        /// Where it was looked for.
        message: String,
    },
    /// The `helm` program cannot be used.
    #[error("{program} is Helm {found}, at least {MINIMUM_VERSION} is needed")]
    OldProgram {
        /// Path of the program.
        program: String,
        /// Its version.
        found: String,
    },
    /// The `helm` program could not be run to its end.
    #[error("{program} cannot be run: {message}")]
    Program {
        /// Path of the program.
        program: String,
        /// What the system says.
        message: String,
    },
    /// Helm refuses the chart or its values.
    #[error("chart {chart} cannot be rendered for release {release}")]
    Render {
        /// The chart.
        chart: String,
        /// The release.
        release: String,
        /// What Helm says.
        message: String,
        /// The place in the chart that it names: a path below the chart's directory, line and column.
        at: Option<SourceLocation>,
    },
    /// What Helm rendered is no list of objects.
    #[error("chart {chart} renders {problem}{}", of_template(.template.as_deref()))]
    Output {
        /// The chart.
        chart: String,
        /// The template that it comes from.
        template: Option<String>,
        /// What is wrong.
        problem: String,
        /// What the parser says.
        #[source]
        source: Option<YamlError>,
    },
    /// The run was cancelled.
    #[error("the run was interrupted")]
    Cancelled,
}

fn of_template(template: Option<&str>) -> String {
    template.map_or_else(String::new, |template| format!(" from {template}"))
}

impl Describe for HelmError {
    fn describe(&self) -> Diagnostic {
        let of = |class| Diagnostic::new(class, self.to_string());
        let plain = || of(Class::Project);
        match self {
            Self::Tree(TreeError::Escapes { .. }) => {
                plain().with_hint("charts and values have to be in the same source as the project")
            }
            Self::Outside { .. } => {
                plain().with_hint("move the chart into the project, or refer to it with `git`")
            }
            Self::NoChart { .. } => {
                plain().with_hint("`path` is relative to the directory of the helm-chart.yaml")
            }
            Self::NotInstallable { .. } => {
                plain().with_hint("library charts are used as dependencies of others")
            }
            Self::NotPulled { .. } => plain()
                .with_hint("run `kluctl helm-pull` and add .helm-charts to the source")
                .with_hint("or set `skipPrePull: true`"),
            Self::OtherVersion { .. } => plain().with_hint("run `kluctl helm-pull`"),
            Self::NoProgram { .. } => of(Class::Access).with_hint(
                "install Helm from https://helm.sh, or name the program with --helm-binary",
            ),
            Self::OldProgram { .. } => {
                of(Class::Access).with_hint("install a newer Helm, or name one with --helm-binary")
            }
            Self::Program { .. } => of(Class::Access),
            Self::Render { message, at, .. } => {
                let mut diagnostic = plain();
                diagnostic.causes.push(message.clone());
                match at {
                    Some(at) => diagnostic.with_location(at.clone()),
                    None => diagnostic,
                }
            }
            Self::Output { source, .. } => {
                let mut diagnostic = plain();
                // Its place is in a text that nobody has.
                diagnostic
                    .causes
                    .extend(source.as_ref().map(|source| source.problem().to_string()));
                diagnostic
            }
            Self::Cancelled => of(Class::Cancelled),
            Self::Tree(_) | Self::Url { .. } | Self::Metadata { .. } | Self::TooLarge { .. } => {
                plain()
            }
        }
    }
}
