//! The result of a command as text: lists of objects, and a table of changed fields for each changed object.

use std::fmt::Write;

use crate::{
    object::ObjectRef,
    results::{Change, CommandResult, DeploymentError, ResultObject},
};

/// How wide the column with paths may get.
const MAX_PATH_WIDTH: usize = 60;

/// The text of a result; empty when there is nothing to tell. `width` is that of the terminal; with `short` the differences of
/// changed objects are left out.
pub(super) fn text(result: &CommandResult, short: bool, width: usize) -> String {
    let mut out = String::new();
    let objects = |is: fn(&ResultObject) -> bool| {
        result.objects.iter().filter(move |object| is(object)).collect::<Vec<_>>()
    };
    let changed = objects(|object| !object.base.changes.is_empty());
    list(&mut out, "New objects", &objects(|object| object.base.new));
    list(&mut out, "Changed objects", &changed);
    if !short {
        for object in changed {
            let _ = write!(out, "\nDiff for object {}\n", object.base.reference);
            table(&mut out, &object.base.changes, width);
        }
    }
    list(&mut out, "Deleted objects", &objects(|object| object.base.deleted));
    list(&mut out, "Applied hooks", &objects(|object| object.base.hook));
    list(&mut out, "Orphan objects", &objects(|object| object.base.orphan));
    messages(&mut out, "Warnings", &result.warnings);
    messages(&mut out, "Errors", &result.errors);
    out
}

fn list(out: &mut String, title: &str, objects: &[&ResultObject]) {
    if objects.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}:\n");
    for object in objects {
        let _ = writeln!(out, "  {}", object.base.reference);
    }
}

fn messages(out: &mut String, title: &str, messages: &[DeploymentError]) {
    if messages.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}:\n");
    for DeploymentError { reference, message } in messages {
        let message = message.trim_end().replace('\n', "\n    ");
        let _ = if is_run(reference) {
            writeln!(out, "  {message}")
        } else {
            writeln!(out, "  {reference}: {message}")
        };
    }
}

/// Whether a message is about the run as a whole.
fn is_run(reference: &ObjectRef) -> bool {
    reference.kind.is_empty() && reference.name.is_empty()
}

/// The changed fields, each with its difference; long lines are wrapped.
fn table(out: &mut String, changes: &[Change], width: usize) {
    let cells: Vec<(Vec<String>, Vec<String>)> = {
        let longest = changes.iter().map(|change| change.json_path.chars().count()).max();
        let path_width = longest.unwrap_or_default().clamp("Path".len(), MAX_PATH_WIDTH);
        // Borders and padding take seven characters.
        let diff_width = width.saturating_sub(path_width + 7).max(20);
        let cell = |change: &Change| {
            let diff = change.unified_diff.trim_end_matches('\n');
            (wrap(&change.json_path, path_width), wrap(diff, diff_width))
        };
        let heading = (vec!["Path".to_owned()], vec!["Diff".to_owned()]);
        std::iter::once(heading).chain(changes.iter().map(cell)).collect()
    };
    let widest = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max();
    let path_width = cells.iter().filter_map(|(path, _)| widest(path)).max().unwrap_or_default();
    let diff_width = cells.iter().filter_map(|(_, diff)| widest(diff)).max().unwrap_or_default();
    let rule = format!("+{}+{}+\n", "-".repeat(path_width + 2), "-".repeat(diff_width + 2));
    out.push_str(&rule);
    for (path, diff) in &cells {
        for line in 0..path.len().max(diff.len()) {
            let at = |lines: &[String]| lines.get(line).cloned().unwrap_or_default();
            let _ = writeln!(out, "| {:path_width$} | {:diff_width$} |", at(path), at(diff));
        }
        out.push_str(&rule);
    }
}

/// The lines of a text, cut to a width.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let chars: Vec<char> = line.replace('\t', "    ").chars().collect();
        if chars.is_empty() {
            lines.push(String::new());
        }
        lines.extend(chars.chunks(width.max(1)).map(|chunk| chunk.iter().collect::<String>()));
    }
    lines
}
