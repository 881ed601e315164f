use serde_json::Value;

use super::{
    Parsed, Patching, Text, inline, json6902::Operations, merge_into, patch_error, target_of,
};
use crate::kustomize::{
    decode::Located,
    error::{KustomizeError, Result},
    id::scalar_text,
    kustomization::{Patch, PatchOptions},
    resmap::ResMap,
    resource::Resource,
    selector::Selector,
};

/// An entry of `patches`, read and ready.
pub(crate) enum Prepared {
    /// Strategic merge patches that name their objects.
    Named { patches: Vec<Resource>, options: PatchOptions },
    /// One strategic merge patch for the objects selected.
    Selected { patch: Box<Resource>, target: Selector, options: PatchOptions },
    /// JSON 6902 operations for the objects selected.
    Operations { operations: Operations, target: Selector },
}

/// Reads an entry of `patches`.
///
/// # Errors
/// When it is neither kind of patch, or lacks the target it needs.
pub(crate) fn prepare(patching: &Patching<'_>, entry: &Located<Patch>) -> Result<Prepared> {
    let Located { value: Patch { path, inline, target, options }, place } = entry;
    let text = text_of(patching, entry, path.as_ref(), inline.as_ref())?;
    match (patching.parse(&text)?, target) {
        (Parsed::Operations(operations), Some(target)) => {
            Ok(Prepared::Operations { operations, target: target.value.clone() })
        }
        (Parsed::Operations(_), None) => {
            let problem = place.problem("a JSON 6902 patch needs a target");
            let hint = "add `target` with kind and name";
            Err(KustomizeError::Kustomization(Box::new(problem.with_hint(hint))))
        }
        (Parsed::Merge(patches), None) => Ok(Prepared::Named { patches, options: options.clone() }),
        (Parsed::Merge(mut patches), Some(target)) => match (patches.pop(), patches.is_empty()) {
            (Some(patch), true) => Ok(Prepared::Selected {
                patch: Box::new(with_texts_for_labels(patch)),
                target: target.value.clone(),
                options: options.clone(),
            }),
            (None, _) => Ok(Prepared::Named { patches, options: options.clone() }),
            (Some(_), false) => {
                let message = "several strategic merge patches cannot share one target";
                let problem = target.place.problem(message);
                Err(KustomizeError::Kustomization(Box::new(
                    problem.with_hint("remove the target, or write one entry for each patch"),
                )))
            }
        },
    }
}

/// Labels are texts, which kustomize sees to where a patch has a target.
fn with_texts_for_labels(mut patch: Resource) -> Resource {
    let labels = patch.value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    for value in labels.into_iter().flat_map(|labels| labels.values_mut()) {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = scalar_text(value).unwrap_or_default().into();
        }
    }
    patch
}

fn text_of(
    patching: &Patching<'_>,
    entry: &Located<Patch>,
    path: Option<&Located<String>>,
    patch: Option<&Located<String>>,
) -> Result<Text> {
    let given = |field: Option<&Located<String>>| field.is_some_and(|f| !f.value.trim().is_empty());
    match (path.filter(|_| given(path)), patch.filter(|_| given(patch))) {
        (Some(path), None) => patching.file(&path.value, &path.place),
        (None, Some(patch)) => Ok(inline(patch.value.trim(), &patch.place)),
        (Some(_), Some(_)) => Err(entry.place.refuse("`path` and `patch` exclude each other")),
        (None, None) => Err(entry.place.refuse("either `path` or `patch` is needed")),
    }
}

impl Prepared {
    /// Whether a strategic merge patch will be applied.
    pub(crate) fn merges_into(&self, map: &ResMap) -> bool {
        match self {
            Self::Named { patches, .. } => !patches.is_empty(),
            Self::Selected { target, .. } => map.iter().any(|resource| target.matches(resource)),
            Self::Operations { .. } => false,
        }
    }

    /// Applies the patches.
    pub(crate) fn apply(&self, patching: &Patching<'_>, map: &mut ResMap) -> Result<()> {
        let schema = patching.schema;
        match self {
            Self::Named { patches, options } => {
                for patch in patches {
                    let at = target_of(map, patch)?;
                    if let Some(target) = map.get_mut(at) {
                        if target.is_empty() {
                            let message = format!("{} was deleted by a patch", patch.id());
                            return Err(patch_error(patch, message, "remove this patch"));
                        }
                        merge_into(target, patch, options, schema)?;
                    }
                }
                Ok(())
            }
            Self::Selected { patch, target, options } => {
                for resource in map.iter_mut().filter(|resource| target.matches(resource)) {
                    merge_into(resource, patch, options, schema)?;
                }
                map.drop_empty();
                map.check_unique()
            }
            Self::Operations { operations, target } => {
                for resource in map.iter_mut().filter(|resource| target.matches(resource)) {
                    resource.remember_id();
                    operations.apply(resource)?;
                    resource.update_scope(schema);
                }
                Ok(())
            }
        }
    }
}
