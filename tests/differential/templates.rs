//! Compares templates with Python's Jinja2: some thousand probes, each rendered by both.
//!
//! `hack/jinja-probes/record --all` makes the probes and their results with the real packages, which it installs into a cache
//! when they are missing; without them the test fails. Of the generated probes every fourth is taken, or every Nth with
//! `JINJA_PROBES_EVERY`. `JINJA_PROBES` may name a file with the recorder's output instead. Output, kind of
//! error, message, file and line must be equal, except where `jinja/deviations.txt` says why not, where ours is clearer on
//! purpose, and except for the words of at most one in two hundred, which misuse Python's own types.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use flux_kluctl_controller::{
    jinja::{Environment, JinjaError, Loader, Options, Vars},
    tree,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Probe {
    name: String,
    template: String,
    files: BTreeMap<String, String>,
    result: Recorded,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Recorded {
    output: Option<String>,
    error: Option<String>,
    message: Option<String>,
    line: Option<usize>,
    file: Option<String>,
}

/// The files of a probe on top of a directory.
struct Files {
    directory: PathBuf,
    own: BTreeMap<String, String>,
}

impl Loader for Files {
    fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String> {
        let relative = name.starts_with("./") || name.starts_with("../");
        let dir = parent.filter(|_| relative).map_or("", tree::parent);
        if !relative && name.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        let Ok(path) = tree::join(dir, name) else { return Ok(None) };
        let found = self.own.contains_key(&path) || self.directory.join(&path).is_file();
        Ok(found.then_some(path))
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        if let Some(own) = self.own.get(id) {
            return Ok(Arc::from(own.as_bytes()));
        }
        let bytes = fs::read(self.directory.join(id)).map_err(|error| error.to_string())?;
        Ok(Arc::from(bytes))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn data() -> PathBuf {
    root().join("tests/differential/jinja")
}

/// What Python made of all probes; the first line names its version.
fn recorded() -> String {
    if let Some(file) = std::env::var_os("JINJA_PROBES") {
        return fs::read_to_string(file).expect("JINJA_PROBES names a file");
    }
    let program = root().join("hack/jinja-probes/record");
    let every = std::env::var("JINJA_PROBES_EVERY").unwrap_or_else(|_| "4".to_owned());
    let output = Command::new(program)
        .args(["--all", "--every", &every])
        .output()
        .expect("the recorder starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the probes cannot be recorded:\n{message}");
    String::from_utf8(output.stdout).unwrap()
}

/// Our result in the recorder's form.
fn ours(probe: &Probe, vars: &Vars, options: &Options) -> Recorded {
    let files = Files { directory: data().join("files"), own: probe.files.clone() };
    let environment = Environment::new(Arc::new(files), options.clone());
    match environment.render_string("<template>", &probe.template, vars) {
        Ok(output) => Recorded { output: Some(output), ..failure(None) },
        Err(error) => failure(Some(&error)),
    }
}

fn failure(error: Option<&JinjaError>) -> Recorded {
    // How deep Python recurses, and where it stops, is nobody's business.
    let detailed = error.filter(|error| error.kind != "RecursionError");
    let template = detailed.map(|error| error.template.to_string());
    Recorded {
        output: None,
        error: error.map(|error| error.kind.to_owned()),
        message: detailed.map(|error| error.message.clone()),
        line: detailed.and_then(|error| error.position).map(|position| position.line),
        file: template.filter(|template| !template.starts_with('<')),
    }
}

/// Whether our result is the recorded one. Python words its own messages differently from version to version; those of the
/// version that the written probes were recorded with are compared to the letter.
fn agree(theirs: &Recorded, ours: &Recorded, same_python: bool) -> bool {
    let of_python = theirs.error.as_deref().is_some_and(|kind| !kind.starts_with("Template"));
    let same_error = theirs.error == ours.error && theirs.message == ours.message;
    let other_words = of_python && !same_python && ours.error.is_some();
    theirs.output == ours.output && (same_error || other_words) && places_agree(theirs, ours)
}

fn places_agree(theirs: &Recorded, ours: &Recorded) -> bool {
    theirs.line.is_none() || (theirs.line == ours.line && theirs.file == ours.file)
}

/// Why ours refuses a template, and in which words, on purpose.
fn clearer(theirs: &Recorded, ours: &Recorded) -> Option<&'static str> {
    // Jinja2 does not look into what nobody reads.
    if theirs.output.as_deref() == Some("<generator object>") && ours.error.is_some() {
        return Some("filter that nobody reads");
    }
    let (kind, own_kind) = (theirs.error.as_deref()?, ours.error.as_deref()?);
    let (message, own_message) = (theirs.message.as_deref()?, ours.message.as_deref()?);
    if kind.starts_with("Template") {
        return None;
    }
    // What Jinja2 fails to compile, because it computes constants too early or names a variable twice, has no line.
    if theirs.line.is_none() {
        return Some("compiled by Python");
    }
    let of_yaml =
        ["ScannerError", "ParserError", "ComposerError", "ConstructorError", "ReaderError"];
    let reason = match own_kind {
        "UndefinedError" if kind != own_kind || message.ends_with("Undefined") => {
            "undefined value named"
        }
        "ConstructorError" if of_yaml.contains(&kind) => "place in YAML in one line",
        _ if own_message.starts_with("a path must be a string") => "path of another type",
        _ if [message, own_message].iter().all(|it| it.starts_with("Invalid json path")) => {
            "JSON path"
        }
        _ => return None,
    };
    places_agree(theirs, ours).then_some(reason)
}

/// Whether both refuse the template in the same line, only in other words than Python has for the misuse of one of its own
/// types or functions. Jinja2's own errors, and undefined values, are not among these.
fn refused_in_other_words(probe: &Probe, ours: &Recorded) -> bool {
    let theirs = &probe.result;
    let (Some(kind), Some(own_kind)) = (theirs.error.as_deref(), ours.error.as_deref()) else {
        return false;
    };
    // The code that Jinja2 makes for `with` belongs to the line of the statement before it.
    let line_of_with = probe.template.contains(" with ")
        && theirs == &Recorded { line: theirs.line, ..ours.clone() };
    let of_python = !kind.starts_with("Template") && (kind != "UndefinedError" || own_kind == kind);
    line_of_with || (of_python && places_agree(theirs, ours))
}

#[test]
fn templates_give_what_python_gives() {
    let recorded = recorded();
    let mut lines = recorded.lines();
    let head: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let same_python = head["python"] == "3.11";
    let context = fs::read_to_string(data().join("context.json")).unwrap();
    let vars = Vars::new(&serde_json::from_str(&context).unwrap());
    let options = Options::new(jiff::Timestamp::UNIX_EPOCH);
    let deviations = fs::read_to_string(data().join("deviations.txt")).unwrap();
    let deviations: BTreeSet<&str> = deviations.lines().collect();
    let written = fs::read_to_string(data().join("results.json")).unwrap();
    let written: BTreeMap<String, Recorded> = serde_json::from_str(&written).unwrap();

    let (mut count, mut seen, mut problems) = (0, 0, 0);
    let (mut report, mut other_words) = (String::new(), Vec::new());
    let mut on_purpose: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let probe: Probe = serde_json::from_str(line).unwrap();
        count += 1;
        let theirs = &probe.result;
        if let Some(committed) = written.get(&probe.name) {
            seen += 1;
            if !agree(theirs, committed, same_python) {
                problems += 1;
                writeln!(report, "{}\n  recorded {committed:?}\n  now      {theirs:?}", probe.name)
                    .unwrap();
            }
        }
        let ours = ours(&probe, &vars, &options);
        let is_written = written.contains_key(&probe.name);
        let mut agree = agree(theirs, &ours, same_python);
        if let (false, false, Some(reason)) = (agree, is_written, clearer(theirs, &ours)) {
            *on_purpose.entry(reason).or_insert(0) += 1;
            agree = true;
        }
        let named = deviations.contains(probe.name.as_str());
        if !agree && !named && !is_written && refused_in_other_words(&probe, &ours) {
            let name = &probe.name;
            other_words.push(format!("{name}\n  python {theirs:?}\n  ours   {ours:?}\n"));
            continue;
        }
        if agree == named && (same_python || !named) {
            problems += 1;
            let template = &probe.template;
            writeln!(
                report,
                "{}\n  {template:?}\n  python {theirs:?}\n  ours   {ours:?}",
                probe.name
            )
            .unwrap();
        }
    }
    assert_eq!(seen, written.len(), "results.json has probes that are gone: record them again");
    assert!(report.is_empty(), "{problems} of {count} probes:\n{report}");
    assert!(count > 5000, "only {count} probes");
    let words = other_words.len();
    let list = other_words.concat();
    assert!(words * 200 < count, "{words} of {count} are refused in other words:\n{list}");
    let clearer: usize = on_purpose.values().sum();
    assert!(clearer * 40 < count, "of {count}, {on_purpose:?}");
    println!("{count} probes: {clearer} differ on purpose {on_purpose:?}, {words} in words");
}
