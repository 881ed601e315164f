use std::sync::Arc;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{
    diagnostic::{Describe, Diagnostic, Position, SourceLocation},
    jinja::JinjaError,
};

/// Lines that may differ for both texts to be compared in full.
const MAX_COMPARED: usize = 10_000;

/// A file of a project before and after rendering. Parsers see the rendered text; this leads their positions back to the
/// file that the user wrote.
#[derive(Debug, Clone)]
pub struct RenderedFile {
    path: String,
    /// Names the source when it is not the project's own.
    label: Option<Arc<str>>,
    source: Arc<str>,
    rendered: Arc<str>,
}

impl RenderedFile {
    /// A file by its path in the source tree, its text, and the text it was rendered to. `label` names the source to the user
    /// when it is not the project's own.
    pub fn new(path: &str, label: Option<&Arc<str>>, source: &str, rendered: &str) -> Self {
        let (path, label) = (path.to_owned(), label.cloned());
        Self { path, label, source: source.into(), rendered: rendered.into() }
    }

    /// The path in the source tree.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The rendered text.
    pub fn rendered(&self) -> &str {
        &self.rendered
    }

    /// Where in the user's file a position of the rendered text comes from. The flag tells whether the line is the same in
    /// both; otherwise the template line that made it is given.
    pub fn source_position(&self, rendered: Position) -> (Position, bool) {
        if self.source == self.rendered {
            return (rendered, true);
        }
        let source_lines: Vec<&str> = self.source.lines().collect();
        let rendered_lines: Vec<&str> = self.rendered.lines().collect();
        let index = rendered.line.saturating_sub(1);
        for op in comparison(&source_lines, &rendered_lines) {
            let range = op.new_range();
            if !range.contains(&index) {
                continue;
            }
            let offset = index - range.start;
            if let DiffOp::Equal { old_index, .. } = op {
                return (Position { line: old_index + offset + 1, column: rendered.column }, true);
            }
            let old = op.old_range();
            let line = (old.start + offset).min(old.end.saturating_sub(1)).max(old.start);
            return (start_of_line(&source_lines, line), false);
        }
        (start_of_line(&source_lines, source_lines.len().saturating_sub(1)), false)
    }

    /// Describes an error in the template that this file is, or in one that it includes.
    pub fn describe(&self, error: &JinjaError) -> Diagnostic {
        let mut error = error.clone();
        if *error.template == *self.path {
            // The lines are shown from the file.
            error.excerpt = Box::default();
        }
        self.complete(error.describe())
    }

    /// Leads a diagnostic about the rendered text back to the user's file, and shows its lines.
    #[must_use]
    pub fn complete(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let mut at = diagnostic.at.take().unwrap_or_else(|| SourceLocation::file(&*self.path));
        let is_here = at.file == self.path;
        if let Some(label) = &self.label {
            at.file = format!("{label}//{}", at.file);
        }
        let (true, Some(position)) = (is_here, at.position) else {
            return diagnostic.with_location(at);
        };
        let (found, same_line) = self.source_position(position);
        if !same_line {
            diagnostic = diagnostic.with_hint(format!(
                "the place is line {} of the rendered text; templates made it from the line shown",
                position.line
            ));
        }
        let at = SourceLocation { file: at.file, position: Some(found) };
        diagnostic.with_location(at).with_excerpt_of(&self.source)
    }
}

/// How the rendered lines came about. The time to compare grows with the square of the lines that differ; where there are too
/// many, everything between the equal lines at both ends counts as changed.
fn comparison(source: &[&str], rendered: &[&str]) -> Vec<DiffOp> {
    let equal = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let start = source.iter().zip(rendered).take_while(equal).count();
    let (old, new) = (&source[start..], &rendered[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(equal).count();
    let (old_len, new_len) = (old.len() - end, new.len() - end);
    if old_len + new_len <= MAX_COMPARED {
        return capture_diff_slices(Algorithm::Myers, source, rendered);
    }
    let (old_end, new_end) = (start + old_len, start + new_len);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: start },
        DiffOp::Replace { old_index: start, old_len, new_index: start, new_len },
        DiffOp::Equal { old_index: old_end, new_index: new_end, len: end },
    ]
}

/// The first character of a line, given from 0, that is not a space.
fn start_of_line(lines: &[&str], index: usize) -> Position {
    let indent = lines.get(index).map_or(0, |line| line.len() - line.trim_start().len());
    Position { line: index + 1, column: indent + 1 }
}
