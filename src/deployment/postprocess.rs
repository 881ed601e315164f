//! Completes the objects of an item: labels, annotations, images (kluctl 2.28).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    FixedImageUse,
    images::{self, FixedImageList, ImageError},
    item::Item,
    metadata::{self, MetadataProblem},
};
use crate::object::{
    Object, ObjectRef,
    annotations::{DISCRIMINATOR_LABEL, ITEM_DIR_ANNOTATION, TAG_LABEL_PREFIX, is_set},
};

/// Why an object cannot be completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostprocessError {
    /// An image cannot be resolved.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A name, label or annotation that Kubernetes refuses.
    #[error("{}: {problem}", problem.field)]
    Metadata {
        /// The object.
        object: Box<ObjectRef>,
        /// What is wrong.
        problem: Box<MetadataProblem>,
    },
}

/// Completes `objects`, which kustomize built for `item`, and drops those with `kluctl.io/ignore`. Images that were resolved
/// are added to `uses`.
///
/// # Errors
/// The problems of all objects.
pub(super) fn postprocess(
    item: &Item,
    objects: Vec<Object>,
    discriminator: Option<&str>,
    fixed: &FixedImageList,
    uses: &mut Vec<FixedImageUse>,
) -> Result<Vec<Object>, Vec<PostprocessError>> {
    let labels = labels(item, discriminator);
    let annotations = annotations(item);
    let image_use = image_use(item);
    let variable = item.context.get("images");
    let mut errors = Vec::new();
    let mut completed = Vec::with_capacity(objects.len());
    for mut object in objects {
        if is_set(&object, "kluctl.io/ignore") {
            continue;
        }
        let mapping = |value: &Value| value.is_null() || value.is_object();
        let metadata = &object.value()["metadata"];
        if mapping(&metadata["labels"]) && mapping(&metadata["annotations"]) {
            complete(&mut object, &labels, &annotations);
        }
        let refused = metadata::problems(&object);
        if !refused.is_empty() {
            let error = |problem| PostprocessError::Metadata {
                object: Box::new(object.reference()),
                problem: Box::new(problem),
            };
            errors.extend(refused.into_iter().map(error));
            continue;
        }
        match images::resolve(&mut object, fixed, variable, &image_use, uses) {
            Ok(()) => completed.push(object),
            Err(error) => errors.push(error.into()),
        }
    }
    if errors.is_empty() { Ok(completed) } else { Err(errors) }
}

fn complete(
    object: &mut Object,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    for (key, value) in labels {
        object.set_label(key, value);
    }
    for (key, value) in annotations {
        object.set_annotation(key, value);
    }
}

fn labels(item: &Item, discriminator: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = item.project.inherited.common_labels.clone();
    if let Some(discriminator) = discriminator.filter(|text| !text.is_empty()) {
        labels.insert(DISCRIMINATOR_LABEL.to_owned(), discriminator.to_owned());
    }
    for (index, tag) in item.tags.iter().enumerate() {
        labels.insert(format!("{TAG_LABEL_PREFIX}{index}"), tag.clone());
    }
    labels
}

fn annotations(item: &Item) -> BTreeMap<String, String> {
    let mut annotations = item.project.inherited.common_annotations.clone();
    let dir = item.shown_dir().unwrap_or_default();
    annotations.insert(ITEM_DIR_ANNOTATION.to_owned(), dir);
    if item.config.skip_delete_if_tags {
        annotations.insert("kluctl.io/skip-delete-if-tags".to_owned(), "true".to_owned());
    }
    annotations
}

/// What all image uses of the item have in common.
fn image_use(item: &Item) -> FixedImageUse {
    FixedImageUse {
        image: String::new(),
        result_image: String::new(),
        deployed_image: None,
        namespace: String::new(),
        object: ObjectRef::new("v1", "", None, ""),
        deployment: String::new(),
        container: String::new(),
        deploy_tags: item.tags.clone(),
        deployment_dir: item.render_dir().unwrap_or_default(),
    }
}
