//! The `kluctl.io` annotations of an object (kluctl 2.28), read at one place.

use super::Object;

/// Label that marks every object of a deployment with its discriminator.
pub const DISCRIMINATOR_LABEL: &str = "kluctl.io/discriminator";
/// Prefix of the labels `kluctl.io/tag-<n>` that carry an item's tags.
pub const TAG_LABEL_PREFIX: &str = "kluctl.io/tag-";
/// Annotation with the item's directory relative to the source root.
pub const ITEM_DIR_ANNOTATION: &str = "kluctl.io/deployment-item-dir";
/// Prefix of annotations that `validate` reports as results.
pub const VALIDATE_RESULT_PREFIX: &str = "validate-result.kluctl.io/";

/// A boolean as Go's `strconv.ParseBool` reads it; `None` for any other text.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The value of a boolean annotation. Missing and unreadable values count as `false`.
pub fn is_set(object: &Object, annotation: &str) -> bool {
    object.annotation(annotation).and_then(parse_bool).unwrap_or(false)
}

/// The values of all annotations `name` and `name-<digits>`, in the order of their keys.
pub fn numbered<'a>(object: &'a Object, name: &str) -> Vec<&'a str> {
    let Some(annotations) = object.value()["metadata"]["annotations"].as_object() else {
        return Vec::new();
    };
    let is_meant = |key: &str| {
        key.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty()
                || rest.strip_prefix('-').is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()))
        })
    };
    annotations
        .iter()
        .filter(|(key, _)| is_meant(key))
        .filter_map(|(_, value)| value.as_str())
        .collect()
}

/// Whether the object is to be deleted instead of applied (`kluctl.io/delete`).
pub fn is_delete(object: &Object) -> bool {
    is_set(object, "kluctl.io/delete")
}

/// Whether the object must never be deleted: `kluctl.io/skip-delete`, or Helm's resource policy `keep`.
pub fn is_skip_delete(object: &Object) -> bool {
    is_set(object, "kluctl.io/skip-delete")
        || object
            .annotation("helm.sh/resource-policy")
            .is_some_and(|policy| policy.trim() == "keep")
}

/// Whether the object is kept when a run is restricted by tags (`kluctl.io/skip-delete-if-tags`).
pub fn is_skip_delete_if_tags(object: &Object) -> bool {
    is_set(object, "kluctl.io/skip-delete-if-tags")
}

/// Whether a live object counts as ours whatever its managers and owners (`kluctl.io/force-managed`).
pub fn is_force_managed(object: &Object) -> bool {
    is_set(object, "kluctl.io/force-managed")
}

/// Whether readiness of the object is waited for (`kluctl.io/wait-readiness`).
pub fn is_wait_readiness(object: &Object) -> bool {
    is_set(object, "kluctl.io/wait-readiness")
}

/// Whether the object is left out of validation and always ready (`kluctl.io/validate-ignore`).
pub fn is_validate_ignore(object: &Object) -> bool {
    is_set(object, "kluctl.io/validate-ignore")
}

/// The user's own verdict on readiness (`kluctl.io/is-ready`), when readable.
pub fn is_ready(object: &Object) -> Option<bool> {
    object.annotation("kluctl.io/is-ready").and_then(parse_bool)
}

/// The tags in the labels `kluctl.io/tag-<n>`, in the order of their keys.
pub fn tags(object: &Object) -> Vec<&str> {
    let labels = object.value()["metadata"]["labels"].as_object();
    let is_tag = |key: &str| {
        key.strip_prefix(TAG_LABEL_PREFIX)
            .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    };
    labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_tag(key))
        .filter_map(|(_, value)| value.as_str())
        .collect()
}

/// The item directory recorded on the object.
pub fn item_dir(object: &Object) -> Option<&str> {
    object.annotation(ITEM_DIR_ANNOTATION)
}

/// The discriminator recorded on the object.
pub fn discriminator(object: &Object) -> Option<&str> {
    object.label(DISCRIMINATOR_LABEL)
}
