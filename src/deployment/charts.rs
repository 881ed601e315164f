//! The Helm charts of an item: which, with which values, and where their manifests go (kluctl 2.28).

use std::sync::Arc;

use super::{config_file, item::Item};
use crate::{
    diagnostic::{Class, Describe, Diagnostic, FieldPath, SourceLocation},
    helm::{self, Found, HelmError, Values},
    schema::{HelmChart, HelmChartFile, Violation},
    tree::{self, MemoryTree, SourceTree, TreeError},
    vars::is_encrypted,
    yaml::{self, Positions, Schema, YamlError},
};

/// File that manifests go to when a chart names none.
const OUTPUT: &str = "helm-rendered.yaml";

/// A Helm chart that an item wants rendered.
#[derive(Debug, Clone)]
pub struct ChartUse {
    /// The `helm-chart.yaml`, in the source.
    pub file: String,
    /// What it says.
    pub chart: HelmChart,
    /// Where the chart is.
    pub found: Found,
    /// The rendered values beside it.
    pub values: Option<Values>,
    /// Where the manifests go, in the source.
    pub output: String,
    positions: Positions,
}

/// What is wrong with a chart.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ChartProblem {
    /// A file cannot be read.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// The `helm-chart.yaml` is no YAML, or has other fields.
    #[error("is not valid")]
    Yaml(#[source] YamlError),
    /// A rule between its fields is broken.
    #[error("{}", .0.message)]
    Rule(Violation),
    /// The values are encrypted.
    #[error("{path} is encrypted with SOPS, which is not supported yet")]
    Encrypted {
        /// The file.
        path: String,
    },
    /// The kustomization beside the chart does not use what is rendered.
    #[error("{kustomization} does not list {output}, so the chart would be rendered for nothing")]
    NotListed {
        /// The kustomization.
        kustomization: String,
        /// The output as written.
        output: String,
    },
    /// The output would leave the directory.
    #[error("output {output} leads out of the directory of the helm-chart.yaml")]
    Output {
        /// The path as written.
        output: String,
    },
    /// The front has no way to render charts.
    #[error("Helm charts cannot be rendered here")]
    NoHelm,
    /// The chart cannot be found, pulled or rendered.
    #[error(transparent)]
    Helm(#[from] HelmError),
    /// The chart cannot be fetched.
    #[error("{}", .0.message)]
    Fetch(Box<Diagnostic>),
}

/// A chart that cannot be used: which, and why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ChartError {
    /// The `helm-chart.yaml`.
    pub file: String,
    /// What is wrong.
    #[source]
    pub problem: ChartProblem,
    at: SourceLocation,
}

impl ChartUse {
    /// A problem with this chart, at the place in the `helm-chart.yaml` that names what it is about.
    pub fn error(&self, problem: impl Into<ChartProblem>) -> ChartError {
        error(&self.file, Some(&self.positions), problem.into())
    }
}

impl Describe for ChartError {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.problem.to_string());
        let diagnostic = match &self.problem {
            ChartProblem::Yaml(error) => error.describe(),
            ChartProblem::Rule(violation) => plain()
                .with_field(violation.path.to_string())
                .with_expected(violation.expected.clone()),
            ChartProblem::NotListed { output, .. } => {
                plain().with_hint(format!("add {output} to its resources"))
            }
            ChartProblem::Helm(error) => error.describe(),
            ChartProblem::Fetch(diagnostic) => (**diagnostic).clone(),
            ChartProblem::Tree(_)
            | ChartProblem::Encrypted { .. }
            | ChartProblem::Output { .. }
            | ChartProblem::NoHelm => plain(),
        };
        match diagnostic.at {
            Some(_) => diagnostic,
            None => diagnostic.with_location(self.at.clone()),
        }
    }
}

fn error(file: &str, positions: Option<&Positions>, problem: ChartProblem) -> ChartError {
    let root = FieldPath::root().child("helmChart");
    let field = match &problem {
        ChartProblem::Rule(violation) => violation.path.clone(),
        ChartProblem::Output { .. } => root.child("output"),
        ChartProblem::Helm(HelmError::Outside { .. } | HelmError::NoChart { .. }) => {
            root.child("path")
        }
        ChartProblem::Helm(HelmError::OtherVersion { .. } | HelmError::NotPulled { .. }) => {
            root.child("chartVersion")
        }
        _ => root,
    };
    let position = positions.and_then(|positions| positions.of(&field));
    let at = SourceLocation { file: file.to_owned(), position };
    ChartError { file: file.to_owned(), problem, at }
}

/// Reads the `helm-chart.yaml` files among an item's rendered `files`, with their values, and looks for their charts.
///
/// # Errors
/// The problems of all of them.
pub(super) fn read(
    item: &Item,
    files: &MemoryTree,
    chart_files: &[String],
) -> Result<Vec<ChartUse>, Vec<ChartError>> {
    let (mut charts, mut errors) = (Vec::new(), Vec::new());
    for file in chart_files {
        match read_one(item, files, file) {
            Ok(chart) => charts.push(chart),
            Err(problems) => errors.extend(problems),
        }
    }
    if errors.is_empty() { Ok(charts) } else { Err(errors) }
}

fn read_one(item: &Item, files: &MemoryTree, file: &str) -> Result<ChartUse, Vec<ChartError>> {
    let fail = |problem: ChartProblem| vec![error(file, None, problem)];
    let content = files.read(file).map_err(|error| fail(error.into()))?;
    let document = yaml::parse_document(file, &content, Schema::Config)
        .map_err(|error| fail(ChartProblem::Yaml(error)))?;
    let parsed: HelmChartFile =
        yaml::from_document_gathering(file, &document).map_err(|errors| {
            let lift = |source| error(file, None, ChartProblem::Yaml(source));
            errors.into_iter().map(lift).collect::<Vec<_>>()
        })?;
    let positions = document.positions;
    let broken: Vec<ChartError> = parsed
        .violations()
        .into_iter()
        .map(|violation| error(file, Some(&positions), ChartProblem::Rule(violation)))
        .collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    let fail = |problem: ChartProblem| vec![error(file, Some(&positions), problem)];
    let chart = parsed.helm_chart;
    let dir = tree::parent(file);
    let output = output(dir, &chart).map_err(fail)?;
    check_listed(files, dir, &output).map_err(fail)?;
    let values = values(files, dir).map_err(fail)?;
    let source = item.project.templates.tree();
    let item_dir = item.dir.as_deref().unwrap_or_default();
    let found = helm::find(&**source, item_dir, dir, &chart).map_err(|error| fail(error.into()))?;
    Ok(ChartUse { file: file.to_owned(), chart, found, values, output, positions })
}

/// The path of the manifests, which stays in the directory.
fn output(dir: &str, chart: &HelmChart) -> Result<String, ChartProblem> {
    let given = chart.output.as_deref().filter(|output| !output.is_empty()).unwrap_or(OUTPUT);
    match tree::join("", given) {
        Ok(path) if !path.is_empty() => Ok(tree::join(dir, &path)?),
        _ => Err(ChartProblem::Output { output: given.to_owned() }),
    }
}

/// A kustomization that does not use the manifests is most likely a mistake.
fn check_listed(files: &MemoryTree, dir: &str, output: &str) -> Result<(), ChartProblem> {
    let Some(path) = config_file::find(files, dir, "kustomization", ["yml", "yaml"])? else {
        return Ok(());
    };
    // What else is wrong with it is told when it is built.
    let Ok(document) = yaml::parse_document(&path, &files.read(&path)?, Schema::Config) else {
        return Ok(());
    };
    let resources = document.value["resources"].as_array().into_iter().flatten();
    let mut listed = resources.filter_map(|entry| tree::join(dir, entry.as_str()?).ok());
    if listed.any(|entry| entry == output) {
        return Ok(());
    }
    let output = output.strip_prefix(dir).unwrap_or(output).trim_start_matches('/').to_owned();
    Err(ChartProblem::NotListed { kustomization: path, output })
}

/// The values beside a `helm-chart.yaml`.
fn values(files: &MemoryTree, dir: &str) -> Result<Option<Values>, ChartProblem> {
    let Some(path) = config_file::find(files, dir, "helm-values", ["yml", "yaml"])? else {
        return Ok(None);
    };
    let text: Arc<[u8]> = files.read(&path)?;
    if is_encrypted(&path, &text) {
        return Err(ChartProblem::Encrypted { path });
    }
    Ok(Some(Values { text, is_secret: false }))
}
