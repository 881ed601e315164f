//! The pages in `docs/cli`, one per command, made of what the command line itself says.
#![expect(clippy::disallowed_methods, reason = "reads and writes pages of documentation")]

use std::{fmt::Write, fs, path::Path};

use clap::{Arg, ArgAction, Command};
use indexmap::IndexMap;

use super::command;

/// `make cli-docs` runs this test with `UPDATE_CLI_DOCS=1`, which writes the pages in place of comparing them.
#[test]
fn the_reference_is_current() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli");
    let mut root = command();
    root.build();
    let mut pages = Vec::new();
    collect(&root, &mut pages);
    let mut index =
        "# Commands\n\nMade from the command line itself by `make cli-docs`.\n\n".to_owned();
    for (name, command) in &pages {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(index, "- [`{name}`]({}): {about}", file_name(name));
    }
    index.push_str(COMMON);
    let mut files = vec![("README.md".to_owned(), index)];
    files.extend(pages.iter().map(|(name, command)| (file_name(name), page(name, command))));
    if std::env::var_os("UPDATE_CLI_DOCS").is_some() {
        fs::create_dir_all(&dir).unwrap();
        for entry in fs::read_dir(&dir).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (file, text) in &files {
            fs::write(dir.join(file), text).unwrap();
        }
    }
    for (file, text) in &files {
        let found = fs::read_to_string(dir.join(file)).unwrap_or_default();
        assert!(found == *text, "docs/cli/{file} is out of date; run `make cli-docs`");
    }
    let count = fs::read_dir(&dir).unwrap().count();
    assert_eq!(count, files.len(), "docs/cli has pages of commands that are not there");
}

const COMMON: &str = "
Every flag can also be set by a variable, `KLUCTL_` and its name in capitals with `_` for `-`, and in `/etc/kluctl/config.yaml`
or `~/.kluctl/config.yaml` under its name. Flags that may be given several times also take numbered variables, `KLUCTL_ARG_0`,
`KLUCTL_ARG_1`, which count in the order of their numbers. What is typed wins over variables, and these over the file; lists are
put together in the order file, variables, command line. Flags with credentials (`--git-*`, `--helm-*`, `--registry-*`) have
variables of another form, `KLUCTL_GIT_<n>_HOST` and so on.

Results go to standard output, everything else to standard error. The exit code is 0 when the command succeeded and 1 when it
did not: when there are errors in the result, when validation failed, when a question was answered with no. Durations are
written as `30s`, `5m` or `1h30m`. Switches take `=false`.
";

/// All commands that do something, with their full names.
fn collect(command: &Command, pages: &mut Vec<(String, Command)>) {
    for sub in
        command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
    {
        if sub.has_subcommands() {
            collect(sub, pages);
        } else {
            let name = sub.get_bin_name().unwrap_or_else(|| sub.get_name()).to_owned();
            pages.push((name, sub.clone()));
        }
    }
}

fn file_name(name: &str) -> String {
    format!("{}.md", name.trim_start_matches("kluctl ").replace(' ', "-"))
}

fn page(name: &str, command: &Command) -> String {
    let mut out = format!("# {name}\n\n");
    let positionals: String = command
        .get_positionals()
        .map(|arg| {
            let value = value_name(arg);
            if arg.is_required_set() { format!(" <{value}>") } else { format!(" [{value}]") }
        })
        .collect();
    let _ = writeln!(out, "    {name} [flags]{positionals}\n");
    let about = command.get_long_about().or(command.get_about());
    let _ = writeln!(out, "{}", about.map(ToString::to_string).unwrap_or_default());
    let mut groups: IndexMap<String, Vec<&Arg>> = IndexMap::new();
    let is_shown =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    for arg in command.get_positionals().filter(is_shown) {
        groups.entry("Arguments".to_owned()).or_default().push(arg);
    }
    for arg in command.get_arguments().filter(|arg| !arg.is_positional()).filter(is_shown) {
        let heading = arg.get_help_heading().unwrap_or("Flags").to_owned();
        groups.entry(heading).or_default().push(arg);
    }
    if let Some(global) = groups.shift_remove("Global arguments") {
        groups.insert("Global arguments".to_owned(), global);
    }
    for (heading, mut args) in groups {
        args.sort_by_key(|arg| arg.get_long().map(str::to_owned));
        let _ = writeln!(out, "\n## {heading}\n");
        for arg in args {
            row(&mut out, arg);
        }
    }
    out
}

fn value_name(arg: &Arg) -> String {
    arg.get_value_names()
        .and_then(|names| names.first())
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn row(out: &mut String, arg: &Arg) {
    let mut shown = String::new();
    if let Some(short) = arg.get_short() {
        let _ = write!(shown, "-{short}, ");
    }
    match arg.get_long() {
        Some(long) => {
            let _ = write!(shown, "--{long}");
            // Switches need no value.
            if value_name(arg) != "BOOL" {
                let _ = write!(shown, " {}", value_name(arg));
            }
        }
        None => shown.push_str(&value_name(arg)),
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = write!(out, "- `{shown}`: {help}");
    let choices: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if !choices.is_empty() && value_name(arg) != "BOOL" {
        let _ = write!(out, "; one of {}", choices.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let defaults = defaults.join(", ");
    if !defaults.is_empty() && defaults != "false" {
        let _ = write!(out, " (default `{defaults}`)");
    }
    if matches!(arg.get_action(), ArgAction::Append) && !help.contains("several times") {
        out.push_str("; may be given several times");
    }
    out.push('\n');
}
