use serde_json::{Map, Value};

use super::{Context, configuration::Configuration, transformer::typed};
use crate::{
    kustomize::{
        config::{FieldSpecs, split_path},
        decode::{Decode, Located, Node, decoded},
        error::Result,
        id::scalar_text,
        resmap::ResMap,
        resource::Resource,
        selector::Selector,
        transformers::namespace::{NamespaceTransformer, Subjects},
        walk::misfit,
    },
    object::type_name,
    tree::file_name,
    yaml::{self, Schema as YamlSchema},
};

decoded! {
    pub(crate) struct Written {
        value: String = "value",
        targets: Vec<Located<Target>> = "targets",
        file: Option<Located<String>> = "targetFilePath",
    }
}

decoded! {
    pub(crate) struct TargetFile {
        targets: Vec<Located<Target>> = "targets",
    }
}

decoded! {
    pub(crate) struct Target {
        selector: Option<Selector> = "selector",
        path: String = "fieldPath",
        position: i64 = "filePathPosition",
    }
}

/// `ValueAddTransformer`: puts one text into fields, or into the file paths that they hold.
pub(super) struct ValueAdd {
    value: String,
    targets: Vec<Located<Target>>,
}

impl ValueAdd {
    pub(super) fn read(context: &Context<'_>, configuration: &Configuration) -> Result<Self> {
        let Written { value, mut targets, file } = typed(configuration)?;
        let value = match value.trim() {
            "" => file_name(context.dir).to_owned(),
            value => value.to_owned(),
        };
        if let Some(Located { value: path, place }) = file {
            let (file, text) = context.files.read(context.dir, &path, &place)?;
            let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
            targets.extend(TargetFile::decode(&Node::root(&file, &document))?.targets);
        }
        if targets.is_empty() {
            return Err(configuration.place().refuse("at least one target is needed"));
        }
        for Located { value: target, place } in &targets {
            if target.path.is_empty() {
                return Err(place.child("fieldPath").refuse("missing"));
            }
            if target.position < 0 {
                return Err(place.child("filePathPosition").refuse("found a negative number"));
            }
        }
        Ok(Self { value, targets })
    }

    pub(super) fn apply(&self, map: &mut ResMap) -> Result<()> {
        for Located { value: target, .. } in &self.targets {
            let is_selected = |resource: &Resource| {
                target.selector.as_ref().is_none_or(|selector| selector.matches(resource))
            };
            for resource in map.iter_mut().filter(|resource| is_selected(resource)) {
                self.add(resource, target)?;
            }
        }
        Ok(())
    }

    fn add(&self, resource: &mut Resource, target: &Target) -> Result<()> {
        if target.path == "metadata/namespace" {
            let specs = FieldSpecs::default();
            let subjects = Subjects::default();
            let namespace = &self.value;
            return NamespaceTransformer { namespace, specs: &specs, unset_only: false, subjects }
                .apply_to(resource);
        }
        let position = usize::try_from(target.position).unwrap_or_default();
        let mut field = &mut resource.value;
        for step in split_path(&target.path, '/') {
            if field.is_null() {
                *field = Value::Object(Map::new());
            }
            let Value::Object(map) = field else {
                let found = type_name(field);
                return Err(misfit(resource, &target.path, found, "a mapping"));
            };
            field = map.entry(step).or_insert(Value::Null);
        }
        let Some(old) = scalar_text(field) else {
            let found = type_name(field);
            return Err(misfit(resource, &target.path, found, "a text"));
        };
        *field = match position {
            0 => self.value.clone(),
            position => insert_part(&old, position - 1, &self.value),
        }
        .into();
        Ok(())
    }
}

/// Inserts a part into a file path; beyond its end, at the end. Absolute paths stay absolute.
fn insert_part(path: &str, index: usize, part: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(index.min(parts.len()), part);
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::insert_part;

    #[test]
    fn parts_are_inserted_into_paths() {
        for (path, index, expected) in [
            ("", 0, "x"),
            ("/", 0, "/x"),
            ("a", 0, "x/a"),
            ("/a", 0, "/x/a"),
            ("a/b/c", 2, "a/b/x/c"),
            ("/a", 9, "/a/x"),
        ] {
            assert_eq!(insert_part(path, index, "x"), expected, "{path}");
        }
    }
}
