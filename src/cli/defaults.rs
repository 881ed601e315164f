//! Flags from the configuration file and from `KLUCTL_*` variables: they are put before the flags that the user typed, so that
//! typed ones win, and lists get longer.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, Command};

/// Flags whose values are credentials, which have variables of their own.
const CREDENTIALS: &[&str] = &["git-", "helm-", "registry-"];

/// The command line with flags from elsewhere inserted after the name of the command. `words` starts with the program's name.
pub(super) fn with_defaults(
    words: &[String],
    command: &Command,
    configured: &BTreeMap<String, Vec<String>>,
    variables: &BTreeMap<String, String>,
) -> Vec<String> {
    let (position, command) = find_command(words, command);
    let mut result = words[..position].to_vec();
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long() else { continue };
        if !takes_defaults(arg, name) {
            continue;
        }
        let mut values = configured.get(name).cloned().unwrap_or_default();
        let from_environment = variable_values(name, variables);
        if matches!(arg.get_action(), ArgAction::Append) {
            values.extend(from_environment);
        } else if let Some(value) = from_environment.into_iter().next_back() {
            values = vec![value];
        }
        result.extend(values.into_iter().map(|value| format!("--{name}={value}")));
    }
    result.extend_from_slice(&words[position..]);
    result
}

fn takes_defaults(arg: &Arg, name: &str) -> bool {
    let is_value = matches!(arg.get_action(), ArgAction::Append | ArgAction::Set);
    let is_credential = CREDENTIALS.iter().any(|prefix| name.starts_with(prefix));
    is_value && (!is_credential || name == "helm-binary")
}

/// The command that the words name, and the position behind its name.
fn find_command<'a>(words: &[String], root: &'a Command) -> (usize, &'a Command) {
    let mut command = root;
    let mut position = 1.min(words.len());
    for (index, word) in words.iter().enumerate().skip(1) {
        if let Some(sub_command) = command.find_subcommand(word) {
            (position, command) = (index + 1, sub_command);
        } else if !word.starts_with('-') {
            break;
        }
    }
    (position, command)
}

/// The values of `KLUCTL_<NAME>` and of `KLUCTL_<NAME>_<n>`, by number.
fn variable_values(name: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let variable = format!("KLUCTL_{}", name.to_uppercase().replace('-', "_"));
    let number = |key: &str| {
        let rest = key.strip_prefix(&variable)?;
        if rest.is_empty() {
            Some(0)
        } else {
            rest.strip_prefix('_')?.parse::<u64>().ok().map(|n| n + 1)
        }
    };
    let mut values: Vec<(u64, &String)> =
        variables.iter().filter_map(|(key, value)| Some((number(key)?, value))).collect();
    values.sort_by_key(|(number, _)| *number);
    values.into_iter().map(|(_, value)| value.clone()).collect()
}
