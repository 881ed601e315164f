//! `configMapGenerator` and `secretGenerator`, and the name hash of what they make.

pub(crate) mod config_map_generator;
pub(crate) mod hash;
mod merge;
pub(crate) mod secret_generator;
mod sources;

pub(crate) use merge::absorb;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    decode::{Decode, Located, Node, decoded},
    error::{KustomizeError, Place, Result},
    files::Files,
    resource::{Behavior, Resource},
    schema::Schema,
};

decoded! {
    /// An entry of `configMapGenerator` or `secretGenerator`.
    pub(crate) struct GeneratorArgs {
        namespace: String = "namespace",
        name: String = "name",
        behavior: Behavior = "behavior",
        literals: Vec<Located<String>> = "literals",
        files: Vec<Located<String>> = "files",
        envs: Vec<Located<String>> = "envs",
        env: Option<Located<String>> = "env",
        options: Option<GeneratorOptions> = "options",
        /// Of secrets only.
        secret_type: Option<Located<String>> = "type",
    }
}

decoded! {
    /// `generatorOptions`, or `options` of a generator.
    pub(crate) struct GeneratorOptions {
        labels: BTreeMap<String, String> = "labels",
        annotations: BTreeMap<String, String> = "annotations",
        disable_name_suffix_hash: bool = "disableNameSuffixHash",
        immutable: bool = "immutable",
    }
}

impl Decode for Behavior {
    fn decode(node: &Node<'_>) -> Result<Self> {
        match String::decode(node)?.as_str() {
            "" | "create" => Ok(Self::Create),
            "replace" => Ok(Self::Replace),
            "merge" => Ok(Self::Merge),
            other => {
                let problem = node.place().problem(format!("unknown behavior \"{other}\""));
                Err(KustomizeError::Kustomization(Box::new(
                    problem.with_expected("create, replace or merge"),
                )))
            }
        }
    }
}

impl GeneratorOptions {
    /// These options over the ones for all generators. A switch that is on for all cannot be turned off, as in kustomize.
    fn over(own: Option<&Self>, all: Option<&Self>) -> Self {
        let mut merged = all.cloned().unwrap_or_default();
        if let Some(own) = own {
            merged.labels.extend(own.labels.clone());
            merged.annotations.extend(own.annotations.clone());
            merged.disable_name_suffix_hash |= own.disable_name_suffix_hash;
            merged.immutable |= own.immutable;
        }
        merged
    }
}

/// What generators work with.
pub(crate) struct Generator<'a> {
    pub files: Files<'a>,
    /// Directory that the generator's paths are relative to.
    pub dir: &'a str,
    /// `generatorOptions`.
    pub options: Option<&'a GeneratorOptions>,
    pub schema: &'a Schema,
}

impl Generator<'_> {
    /// The object without its data, and the data.
    fn start(
        &self,
        kind: &str,
        args: &Located<GeneratorArgs>,
    ) -> Result<(Resource, BTreeMap<String, Vec<u8>>)> {
        let Located { value: args, place } = args;
        if args.name.is_empty() {
            return Err(place.child("name").refuse(format!("a {kind} must have a name")));
        }
        let options = GeneratorOptions::over(args.options.as_ref(), self.options);
        let mut metadata = json!({"name": args.name});
        if !args.namespace.is_empty() {
            metadata["namespace"] = args.namespace.as_str().into();
        }
        for (field, entries) in [("labels", &options.labels), ("annotations", &options.annotations)]
        {
            if !entries.is_empty() {
                metadata[field] = json!(entries);
            }
        }
        let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        if options.immutable {
            value["immutable"] = true.into();
        }
        let mut resource = Resource::new(value, place.at.clone(), self.schema);
        resource.generated = true;
        resource.needs_hash = !options.disable_name_suffix_hash;
        resource.behavior = args.behavior;
        Ok((resource, sources::read(self.files, self.dir, args)?))
    }
}

/// Base64 as kustomize writes it into objects: in lines of 70 characters when it does not fit on one.
fn base64_lines(data: &[u8]) -> String {
    use base64::Engine as _;
    const WIDTH: usize = 70;
    let text = base64::engine::general_purpose::STANDARD.encode(data);
    if text.len() < WIDTH {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / WIDTH + 1);
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % WIDTH == 0 {
            lines.push('\n');
        }
        lines.push(character);
    }
    lines.push('\n');
    lines
}

/// Puts an entry of a ConfigMap into `data`, or into `binaryData` when it is no text.
fn insert_config(object: &mut Map<String, Value>, key: String, data: Vec<u8>) {
    let (field, text) = match String::from_utf8(data) {
        Ok(text) => ("data", text),
        Err(binary) => ("binaryData", base64_lines(binary.as_bytes())),
    };
    let entries = object.entry(field).or_insert_with(|| Map::new().into());
    if let Some(entries) = entries.as_object_mut() {
        entries.insert(key, text.into());
    }
}

/// The error for a generator's own field.
fn unknown_type(place: &Place) -> KustomizeError {
    let problem = place.problem("unknown field \"type\"");
    KustomizeError::Kustomization(Box::new(problem.with_hint("only secrets have a type")))
}

#[cfg(test)]
mod tests;
