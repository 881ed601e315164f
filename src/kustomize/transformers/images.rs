use regex::Regex;
use serde_json::Value;

use crate::kustomize::{
    config::FieldSpecs,
    decode::Located,
    error::Result,
    kustomization::Image,
    pattern,
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
    /// For names that are not plain.
    pattern: Option<Regex>,
}

impl<'a> Change<'a> {
    /// `None` when the name is no regular expression, which then matches nothing.
    fn new(image: &'a Image) -> Option<Self> {
        if pattern::is_plain(&image.name) {
            return Some(Self { image, pattern: None });
        }
        let pattern = format!(
            "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{{}}-]*)?$",
            image.name
        );
        Some(Self { image, pattern: Some(Regex::new(&pattern).ok()?) })
    }

    fn matches(&self, text: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(text),
            None => pattern::prefix_matched(&self.image.name, text).is_some_and(is_tag_and_digest),
        }
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
        if !self.matches(text) {
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

/// Whether a text is what may follow the name of an image: a tag, a digest, both or nothing.
fn is_tag_and_digest(text: &str) -> bool {
    let is_tag = |c: char| c.is_ascii_alphanumeric() || "_.{}-".contains(c);
    let rest = text.strip_prefix(':').map_or(text, |tag| tag.trim_start_matches(is_tag));
    let Some(digest) = rest.strip_prefix('@') else { return rest.is_empty() };
    let Some((algorithm, hash)) = digest.split_once(':') else { return false };
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    algorithm.split(['.', '+', '_', '-']).all(is_word) && hash.chars().all(is_tag)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_match_as_regular_expressions_do() {
        let texts = [
            "nginx",
            "nginx:1.2",
            "nginx:",
            "nginx@sha256:0a",
            "nginx:1@sha256:0a",
            "nginxx",
            "nginx:1:2",
            "xnginx",
            "nginx@sha256",
            "nginx@sha+b2:0a",
            "nginx@+a:0",
            "nginx@a..b:0",
            "nginx:a b",
            "nginx@:0",
            "registry:5000/a",
            "registry:5000/a:v1",
            "registry:5000",
            "nginx:{}",
            "nginx:1@",
            "nginx\n",
        ];
        for name in ["nginx", "registry:5000/a", "registry", "n.inx", ""] {
            let image = Image { name: name.to_owned(), ..Image::default() };
            let plain = Change::new(&image).unwrap();
            assert!(plain.pattern.is_none());
            let grouped = Image { name: format!("({name})"), ..Image::default() };
            let regex = Change::new(&grouped).unwrap();
            for text in texts {
                assert_eq!(plain.matches(text), regex.matches(text), "{name} on {text:?}");
            }
        }
    }
}
