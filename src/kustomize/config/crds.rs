use serde_json::{Map, Value};

use super::{Conflict, FieldSpec, FieldSpecs, NameReference, TransformerConfig, refuse};
use crate::{
    kustomize::{
        decode::{Located, Node},
        error::{KustomizeError, Result},
        files::Files,
        id::Gvk,
    },
    yaml::{self, Schema as YamlSchema},
};

/// Adds what the files of `crds` say about custom kinds. Despite the field's name these are OpenAPI definitions as
/// `openapi-gen` writes them (`{type name: {Schema: …}}`), with `x-kubernetes-*` extensions on the properties.
pub(crate) fn load_crds(
    files: Files<'_>,
    dir: &str,
    paths: &[Located<String>],
    config: &mut TransformerConfig,
) -> Result<()> {
    for Located { value: path, place } in paths {
        let (file, text) = files.read(dir, path, place)?;
        let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
        let node = Node::root(&file, &document);
        let definitions = document.value.as_object().ok_or_else(|| node.expected("a mapping"))?;
        let found = read_definitions(definitions).ok_or_else(|| {
            let problem = node.place().problem("no OpenAPI definitions");
            KustomizeError::Kustomization(Box::new(
                problem
                    .with_expected("a mapping of type names to definitions with `Schema`")
                    .with_hint("list manifests of custom resource definitions under `resources`"),
            ))
        })?;
        found
            .and_then(|found| config.merge(&found))
            .map_err(|conflict| refuse(&conflict, &node.place()))?;
    }
    Ok(())
}

fn read_definitions(
    definitions: &Map<String, Value>,
) -> Option<Result<TransformerConfig, Conflict>> {
    if !definitions.values().all(Value::is_object) {
        return None;
    }
    let mut config = TransformerConfig::default();
    for (name, definition) in definitions {
        let Some(properties) = properties(definition) else { continue };
        if !["apiVersion", "kind", "metadata"].iter().all(|key| properties.contains_key(*key)) {
            continue;
        }
        let kind = name.rsplit('.').next().unwrap_or(name);
        let gvk = Gvk { kind: kind.to_owned(), ..Gvk::default() };
        let mut walk = Walk { definitions, gvk, config: &mut config, open: vec![name] };
        if let Err(conflict) = walk.visit(properties, &[]) {
            return Some(Err(conflict));
        }
    }
    Some(Ok(config))
}

fn properties(definition: &Value) -> Option<&Map<String, Value>> {
    let schema = definition.get("Schema").or_else(|| definition.get("schema"))?;
    schema.get("properties")?.as_object()
}

struct Walk<'a> {
    definitions: &'a Map<String, Value>,
    gvk: Gvk,
    config: &'a mut TransformerConfig,
    /// Types being visited: definitions may refer to themselves.
    open: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(
        &mut self,
        properties: &'a Map<String, Value>,
        path: &[&'a str],
    ) -> Result<(), Conflict> {
        for (name, property) in properties {
            let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            let text = |key: &str| property.get(key).and_then(Value::as_str);
            if text("x-kubernetes-annotation").is_some() {
                self.config.common_annotations.merge_one(&self.spec(&path))?;
            }
            if text("x-kubernetes-label-selector").is_some() {
                self.config.common_labels.merge_one(&self.spec(&path))?;
            }
            if text("x-kubernetes-identity").is_some() {
                self.config.name_prefix.merge_one(&self.spec(&path))?;
            }
            let version = text("x-kubernetes-object-ref-api-version");
            if let (Some(version), Some(kind)) = (version, text("x-kubernetes-object-ref-kind")) {
                let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
                let field: Vec<&str> = path.iter().copied().chain([key]).collect();
                let target = Gvk { version: version.into(), kind: kind.into(), ..Gvk::default() };
                let referrers = FieldSpecs(vec![self.spec(&field)]);
                self.config.merge_reference(&NameReference { target, referrers })?;
            }
            let definition = text("$ref").and_then(|name| self.definitions.get_key_value(name));
            if let Some((name, definition)) = definition
                && let Some(properties) = self::properties(definition)
                && !self.open.contains(&name.as_str())
            {
                self.open.push(name);
                self.visit(properties, &path)?;
                self.open.pop();
            }
        }
        Ok(())
    }

    fn spec(&self, path: &[&str]) -> FieldSpec {
        FieldSpec::new(self.gvk.clone(), path.join("/"), false)
    }
}
