use super::{Patching, inline, json6902::Operations};
use crate::kustomize::{
    decode::Located, error::Result, kustomization::Patch, resmap::ResMap, selector::Selector,
};

/// An entry of `patchesJson6902`, read and ready.
pub(crate) struct Prepared {
    operations: Operations,
    target: Selector,
}

/// Reads an entry of `patchesJson6902`.
///
/// # Errors
/// When its target has no name, or it has no operations.
pub(crate) fn prepare(patching: &Patching<'_>, entry: &Located<Patch>) -> Result<Prepared> {
    let Located { value: Patch { path, inline: patch, target, .. }, place } = entry;
    let target = target
        .as_ref()
        .filter(|target| !target.value.written.name.is_empty())
        .ok_or_else(|| place.child("target").refuse("the target needs a name"))?;
    let text = match (path, patch) {
        (Some(path), None) => patching.file(&path.value, &path.place)?,
        (None, Some(patch)) => inline(&patch.value, &patch.place),
        (Some(_), Some(_)) => return Err(place.refuse("`path` and `patch` exclude each other")),
        (None, None) => return Err(place.refuse("either `path` or `patch` is needed")),
    };
    let operations = patching.parse_operations(&text)?;
    if operations.is_empty() {
        return Err(place.refuse("the patch is empty"));
    }
    Ok(Prepared { operations, target: target.value.clone() })
}

impl Prepared {
    /// Applies the operations to all objects selected.
    pub(crate) fn apply(&self, patching: &Patching<'_>, map: &mut ResMap) -> Result<()> {
        for resource in map.iter_mut().filter(|resource| self.target.matches(resource)) {
            self.operations.apply(resource)?;
            resource.update_scope(patching.schema);
        }
        Ok(())
    }
}
