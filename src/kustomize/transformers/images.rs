use regex::Regex;
use serde_json::Value;

use crate::kustomize::{
    config::FieldSpecs,
    decode::Located,
    error::Result,
    kustomization::Image,
    resmap::ResMap,
    walk::{Missing, visit},
};

/// An entry of `images`: changes name, tag or digest of images, in every list called `containers` or `initContainers`
/// and in the fields specified. Custom resource definitions are left alone.
pub(crate) fn apply(map: &mut ResMap, image: &Located<Image>, specs: &FieldSpecs) -> Result<()> {
    let Some(change) = Change::new(&image.value) else { return Ok(()) };
    for resource in map.iter_mut() {
        if resource.kind() == "CustomResourceDefinition" {
            continue;
        }
        change.containers(&mut resource.value);
        for spec in &specs.0 {
            // Never created: an image cannot be changed where none is.
            visit(resource, spec, Missing::Ignore, &mut |value| match value {
                Value::String(text) => {
                    change.reference(text);
                    Ok(())
                }
                Value::Array(_) | Value::Object(_) => Err("an image reference"),
                _ => Ok(()),
            })?;
        }
    }
    Ok(())
}

struct Change<'a> {
    image: &'a Image,
    pattern: Regex,
}

impl<'a> Change<'a> {
    /// `None` when the name is no regular expression, which then matches nothing.
    fn new(image: &'a Image) -> Option<Self> {
        let pattern = format!(
            "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{{}}-]*)?$",
            image.name
        );
        Some(Self { image, pattern: Regex::new(&pattern).ok()? })
    }

    /// Changes the images of all containers at any depth.
    fn containers(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.containers(item)),
            Value::Object(map) => {
                for (key, entry) in map {
                    self.containers(entry);
                    if matches!(key.as_str(), "containers" | "initContainers") {
                        self.container_images(entry);
                    }
                }
            }
            _ => {}
        }
    }

    fn container_images(&self, containers: &mut Value) {
        for container in containers.as_array_mut().into_iter().flatten() {
            if let Some(Value::String(text)) = container.get_mut("image") {
                self.reference(text);
            }
        }
    }

    fn reference(&self, text: &mut String) {
        if !self.pattern.is_match(text) {
            return;
        }
        let (name, tag, digest) = split(text);
        let Image { new_name, tag_suffix, new_tag, digest: new_digest, .. } = self.image;
        let name = if new_name.is_empty() { name } else { new_name };
        // A new tag or digest replaces both.
        let (tag, digest) = if !new_tag.is_empty() || !new_digest.is_empty() {
            (new_tag.clone(), new_digest.as_str())
        } else if tag_suffix.is_empty() {
            (tag.to_owned(), digest)
        } else {
            (format!("{tag}{tag_suffix}"), "")
        };
        let tag = if tag.is_empty() { tag } else { format!(":{tag}") };
        let digest = if digest.is_empty() { String::new() } else { format!("@{digest}") };
        *text = format!("{name}{tag}{digest}");
    }
}

/// Name, tag and digest of an image reference; a port of the registry is no tag.
fn split(reference: &str) -> (&str, &str, &str) {
    let (rest, digest) = reference.split_once('@').unwrap_or((reference, ""));
    let path = rest.find('/').unwrap_or(0);
    match rest.get(path..).and_then(|tail| tail.find(':')) {
        Some(colon) => {
            let (name, tag) = rest.split_at(path + colon);
            (name, tag.get(1..).unwrap_or_default(), digest)
        }
        None => (rest, "", digest),
    }
}
