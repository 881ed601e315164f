//! `kluctl lint`

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Environment, Failure, Report, flags::DeploymentFlags, output, session},
    engine::{Finding, Severity},
};

/// Checks a project: tells all that is wrong, for every target, without a cluster.
///
/// With --target, only that target is checked. Variables that come from the cluster, and what needs them, are left out with a
/// warning. Exits with 1 when there are errors.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Lint {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,

    /// Write the findings as `text` or `json`, to standard output or to a file; may be given several times
    #[arg(
        long,
        short,
        value_name = "FORMAT[=FILE]",
        default_value = "text",
        value_parser = format,
        help_heading = "Misc arguments"
    )]
    output_format: Vec<(Format, PathBuf)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
}

fn format(text: &str) -> Result<(Format, PathBuf), String> {
    let (format, file) = text.split_once('=').unwrap_or((text, "-"));
    match format {
        "text" => Ok((Format::Text, file.into())),
        "json" => Ok((Format::Json, file.into())),
        other => Err(format!("unknown format `{other}`, expected text or json")),
    }
}

pub(super) async fn run(
    command: Lint,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Lint { deployment, output_format } = command;
    let request = session::request(&deployment, None, environment, report)?;
    let externals = session::externals(&deployment, environment, None, &cancel).await?;
    let findings = session::engine().lint(&request, &externals, &cancel).await?;
    for (format, file) in &output_format {
        let text = match format {
            Format::Text => text(&findings, report),
            Format::Json => format!("{:#}\n", json(&findings)),
        };
        output::to_files(environment, std::slice::from_ref(file), &text)?;
    }
    let count = |severity| findings.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    output::to_stderr(&format!("{errors} errors, {warnings} warnings\n"));
    if errors == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// The findings for people.
pub(in crate::cli) fn text(findings: &[Finding], report: Report) -> String {
    let shown = |found: &Finding| {
        let mut diagnostic = found.diagnostic.clone();
        if !found.targets.is_empty() {
            diagnostic.hints.insert(0, format!("in target {}", found.targets.join(", ")));
        }
        match found.severity {
            Severity::Error => report.errors(&[diagnostic]),
            Severity::Warning => report.warnings(&[diagnostic]),
        }
    };
    findings.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// The findings for programs: a list of mappings, in which what is not known is left out.
pub(in crate::cli) fn json(findings: &[Finding]) -> Value {
    let shown = |found: &Finding| {
        let diagnostic = &found.diagnostic;
        let position = diagnostic.at.as_ref().and_then(|at| at.position);
        let mut value = json!({
            "severity": match found.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            "message": diagnostic.message,
            "file": diagnostic.at.as_ref().map(|at| &at.file),
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
            "field": diagnostic.field,
            "object": diagnostic.object,
            "expected": diagnostic.expected,
            "causes": diagnostic.causes,
            "hints": diagnostic.hints,
            "targets": found.targets,
        });
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| {
                !field.is_null() && field.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        value
    };
    findings.iter().map(shown).collect()
}
