use std::collections::BTreeMap;

use serde_json::Value;

use crate::kustomize::{
    config::{FieldSpec, FieldSpecs, TransformerConfig, refuse},
    decode::Located,
    error::Result,
    id::Gvk,
    kustomization::Label,
    resmap::ResMap,
    walk::{Missing, visit},
};

/// The fields that an entry of `labels` sets labels in.
///
/// # Errors
/// When the entry's own fields contradict the built-in ones about being created.
pub(crate) fn field_specs(
    label: &Located<Label>,
    config: &TransformerConfig,
) -> Result<FieldSpecs> {
    let Label {
        include_selectors, include_templates, include_volume_claim_templates, fields, ..
    } = &label.value;
    let build = || {
        let mut specs = FieldSpecs(fields.clone());
        specs.merge(&config.labels)?;
        if *include_selectors {
            specs.merge(&config.common_labels)?;
            return Ok(specs);
        }
        if *include_templates {
            specs.merge(&config.template_labels)?;
        }
        if *include_volume_claim_templates {
            specs.merge(&config.volume_claim_template_labels)?;
        }
        specs.merge_one(&FieldSpec::new(Gvk::default(), "metadata/labels", true))?;
        Ok(specs)
    };
    build().map_err(|conflict| refuse(&conflict, &label.place))
}

/// `labels` and `commonLabels`: sets labels in all the fields named.
pub(crate) fn apply(
    map: &mut ResMap,
    labels: &BTreeMap<String, String>,
    specs: &FieldSpecs,
) -> Result<()> {
    set_entries(map, labels, specs)
}

/// Sets entries of text in the mappings that the specifications lead to.
pub(super) fn set_entries(
    map: &mut ResMap,
    entries: &BTreeMap<String, String>,
    specs: &FieldSpecs,
) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    for resource in map.iter_mut() {
        for spec in &specs.0 {
            visit(resource, spec, Missing::Map, &mut |value| {
                let target = match value {
                    Value::Object(target) => target,
                    Value::Null => return Ok(()),
                    _ => return Err("a mapping"),
                };
                for (key, text) in entries {
                    target.insert(key.clone(), text.as_str().into());
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}
