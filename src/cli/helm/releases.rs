//! The Helm releases of a project, for commands that look after their charts.

#![expect(clippy::disallowed_methods, reason = "these commands change files of the user's project")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    cli::environment::{Environment, read_file},
    diagnostic::{Class, Describe, Diagnostic, FieldPath, Position, SourceLocation},
    helm::{Origin, PULLED_DIR, Version},
    schema::{HelmChart, HelmChartFile},
    yaml::{self, Document, Schema},
};

/// A `helm-chart.yaml` whose chart is not local.
pub(in crate::cli) struct Release {
    /// The file.
    pub(in crate::cli) file: PathBuf,
    /// Its directory, relative to the project's.
    pub(in crate::cli) dir: String,
    /// What it says.
    pub(in crate::cli) chart: HelmChart,
    /// Where the chart comes from.
    pub(in crate::cli) origin: Origin,
    /// Which version.
    pub(in crate::cli) version: Version,
    document: Document,
    text: String,
}

/// The root of a project that the user names, which has a `.kluctl.yaml` or a `.kluctl-library.yaml`.
///
/// # Errors
/// When it is none.
pub(in crate::cli) fn project_root(
    dir: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf, Diagnostic> {
    let given = dir.unwrap_or(Path::new("."));
    let fail = |what: &str| {
        Diagnostic::new(Class::Project, format!("project directory {} {what}", given.display()))
    };
    let root = environment.path(given).canonicalize().map_err(|_| fail("does not exist"))?;
    let names = [".kluctl.yaml", ".kluctl.yml", ".kluctl-library.yaml", ".kluctl-library.yml"];
    if names.iter().any(|name| root.join(name).is_file()) {
        return Ok(root);
    }
    Err(fail("has neither .kluctl.yaml nor .kluctl-library.yaml")
        .with_hint("charts are kept at the root of a project"))
}

/// All releases below a directory, by path. Files are read as they are, without rendering.
///
/// # Errors
/// The problems of all files.
pub(in crate::cli) fn find(root: &Path) -> Result<Vec<Release>, Vec<Diagnostic>> {
    let mut files = Vec::new();
    walk(root, 0, &mut files).map_err(|error| vec![error])?;
    files.sort();
    let (mut releases, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        match Release::read(root, &file) {
            Ok(release) => releases.extend(release),
            Err(errors) => problems.extend(errors),
        }
    }
    if problems.is_empty() { Ok(releases) } else { Err(problems) }
}

fn walk(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    let fail = |error: std::io::Error| {
        Diagnostic::new(Class::Project, format!("{} cannot be listed: {error}", dir.display()))
    };
    // Links are not followed, so this only bounds what nobody has.
    if depth > 64 {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() && name != ".git" && name != PULLED_DIR {
            walk(&entry.path(), depth + 1, files)?;
        } else if !kind.is_dir() && (name == "helm-chart.yaml" || name == "helm-chart.yml") {
            files.push(entry.path());
        }
    }
    Ok(())
}

impl Release {
    /// A release; `None` when its chart is local.
    fn read(root: &Path, file: &Path) -> Result<Option<Self>, Vec<Diagnostic>> {
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let one = |diagnostic: Diagnostic| vec![diagnostic];
        let bytes = read_file(file).map_err(one)?;
        let text = String::from_utf8(bytes).map_err(|_| {
            one(Diagnostic::new(Class::Project, format!("{shown} is no UTF-8 text")))
        })?;
        let document = yaml::parse_document(&shown, text.as_bytes(), Schema::Config)
            .map_err(|error| one(unrendered(error.describe())))?;
        let parsed: HelmChartFile = yaml::from_document(&shown, &document)
            .map_err(|error| one(unrendered(error.describe())))?;
        let place = |field: &FieldPath| SourceLocation {
            file: shown.clone(),
            position: document.positions.of(field),
        };
        let broken: Vec<Diagnostic> = parsed
            .violations()
            .into_iter()
            .map(|violation| {
                Diagnostic::new(Class::Project, violation.message)
                    .with_location(place(&violation.path))
                    .with_field(violation.path.to_string())
                    .with_expected(violation.expected)
            })
            .collect();
        if !broken.is_empty() {
            return Err(broken);
        }
        let chart = parsed.helm_chart;
        let root_field = FieldPath::root().child("helmChart");
        let origin = Origin::of(&chart)
            .map_err(|error| one(unrendered(error.describe().with_location(place(&root_field)))))?;
        if matches!(origin, Origin::Local { .. }) {
            return Ok(None);
        }
        let version = Origin::version(&chart);
        if format!("{origin} {version}").contains("{{") {
            let message = format!("{origin} {version} is a template, which is not rendered here");
            return Err(one(Diagnostic::new(Class::Project, message)
                .with_location(place(&root_field))
                .with_hint("write it out, or set `skipPrePull: true` and `skipUpdate: true`")));
        }
        let dir = file.parent().and_then(|dir| dir.strip_prefix(root).ok());
        let dir = dir.unwrap_or(Path::new("")).display().to_string();
        let dir = if dir.is_empty() { ".".to_owned() } else { dir };
        Ok(Some(Self { file: file.to_owned(), dir, chart, origin, version, document, text }))
    }

    /// The text of the file with another version, everything else as it was.
    pub(in crate::cli) fn with_version(&self, version: &str) -> String {
        let chart = FieldPath::root().child("helmChart");
        let (field, pointer, former) = match &self.version {
            Version::Chart(former) => {
                (chart.child("chartVersion"), "/helmChart/chartVersion", former.clone())
            }
            Version::Git(reference) => {
                let tag = reference.as_ref().and_then(|reference| reference.tag.clone());
                let field = chart.child("git").child("ref").child("tag");
                (field, "/helmChart/git/ref/tag", tag.unwrap_or_default())
            }
        };
        let mut wanted = self.document.value.clone();
        if let Some(value) = wanted.pointer_mut(pointer) {
            *value = version.into();
        }
        let position = self.document.positions.of(&field);
        for written in [version.to_owned(), format!("'{version}'")] {
            let replaced =
                position.and_then(|at| replace_scalar(&self.text, at, &former, &written));
            let Some(text) = replaced else { continue };
            let parsed = yaml::parse_document("", text.as_bytes(), Schema::Config);
            if parsed.is_ok_and(|document| document.value == wanted) {
                return text;
            }
        }
        // Written in a way that cannot be followed, such as with an alias.
        yaml::emit(&wanted)
    }
}

fn unrendered(diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.with_hint("this command reads the file as it is, without rendering it as a template")
}

/// Puts another text in place of the scalar of the entry at `at`, with its quotes if it has any.
fn replace_scalar(text: &str, at: Position, former: &str, new: &str) -> Option<String> {
    let line_start: usize = text.split_inclusive('\n').take(at.line - 1).map(str::len).sum();
    let line = &text[line_start..];
    let column = line.char_indices().nth(at.column - 1)?.0;
    let start = line_start + column;
    // The place of an entry is that of its key.
    let key = text[start..].find(':')? + 1;
    let value = &text[start + key..];
    let start = start + key + (value.len() - value.trim_start().len());
    let rest = &text[start..];
    let candidates = [format!("\"{former}\""), format!("'{former}'"), former.to_owned()];
    let found = candidates.into_iter().find(|candidate| rest.starts_with(candidate.as_str()))?;
    let quote =
        found.chars().next().filter(|c| matches!(c, '"' | '\'') && found.len() > former.len());
    let new = match quote {
        Some(quote) => format!("{quote}{}{quote}", new.trim_matches('\'')),
        None => new.to_owned(),
    };
    Some(format!("{}{new}{}", &text[..start], &rest[found.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    const CHART: &str = "repo: https://h\n  chartName: web\n  releaseName: r\n  chartVersion";

    #[test]
    fn releases_are_found_everywhere_but_among_pulled_charts() {
        let chart = format!("helmChart:\n  {CHART}: 1.0.0\n");
        let local = "helmChart: {path: ../c, releaseName: r}\n";
        let dir = project(&[
            ("a/b/helm-chart.yaml", &chart),
            ("helm-chart.yml", &chart),
            ("local/helm-chart.yaml", local),
            (".helm-charts/x/helm-chart.yaml", "["),
            (".git/helm-chart.yaml", "["),
        ]);
        let dirs: Vec<String> = find(dir.path()).unwrap().into_iter().map(|r| r.dir).collect();
        assert_eq!(dirs, ["a/b", "."]);
    }

    #[test]
    fn problems_of_all_files_are_told() {
        let template = format!("helmChart:\n  {CHART}: '{{{{ args.version }}}}'\n");
        let dir = project(&[
            ("a/helm-chart.yaml", "helmChart: {repo: https://h}\n"),
            ("b/helm-chart.yaml", &template),
            ("c/helm-chart.yaml", "helmChart: {% if x %}\n"),
        ]);
        let problems: Vec<String> =
            find(dir.path()).err().unwrap().iter().map(ToString::to_string).collect();
        let text = problems.join("\n");
        for words in [
            "a/helm-chart.yaml",
            "b/helm-chart.yaml:1:1: web of https://h/ {{ args.version }} is a template",
            "c/helm-chart.yaml",
            "without rendering",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn versions_are_replaced_in_place() {
        let git = "helmChart:\n  releaseName: r # keep\n  git: {url: 'https://h/r', ref: {tag: v1.0.0}}\n";
        for (before, version, after) in [
            (
                format!("# top\nhelmChart:\n  {CHART}: 1.0.0 # pinned\n"),
                "1.2.0",
                format!("# top\nhelmChart:\n  {CHART}: 1.2.0 # pinned\n"),
            ),
            (
                format!("helmChart:\n  {CHART}: \"1.0.0\"\n"),
                "1.2.0",
                format!("helmChart:\n  {CHART}: \"1.2.0\"\n"),
            ),
            (
                format!("helmChart:\n  {CHART}: '1.0.0'\n"),
                "1.10",
                format!("helmChart:\n  {CHART}: '1.10'\n"),
            ),
            (
                format!("helmChart:\n  {CHART}: 1.0.0\n"),
                "1.10",
                format!("helmChart:\n  {CHART}: '1.10'\n"),
            ),
            (git.to_owned(), "v1.1.0", git.replace("v1.0.0", "v1.1.0")),
        ] {
            let dir = project(&[("helm-chart.yaml", &before)]);
            let releases = find(dir.path()).unwrap();
            assert_eq!(releases[0].with_version(version), after);
        }
    }
}
