//! Resolves the placeholders that `images.get_image` leaves in rendered manifests (kluctl 2.28).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use regex::Regex;
use serde_json::Value;

use super::FixedImageUse;
use crate::{
    diagnostic::FieldPath,
    jinja::{IMAGE_BEGIN, IMAGE_END},
    object::{Object, ObjectRef},
    schema::{FixedImage, Violations},
    yaml,
};

/// Why an image cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No entry fits.
    #[error("no fixed image for {image:?}")]
    NotFixed {
        /// The image asked for.
        image: String,
        /// The object that asks.
        object: String,
        /// The field that asks.
        field: FieldPath,
    },
    /// A placeholder that `get_image` did not write.
    #[error("broken image placeholder")]
    Placeholder {
        /// The object that has it.
        object: String,
        /// The field that has it.
        field: FieldPath,
    },
    /// The variable `images` is no list of fixed images.
    #[error("variable `images` is no list of fixed images: {problem}")]
    Variable {
        /// What is wrong.
        problem: String,
    },
}

/// A list of fixed images with compiled patterns. Later entries win.
pub(super) struct FixedImageList {
    entries: Vec<(FixedImage, Option<Regex>)>,
}

/// Where an image is asked for.
struct Request<'a> {
    image: &'a str,
    object: &'a ObjectRef,
    namespace: &'a str,
    deployment: &'a str,
    container: &'a str,
}

impl FixedImageList {
    /// Compiles a list that was checked; patterns that are none match nothing.
    pub(super) fn new(images: Vec<FixedImage>) -> Self {
        let compile = |image: FixedImage| {
            let pattern = image.image_regex.as_deref().and_then(|text| Regex::new(text).ok());
            (image.image.is_some() || pattern.is_some()).then_some((image, pattern))
        };
        Self { entries: images.into_iter().filter_map(compile).collect() }
    }

    /// The list in the variable `images`, empty when there is none.
    fn of_variable(value: Option<&Value>) -> Result<Self, ImageError> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(Self { entries: Vec::new() });
        };
        let fail = |problem: String| ImageError::Variable { problem };
        let images: Vec<FixedImage> =
            yaml::from_value(value).map_err(|error| fail(error.to_string()))?;
        let mut violations = Violations::default();
        for (index, image) in images.iter().enumerate() {
            image.check(&FieldPath::root().child("images").child(index), &mut violations);
        }
        match violations.into_vec().first() {
            Some(violation) => Err(fail(format!("{} {}", violation.path, violation.message))),
            None => Ok(Self::new(images)),
        }
    }

    fn resolve(&self, request: &Request<'_>) -> Option<&str> {
        let is_any_or = |wanted: &Option<String>, actual: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == actual)
        };
        let mut latest_first = self.entries.iter().rev();
        let entry = latest_first.find(|(entry, pattern)| {
            is_any_or(&entry.image, request.image)
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(request.image))
                && entry.object.as_ref().is_none_or(|wanted| is_object(wanted, request.object))
                && is_any_or(&entry.namespace, request.namespace)
                && is_any_or(&entry.deployment, request.deployment)
                && is_any_or(&entry.container, request.container)
        });
        entry.map(|(entry, _)| entry.result_image.as_str())
    }
}

/// Whether `object` is the wanted one, as far as that is given. Its API version within the group says nothing about that.
fn is_object(wanted: &ObjectRef, object: &ObjectRef) -> bool {
    let is_any_or = |wanted: &str, actual: &str| wanted.is_empty() || wanted == actual;
    is_any_or(&wanted.group, &object.group)
        && is_any_or(&wanted.kind, &object.kind)
        && is_any_or(&wanted.name, &object.name)
        && (wanted.namespace.is_none() || wanted.namespace == object.namespace)
}

/// Resolves the placeholders in `object` and records each in `uses`, whose fields about the item are taken from `item`.
/// `fixed` is asked first, then the variable `images`.
pub(super) fn resolve(
    object: &mut Object,
    fixed: &FixedImageList,
    variable: Option<&Value>,
    item: &FixedImageUse,
    uses: &mut Vec<FixedImageUse>,
) -> Result<(), ImageError> {
    if !has_placeholder(object.value()) {
        return Ok(());
    }
    let reference = object.reference();
    let pattern = FixedImageUse {
        namespace: reference.namespace.clone().unwrap_or_default(),
        deployment: format!("{}/{}", reference.kind, reference.name),
        object: reference,
        ..item.clone()
    };
    let variable = FixedImageList::of_variable(variable)?;
    let mut resolver = Resolver { lists: [fixed, &variable], pattern, uses };
    resolver.tree(object.value_mut(), "", &FieldPath::root())
}

fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(IMAGE_BEGIN),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(entries) => entries.values().any(has_placeholder),
        _ => false,
    }
}

struct Resolver<'a> {
    lists: [&'a FixedImageList; 2],
    /// A use with everything filled in but image, result and container.
    pattern: FixedImageUse,
    uses: &'a mut Vec<FixedImageUse>,
}

impl Resolver<'_> {
    /// Resolves below `value`; `container` is the name beside it in the enclosing mapping.
    fn tree(
        &mut self,
        value: &mut Value,
        container: &str,
        path: &FieldPath,
    ) -> Result<(), ImageError> {
        match value {
            Value::String(text) if text.contains(IMAGE_BEGIN) => {
                *text = self.text(text, container, path)?;
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.tree(item, "", &path.child(index))?;
                }
            }
            Value::Object(entries) => {
                let name = entries.get("name").and_then(Value::as_str).unwrap_or_default();
                let name = name.to_owned();
                for (key, value) in entries.iter_mut() {
                    self.tree(value, &name, &path.child(key.as_str()))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(
        &mut self,
        text: &str,
        container: &str,
        path: &FieldPath,
    ) -> Result<String, ImageError> {
        let shown = self.pattern.object.to_string();
        let broken = || ImageError::Placeholder { object: shown.clone(), field: path.clone() };
        let mut resolved = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(IMAGE_BEGIN) {
            let (placeholder, tail) = after.split_once(IMAGE_END).ok_or_else(broken)?;
            let image = decode(placeholder).ok_or_else(broken)?;
            let result = self.image(&image, container).ok_or_else(|| ImageError::NotFixed {
                image,
                object: shown.clone(),
                field: path.clone(),
            })?;
            resolved.push_str(before);
            resolved.push_str(&result);
            rest = tail;
        }
        resolved.push_str(rest);
        Ok(resolved)
    }

    fn image(&mut self, image: &str, container: &str) -> Option<String> {
        let pattern = &self.pattern;
        let (namespace, deployment) = (pattern.namespace.as_str(), pattern.deployment.as_str());
        let object = &pattern.object;
        let request = Request { image, object, namespace, deployment, container };
        let result = self.lists.iter().find_map(|list| list.resolve(&request))?.to_owned();
        self.uses.push(FixedImageUse {
            image: image.to_owned(),
            result_image: result.clone(),
            container: container.to_owned(),
            ..self.pattern.clone()
        });
        Some(result)
    }
}

fn decode(placeholder: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(placeholder).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    Some(value["image"].as_str()?.to_owned())
}
