//! Replays the probes that were recorded with Python's Jinja2; `hack/jinja-probes` records them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use crate::jinja::{Environment, Loader, Options, Vars};

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/differential/jinja/", $name))
    };
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_bytes!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/differential/jinja/files/",
                $name
            ))
            .as_slice(),
        )),+]
    };
}

#[derive(Deserialize)]
struct Recorded {
    output: Option<String>,
    error: Option<String>,
    message: Option<String>,
    line: Option<usize>,
}

const FILES: &[(&str, &[u8])] = files![
    "macros.j2",
    "base.j2",
    "mid.j2",
    "inc.j2",
    "setter.j2",
    "bad.j2",
    "syntax.j2",
    "required.j2",
    "loop.j2",
    "hello.j2",
    "selfhash.j2",
    "raw.bin",
    "sub/a.j2",
    "sub/b.j2",
];
const CONTEXT: &str = text!("context.json");
const EXPRESSIONS: &str = text!("expressions.txt");
const STATEMENTS: &str = text!("statements.txt");
const RESULTS: &str = text!("results.json");
const DEVIATIONS: &str = text!("deviations.txt");

struct Files;

impl Loader for Files {
    fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String> {
        let mut path = name.to_owned();
        if let (Some(parent), true) = (parent, name.starts_with('.')) {
            let dir = parent.rsplit_once('/').map_or("", |(dir, _)| dir);
            path = crate::tree::join(dir, name).map_err(|error| error.to_string())?;
        }
        Ok(FILES.iter().any(|(own, _)| *own == path).then_some(path))
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        let found = FILES.iter().find(|(own, _)| *own == id);
        found.map(|(_, bytes)| Arc::from(*bytes)).ok_or_else(|| id.to_owned())
    }
}

/// Names and templates, as the recording script reads them.
fn probes() -> Vec<(String, String)> {
    let lines = EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut out: Vec<(String, String)> =
        lines.map(|line| (line.to_owned(), format!("{{{{ {line} }}}}"))).collect();
    for part in STATEMENTS.split("\n=== ").skip(1) {
        let (name, template) = part.split_once('\n').unwrap_or((part, ""));
        out.push((format!("statement: {name}"), template.to_owned()));
    }
    out
}

/// What differs from the recorded result; empty when nothing does.
fn difference(
    environment: &Environment,
    vars: &Vars,
    template: &str,
    recorded: &Recorded,
) -> String {
    let ours = environment.render_string("<template>", template, vars);
    match (ours, recorded) {
        (Ok(text), Recorded { output: Some(wanted), .. }) if text == *wanted => String::new(),
        (Ok(text), Recorded { output: Some(wanted), .. }) => {
            format!("{text:?}\n  wanted {wanted:?}")
        }
        (Ok(text), Recorded { error, message, .. }) => {
            format!("{text:?}\n  wanted {error:?} {message:?}")
        }
        (Err(error), Recorded { output: Some(wanted), .. }) => {
            format!("{} {error}\n  wanted {wanted:?}", error.kind)
        }
        (Err(error), Recorded { error: kind, message, line, .. }) => {
            let kind_fits = kind.as_deref() == Some(error.kind);
            let message_fits = message.as_ref().is_none_or(|wanted| error.message == *wanted);
            let own_line = error.position.map(|position| position.line);
            let line_fits = line.is_none() || own_line == *line;
            if kind_fits && message_fits && line_fits {
                return String::new();
            }
            format!(
                "{} {:?} line {own_line:?}\n  wanted {kind:?} {message:?} line {line:?}",
                error.kind, error.message
            )
        }
    }
}

#[test]
fn probes_give_what_python_gives() {
    let recorded: BTreeMap<String, Recorded> = serde_json::from_str(RESULTS).unwrap();
    let vars = Vars::new(&serde_json::from_str(CONTEXT).unwrap());
    let deviations: BTreeSet<&str> = DEVIATIONS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '~']))
        .collect();
    let mut report = String::new();
    let (mut count, mut differing) = (0, 0);
    for (name, template) in probes() {
        let environment =
            Environment::new(Arc::new(Files), Options::new(jiff::Timestamp::UNIX_EPOCH));
        let wanted = &recorded[&name];
        let difference = difference(&environment, &vars, &template, wanted);
        count += 1;
        differing += usize::from(!difference.is_empty());
        match (difference.is_empty(), deviations.contains(&*name)) {
            (true, true) => writeln!(report, "{name}\n  agrees, but is listed as a deviation"),
            (false, false) => writeln!(report, "{name}\n  got    {difference}"),
            _ => Ok(()),
        }
        .unwrap();
    }
    assert_eq!(
        count,
        recorded.len(),
        "record the probes again: some have no result or no template"
    );
    assert!(report.is_empty(), "{differing} of {count} probes differ\n{report}");
    assert!(differing * 100 <= count, "more than one percent of the probes deviate");
}
