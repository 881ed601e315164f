//! The result of a command as text: lists of objects, and a table of changed fields for each changed object.

use std::fmt::Write;

use indexmap::IndexMap;

use super::advice::next_step;
use crate::{
    object::ObjectRef,
    results::{CommandResult, DeploymentError, ResultObject, ValidateResult},
};

/// How wide the column with paths may get.
const MAX_PATH_WIDTH: usize = 60;

/// How text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// Leave out the differences of changed objects.
    pub(super) short: bool,
    /// Columns of the terminal.
    pub(super) width: usize,
    /// Whether to use ANSI colours.
    pub(super) colour: bool,
}

/// The text of a result; empty when there is nothing to tell.
pub(super) fn text(result: &CommandResult, style: Style) -> String {
    let mut out = String::new();
    let objects = |is: fn(&ResultObject) -> bool| {
        result.objects.iter().filter(move |object| is(object)).collect::<Vec<_>>()
    };
    let changed = objects(|object| !object.base.changes.is_empty());
    list(&mut out, "New objects", &objects(|object| object.base.new));
    list(&mut out, "Changed objects", &changed);
    if !style.short {
        for object in changed {
            let _ = write!(out, "\nDiff for object {}\n", object.base.reference);
            let changes = object.base.changes.iter();
            let rows = changes.map(|change| (&*change.json_path, &*change.unified_diff));
            table(&mut out, ["Path", "Diff"], rows, style);
        }
    }
    list(&mut out, "Deleted objects", &objects(|object| object.base.deleted));
    list(&mut out, "Applied hooks", &objects(|object| object.base.hook));
    list(&mut out, "Orphan objects", &objects(|object| object.base.orphan));
    messages(&mut out, "Warnings", &result.warnings);
    messages(&mut out, "Errors", &result.errors);
    out
}

/// The text of the result of a validation; empty when there is nothing to tell.
pub(super) fn validation(result: &ValidateResult, width: usize) -> String {
    let mut out = String::new();
    messages(&mut out, "Validation Warnings", &result.warnings);
    messages(&mut out, "Validation Errors", &result.errors);
    if !result.results.is_empty() {
        out.push_str("\nResults:\n");
        let rows = result.results.iter();
        let rows: Vec<_> =
            rows.map(|entry| (entry.reference.to_string(), &*entry.message)).collect();
        let rows = rows.iter().map(|(object, message)| (&**object, *message));
        let style = Style { short: false, width, colour: false };
        table(&mut out, ["Object", "Message"], rows, style);
    }
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
    // What is about one object stands together, where the first of it is.
    let mut groups: IndexMap<&ObjectRef, Vec<&str>> = IndexMap::new();
    for DeploymentError { reference, message } in messages {
        groups.entry(reference).or_default().push(message);
    }
    let messages = groups.iter().flat_map(|(reference, messages)| {
        messages.iter().map(move |message| (*reference, *message))
    });
    for (reference, message) in messages {
        let step = next_step(message);
        let message = message.trim_end().replace('\n', "\n    ");
        let _ = if is_run(reference) {
            writeln!(out, "  {message}")
        } else {
            writeln!(out, "  {reference}: {message}")
        };
        if let Some(step) = step {
            let _ = writeln!(out, "    next step: {step}");
        }
    }
}

/// Whether a message is about the run as a whole.
fn is_run(reference: &ObjectRef) -> bool {
    reference.kind.is_empty() && reference.name.is_empty()
}

/// A row of a table: the lines of its first cell, and those of its second with the mark that gives the colour.
type Row = (Vec<String>, Vec<(String, char)>);

/// A table of two columns; long lines are wrapped. Lines of differences are coloured if `style` says so.
fn table<'a>(
    out: &mut String,
    heading: [&str; 2],
    rows: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    style: Style,
) {
    let longest = rows.clone().map(|(first, _)| first.chars().count()).max();
    let first_width =
        longest.unwrap_or_default().clamp(heading[0].len(), MAX_PATH_WIDTH.max(heading[0].len()));
    // Borders and padding take seven characters.
    let second_width = style.width.saturating_sub(first_width + 7).max(20);
    let cells = |(first, second): (&str, &str)| {
        let first = wrap(first, first_width).into_iter().map(|(line, _)| line).collect();
        (first, wrap(second.trim_end_matches('\n'), second_width))
    };
    let heading = (vec![heading[0].to_owned()], vec![(heading[1].to_owned(), ' ')]);
    let rows: Vec<Row> = std::iter::once(heading).chain(rows.map(cells)).collect();
    let width = |line: &str| line.chars().count();
    let first_width = rows.iter().flat_map(|(first, _)| first.iter().map(|line| width(line)));
    let first_width = first_width.max().unwrap_or_default();
    let second_width =
        rows.iter().flat_map(|(_, second)| second.iter().map(|(line, _)| width(line)));
    let second_width = second_width.max().unwrap_or_default();
    let rule = format!("+{}+{}+\n", "-".repeat(first_width + 2), "-".repeat(second_width + 2));
    out.push_str(&rule);
    for (first, second) in &rows {
        for line in 0..first.len().max(second.len()) {
            let left = first.get(line).map_or("", String::as_str);
            let (right, mark) = second.get(line).map_or(("", ' '), |(text, mark)| (text, *mark));
            let right = painted(&format!("{right:second_width$}"), mark, style.colour);
            let _ = writeln!(out, "| {left:first_width$} | {right} |");
        }
        out.push_str(&rule);
    }
}

/// A line of a difference in the colour of its mark.
fn painted(text: &str, mark: char, colour: bool) -> String {
    let code = match mark {
        '+' => "32",
        '-' => "31",
        '@' => "36",
        _ => return text.to_owned(),
    };
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// The lines of a text, cut to a width, each with the first character of the line that it is part of.
fn wrap(text: &str, width: usize) -> Vec<(String, char)> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let chars: Vec<char> = line.replace('\t', "    ").chars().collect();
        let mark = chars.first().copied().unwrap_or(' ');
        if chars.is_empty() {
            lines.push((String::new(), mark));
        }
        lines.extend(chars.chunks(width.max(1)).map(|chunk| (chunk.iter().collect(), mark)));
    }
    lines
}
