//! YAML as Go reads and writes it.
//!
//! Kubernetes' tools read YAML in two dialects, and what a user's file means depends on both (see [`Schema`]). This module
//! turns text into JSON values with the place of every key and value, reads those into types by the rules of Go's JSON
//! decoder, and writes values the way `sigs.k8s.io/yaml` does.
//!
//! Beyond Go: duplicate keys are refused everywhere, and an entry next to a merge key (`<<`) overrides a merged one in both
//! dialects.

mod emit;
mod entries;
mod error;
mod gather;
mod number;
mod parse;
mod positions;
mod repair;
mod resolve;
mod suggest;
mod text;
mod text_or;
mod timestamp;
mod typed;

pub use emit::{emit, emit_documents};
pub use error::{Problem, YamlError};
pub use gather::from_document_gathering;
pub use positions::Positions;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub use suggest::closest;
pub use text_or::TextOr;

/// Which of Go's dialects a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// Configuration, vars and args: YAML 1.1 as `sigs.k8s.io/yaml` reads it. `yes` and `on` are booleans, dates stay text,
    /// integers beyond 2^53 lose digits.
    Config,
    /// Manifests as kustomize reads them: `yes` stays text, dates become RFC 3339 times, integers keep 64 bits.
    Manifest,
}

/// One YAML document: its value, and where everything is.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The content in JSON's data model.
    pub value: Value,
    /// Lines and columns.
    pub positions: Positions,
}

impl From<Value> for Document {
    /// A document that does not come from a text, so without positions.
    fn from(value: Value) -> Self {
        Self { value, positions: Positions::default() }
    }
}

/// All documents of `text` that are not null, in order. `file` is named in errors.
///
/// # Errors
/// When the text is not UTF-8 (or UTF-16 with a byte order mark), no YAML, has duplicate or unusable keys, values that JSON
/// lacks, or aliases that expand to too much.
pub fn parse_documents(
    file: &str,
    text: &[u8],
    schema: Schema,
) -> Result<Vec<Document>, YamlError> {
    let documents = parse::documents(text, schema, usize::MAX);
    let mut documents = documents.map_err(|error| error.in_file(file))?;
    documents.retain(|document| !document.value.is_null());
    Ok(documents)
}

/// As [`parse_documents`], but of a key that is written twice the last one counts, as it does for Helm.
///
/// # Errors
/// As [`parse_documents`], duplicate keys apart.
pub fn parse_documents_last_wins(
    file: &str,
    text: &[u8],
    schema: Schema,
) -> Result<Vec<Document>, YamlError> {
    let last_wins = parse::Duplicates::LastWins;
    let documents = parse::documents_with(text, schema, last_wins, usize::MAX);
    let mut documents = documents.map_err(|error| error.in_file(file))?;
    documents.retain(|document| !document.value.is_null());
    Ok(documents)
}

/// The first document of `text`; what follows it is not looked at. An empty text gives [`Value::Null`].
///
/// # Errors
/// As [`parse_documents`], for the first document.
pub fn parse_document(file: &str, text: &[u8], schema: Schema) -> Result<Document, YamlError> {
    let documents = parse::documents(text, schema, 1).map_err(|error| error.in_file(file))?;
    Ok(documents.into_iter().next().unwrap_or_else(|| Value::Null.into()))
}

/// Reads a document into a type by the rules of Go's JSON decoder in strict mode.
///
/// Field names match whatever their case, the exact spelling first; unknown fields are refused; numbers and booleans become
/// text where text is wanted (floats with 32-bit precision); null means "not given". Types must not use serde's `flatten`,
/// `untagged` or internal tags, which take all of this away; see [`TextOr`].
///
/// # Errors
/// Names the field, its place in `file`, and what was expected.
pub fn from_document<T: DeserializeOwned>(file: &str, document: &Document) -> Result<T, YamlError> {
    typed::read(&document.value, document.positions.0.as_ref()).map_err(|error| error.in_file(file))
}

/// As [`from_document`], for a value that has no text.
///
/// # Errors
/// Names the field and what was expected.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, YamlError> {
    typed::read(value, None)
}

#[cfg(test)]
mod tests;
