use super::{Patching, inline, merge_into, target_of};
use crate::kustomize::{
    decode::Located, error::Result, kustomization::PatchOptions, resmap::ResMap, resource::Resource,
};

/// Reads `patchesStrategicMerge`, whose entries are paths or the patches themselves.
pub(crate) fn prepare(
    patching: &Patching<'_>,
    entries: &[Located<String>],
) -> Result<Vec<Resource>> {
    let mut patches = Vec::new();
    for Located { value: entry, place } in entries {
        // A path has one line and is no mapping.
        let text = if entry.trim_end().contains('\n') || entry.contains(": ") {
            inline(entry, place)
        } else {
            patching.file(entry, place)?
        };
        patches.extend(patching.parse_merge(&text)?);
    }
    Ok(patches)
}

/// Reads patches written in place.
pub(crate) fn parse(patching: &Patching<'_>, text: &Located<String>) -> Result<Vec<Resource>> {
    patching.parse_merge(&inline(&text.value, &text.place))
}

/// Applies the patches in order.
pub(crate) fn apply(patching: &Patching<'_>, patches: &[Resource], map: &mut ResMap) -> Result<()> {
    for patch in patches {
        let at = target_of(map, patch)?;
        if let Some(target) = map.get_mut(at) {
            merge_into(target, patch, &PatchOptions::default(), patching.schema)?;
        }
        map.drop_empty();
        map.check_unique()?;
    }
    Ok(())
}
