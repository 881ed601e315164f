//! From the files of an item to rendered files in memory (kluctl 2.28).

use super::{item::Item, template_ignore::TemplateIgnore};
use crate::{
    diagnostic::{Class, Describe, Diagnostic, Position, SourceLocation},
    jinja::JinjaError,
    tree::{self, EntryKind, MemoryTree, SourceTree, TreeError},
    vars::{RenderedFile, is_template},
};

/// How deep directories may be nested; links can make endless ones.
const MAX_DEPTH: usize = 32;

/// Why a file of an item cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A file or directory cannot be read.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// The template failed.
    #[error("{} cannot be rendered", file.path())]
    Template {
        /// The file, not rendered.
        file: Box<RenderedFile>,
        /// What the template engine says.
        #[source]
        source: Box<JinjaError>,
    },
    /// A file looks like a template but is no text.
    #[error("{path} has template markers but is not UTF-8 text")]
    NotText {
        /// The file.
        path: String,
        /// Where the first byte is that is no text.
        at: Position,
    },
    /// Directories are nested too deeply.
    #[error("directories in {path} are nested more than {MAX_DEPTH} deep")]
    TooDeep {
        /// The directory of the item.
        path: String,
    },
}

impl Describe for RenderError {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Tree(_) => plain(),
            Self::Template { file, source } => file.describe(source),
            Self::NotText { path, at } => plain()
                .with_location(SourceLocation::new(path, at.line, at.column))
                .with_hint("list binary files in .templateignore"),
            Self::TooDeep { .. } => plain().with_hint("look for a link that leads upwards"),
        }
    }
}

/// The files of an item after rendering.
#[derive(Default)]
pub(super) struct Rendered {
    /// With the paths of the source.
    pub(super) files: MemoryTree,
    /// Those among them that ask for a Helm chart beside them.
    pub(super) chart_files: Vec<String>,
}

/// Renders all files below the item's directory, into a tree with the paths of the source.
///
/// # Errors
/// The problems of all files.
pub(super) fn render(item: &Item) -> Result<Rendered, Vec<RenderError>> {
    let Some(dir) = &item.dir else { return Ok(Rendered::default()) };
    let templates = item.project.templates.with_first_dir(dir);
    let tree = &**templates.tree();
    let found = Files::below(tree, dir).map_err(|error| vec![error])?;
    let ignore =
        TemplateIgnore::read(tree, dir, &found.dirs).map_err(|error| vec![error.into()])?;
    let mut rendered = MemoryTree::new();
    rendered.insert_directory(dir);
    let (mut errors, mut chart_files) = (Vec::new(), Vec::new());
    for path in &found.paths {
        if is_helm_chart_file(path) && !found.is_in_chart(path) {
            chart_files.push(path.clone());
        }
        let content = match tree.read(path) {
            Ok(content) => content,
            Err(error) => {
                errors.push(error.into());
                continue;
            }
        };
        if !content.contains(&b'{') || found.is_in_chart(path) || ignore.is_ignored(path) {
            rendered.insert(path, content);
            continue;
        }
        let text = match std::str::from_utf8(&content) {
            Ok(text) => text,
            Err(error) => {
                let at = Position::of_byte(&content, error.valid_up_to());
                errors.push(RenderError::NotText { path: path.clone(), at });
                continue;
            }
        };
        debug_assert!(is_template(text));
        match templates.render(path, text, &item.context) {
            Ok(text) => rendered.insert(path, text.into_bytes()),
            Err(error) => errors.push(RenderError::Template {
                file: Box::new(templates.file(path, text, text)),
                source: Box::new(error),
            }),
        }
    }
    if errors.is_empty() { Ok(Rendered { files: rendered, chart_files }) } else { Err(errors) }
}

/// Whether the file asks for a Helm chart to be rendered beside it.
pub(super) fn is_helm_chart_file(path: &str) -> bool {
    let name = tree::file_name(path);
    name.eq_ignore_ascii_case("helm-chart.yaml") || name.eq_ignore_ascii_case("helm-chart.yml")
}

/// The files of an item.
#[derive(Default)]
struct Files {
    paths: Vec<String>,
    dirs: Vec<String>,
    /// Directories of Helm charts below the item's own; their templates are Helm's.
    chart_dirs: Vec<String>,
}

impl Files {
    fn below(tree: &dyn SourceTree, dir: &str) -> Result<Self, RenderError> {
        let mut found = Self::default();
        match found.walk(tree, dir, 0) {
            Err(RenderError::TooDeep { .. }) => Err(RenderError::TooDeep {
                path: if dir.is_empty() { "." } else { dir }.to_owned(),
            }),
            walked => walked.map(|()| found),
        }
    }

    fn walk(&mut self, tree: &dyn SourceTree, dir: &str, depth: usize) -> Result<(), RenderError> {
        if depth > MAX_DEPTH {
            return Err(RenderError::TooDeep { path: dir.to_owned() });
        }
        let entries = tree.list(dir)?;
        let has_chart = entries.iter().any(|entry| is_chart_metadata(&entry.name));
        if depth > 0 && has_chart && !self.is_in_chart(dir) {
            self.chart_dirs.push(dir.to_owned());
        }
        for entry in entries {
            // A repository's own data is no part of a deployment, and can be huge.
            if entry.name == ".git" {
                continue;
            }
            let path = if dir.is_empty() { entry.name } else { format!("{dir}/{}", entry.name) };
            match entry.kind {
                EntryKind::File => self.paths.push(path),
                EntryKind::Directory => {
                    self.dirs.push(path.clone());
                    self.walk(tree, &path, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn is_in_chart(&self, path: &str) -> bool {
        let is_below = |dir: &String| {
            path.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.chart_dirs.iter().any(is_below)
    }
}

fn is_chart_metadata(name: &str) -> bool {
    name == "Chart.yaml" || name == "Chart.yml"
}
