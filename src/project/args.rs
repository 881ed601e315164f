//! Arguments: from the command line, from files, and with a project's declared defaults (kluctl 2.28).

use serde_json::{Map, Value};

use crate::{
    diagnostic::{Class, Describe, Diagnostic, FieldPath},
    object::{get_at, merge, set_at},
    schema::ArgDeclaration,
    yaml::{self, Schema, YamlError},
};

/// Why arguments cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// Not of the form `name=value`.
    #[error("invalid argument {text:?}")]
    Form {
        /// The argument as given.
        text: String,
    },
    /// The value of an argument is no YAML.
    #[error("the value of argument {name} is not valid YAML")]
    Value {
        /// The argument's name.
        name: String,
        /// What the parser says.
        #[source]
        source: YamlError,
    },
    /// The file of `name=@file` or `--args-from-file` cannot be read.
    #[error("{path}: {message}")]
    File {
        /// The file as given.
        path: String,
        /// Why.
        message: String,
    },
    /// A file with arguments is no YAML.
    #[error("the arguments in {path} are not valid YAML")]
    FileContent {
        /// The file as given.
        path: String,
        /// What the parser says.
        #[source]
        source: YamlError,
    },
    /// A file with arguments holds something else than a mapping.
    #[error("{path} holds {found}")]
    FileShape {
        /// The file as given.
        path: String,
        /// What it holds.
        found: &'static str,
    },
    /// Arguments without a default that were not given.
    #[error("required argument{} {} not set", if names.len() == 1 { "" } else { "s" }, names.join(", "))]
    Required {
        /// Their names, in the order of declaration.
        names: Vec<String>,
        /// All arguments that are declared, each with ` (required)` behind its name or not.
        known: Vec<String>,
    },
}

impl Describe for ArgsError {
    fn describe(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Form { .. } => diagnostic.with_expected(
                "name=value, where the name is made of letters, digits, `_`, `-`, `/` and, between keys, `.`",
            ),
            Self::Value { source, .. } => diagnostic
                .with_cause(source)
                .with_hint("quote it twice to make it a text: -a name='\"value\"'"),
            Self::FileContent { source, .. } => {
                let inner = source.describe();
                Diagnostic { message: format!("{self}: {}", inner.message), ..inner }
            }
            Self::FileShape { .. } => diagnostic.with_expected("a mapping of names to values"),
            Self::File { .. } => diagnostic,
            Self::Required { names, known } => diagnostic
                .with_hint(format!(
                    "give it a value, for example with `-a {}=…` or in the target's args",
                    names[0]
                ))
                .with_hint(format!("arguments: {}", known.join(", "))),
        }
    }
}

/// Reads the file of an argument `name=@file`, by the name given; the error is a message for the user.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// Arguments of the form `name=value` as one mapping.
///
/// `.` in a name leads into a mapping. Values are YAML; `@file` stands for the content of a file, read by `read_file` (without
/// one, it is refused), and `\@x` for the text `@x`. Of several values for a name the last one counts; a later argument also
/// replaces a value that is in its way.
///
/// # Errors
/// Names the argument that has another form, whose value is no YAML, or whose file cannot be read.
pub fn parse<'a>(
    arguments: impl IntoIterator<Item = &'a str>,
    mut read_file: Option<&mut ReadFile<'_>>,
) -> Result<Value, ArgsError> {
    let mut args = Value::Object(Map::new());
    for argument in arguments {
        let form = || ArgsError::Form { text: argument.to_owned() };
        let (name, text) = argument.split_once('=').ok_or_else(form)?;
        let path = name_path(name).ok_or_else(form)?;
        let value = parse_value(name, text, &mut read_file)?;
        make_way(&mut args, &path);
        set_at(&mut args, &path, value);
    }
    Ok(args)
}

/// The keys that an argument's name leads through; `None` for names that are none.
fn name_path(name: &str) -> Option<FieldPath> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '-');
    let fits = |key: &str| !key.is_empty() && key.chars().all(allowed);
    name.split('.').all(fits).then(|| split_name(name))
}

fn split_name(name: &str) -> FieldPath {
    name.split('.').collect()
}

fn parse_value(
    name: &str,
    text: &str,
    read_file: &mut Option<&mut ReadFile<'_>>,
) -> Result<Value, ArgsError> {
    if let Some(literal) = text.strip_prefix("\\@") {
        return Ok(Value::String(format!("@{literal}")));
    }
    let content;
    let bytes = match text.strip_prefix('@') {
        None => text.as_bytes(),
        Some(path) => {
            let refuse = |message| ArgsError::File { path: path.to_owned(), message };
            let read = read_file
                .as_mut()
                .ok_or_else(|| refuse("arguments cannot be read from files here".to_owned()))?;
            content = read(path).map_err(refuse)?;
            &content
        }
    };
    yaml::parse_document(&format!("argument {name}"), bytes, Schema::Config)
        .map(|document| document.value)
        .map_err(|source| ArgsError::Value { name: name.to_owned(), source })
}

/// Replaces what is no mapping on the way to `path` by an empty one.
fn make_way(args: &mut Value, path: &FieldPath) {
    let mut slot = args;
    for segment in &path.0[..path.0.len() - 1] {
        let crate::diagnostic::Segment::Key(key) = segment else { return };
        let Value::Object(map) = slot else { return };
        slot = map.entry(key.clone()).or_insert(Value::Null);
        if !slot.is_object() {
            *slot = Value::Object(Map::new());
        }
    }
}

/// The arguments in a file given by `--args-from-file`: a YAML mapping, or nothing.
///
/// # Errors
/// When the content is no YAML or something else than a mapping.
pub fn parse_file(path: &str, content: &[u8]) -> Result<Value, ArgsError> {
    let document = yaml::parse_document(path, content, Schema::Config)
        .map_err(|source| ArgsError::FileContent { path: path.to_owned(), source })?;
    match document.value {
        Value::Null => Ok(Value::Object(Map::new())),
        value @ Value::Object(_) => Ok(value),
        other => {
            let found = crate::object::type_name(&other);
            Err(ArgsError::FileShape { path: path.to_owned(), found })
        }
    }
}

/// All arguments from outside as one mapping: those of the command line, then each file over them.
pub fn external(arguments: Value, files: impl IntoIterator<Item = Value>) -> Value {
    let mut merged = arguments;
    for file in files {
        merge(&mut merged, file);
    }
    merged
}

/// The arguments a project or library sees: the declared defaults, and what is `given` over them.
///
/// Arguments that are not declared are passed on. A default of null is none; an argument that is given as null is given.
///
/// # Errors
/// Names all declared arguments that have neither a default nor a value.
pub fn with_defaults(declared: &[ArgDeclaration], given: Value) -> Result<Value, ArgsError> {
    let mut args = Value::Object(Map::new());
    for declaration in declared {
        if let Some(default) = declaration.default.as_ref().filter(|default| !default.is_null()) {
            let mut nested = Value::Object(Map::new());
            set_at(&mut nested, &split_name(&declaration.name), default.clone());
            merge(&mut args, nested);
        }
    }
    merge(&mut args, given);
    let is_required =
        |declaration: &ArgDeclaration| declaration.default.as_ref().is_none_or(Value::is_null);
    let missing = |declaration: &&ArgDeclaration| {
        is_required(declaration) && get_at(&args, &split_name(&declaration.name)).is_none()
    };
    let names: Vec<String> =
        declared.iter().filter(missing).map(|declaration| declaration.name.clone()).collect();
    if names.is_empty() {
        return Ok(args);
    }
    let shown = |declaration: &ArgDeclaration| {
        let mark = if is_required(declaration) { " (required)" } else { "" };
        format!("{}{mark}", declaration.name)
    };
    Err(ArgsError::Required { names, known: declared.iter().map(shown).collect() })
}
