use std::collections::BTreeMap;

use super::labels::set_entries;
use crate::kustomize::{config::FieldSpecs, error::Result, resmap::ResMap};

/// `commonAnnotations`: sets annotations on objects and pod templates.
pub(crate) fn apply(
    map: &mut ResMap,
    annotations: &BTreeMap<String, String>,
    specs: &FieldSpecs,
) -> Result<()> {
    set_entries(map, annotations, specs)
}
