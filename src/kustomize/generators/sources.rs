//! Where a generator's entries come from: `envs`, `literals` and `files`.

use std::collections::BTreeMap;

use super::GeneratorArgs;
use crate::{
    diagnostic::SourceLocation,
    kustomize::{
        decode::Located,
        error::{KustomizeError, Place, Result},
        files::Files,
    },
    tree::file_name,
};

type Data = BTreeMap<String, Vec<u8>>;

/// All entries of a generator.
///
/// # Errors
/// When a file cannot be read, an entry is malformed, or a key comes twice.
pub(super) fn read(files: Files<'_>, dir: &str, args: &GeneratorArgs) -> Result<Data> {
    let mut data = Data::new();
    for Located { value: path, place } in args.envs.iter().chain(&args.env) {
        let (file, text) = files.read(dir, path, place)?;
        for (key, value) in parse_env(&file, &text)? {
            insert(&mut data, key, value.into_bytes(), place)?;
        }
    }
    for Located { value: literal, place } in &args.literals {
        let (key, value) = literal
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            // It may be a secret value, so that only its place is told.
            .ok_or_else(|| wrong(place, "malformed entry".to_owned(), "key=value"))?;
        insert(&mut data, key.to_owned(), unquote(value).as_bytes().to_vec(), place)?;
    }
    for Located { value: source, place } in &args.files {
        let (key, path) = match source.split_once('=') {
            None => (file_name(source), source.as_str()),
            Some((key, path)) if !key.is_empty() && !path.is_empty() && !path.contains('=') => {
                (key, path)
            }
            Some(_) => {
                let problem = format!("malformed entry \"{source}\"");
                return Err(wrong(place, problem, "path or key=path"));
            }
        };
        let (_, text) = files.read(dir, path, place)?;
        insert(&mut data, key.to_owned(), text.to_vec(), place)?;
    }
    Ok(data)
}

fn wrong(place: &Place, problem: String, expected: &str) -> KustomizeError {
    KustomizeError::Kustomization(Box::new(place.problem(problem).with_expected(expected)))
}

fn insert(data: &mut Data, key: String, value: Vec<u8>, place: &Place) -> Result<()> {
    if data.contains_key(&key) {
        return Err(place.refuse(format!("key \"{key}\" is given twice")));
    }
    data.insert(key, value);
    Ok(())
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    value
}

/// Lines of `KEY=value`; a line without `=` is a key with an empty value.
fn parse_env(file: &str, text: &[u8]) -> Result<Vec<(String, String)>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut entries = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = std::str::from_utf8(line).map_err(|_| {
            let at = SourceLocation::new(file, index + 1, 1);
            Place { at, field: String::new() }.refuse("this line is no UTF-8 text")
        })?;
        let line = line.strip_suffix('\r').unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if !key.is_empty() {
            entries.push((key.to_owned(), value.to_owned()));
        }
    }
    Ok(entries)
}
