use serde_json::Value;

use crate::kustomize::{
    config::FieldSpecs,
    error::Result,
    id::scalar_text,
    resmap::ResMap,
    walk::{Missing, visit},
};

/// Which end of the name is extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affix {
    /// `namePrefix`.
    Prefix,
    /// `nameSuffix`.
    Suffix,
}

/// Kinds whose names mean something outside of the build.
fn keeps_name(kind: &str, group: &str) -> bool {
    matches!(kind, "CustomResourceDefinition" | "Namespace")
        || kind == "APIService" && group == "apiregistration.k8s.io"
}

/// `namePrefix` and `nameSuffix`: renames objects and remembers their former identity for references.
pub(crate) fn apply(map: &mut ResMap, affix: Affix, text: &str, specs: &FieldSpecs) -> Result<()> {
    for resource in map.iter_mut() {
        let original = resource.original_id().gvk;
        if keeps_name(&original.kind, &original.group) {
            continue;
        }
        for spec in &specs.0 {
            if !original.is_selected_by(&spec.gvk) {
                continue;
            }
            if spec.path == "metadata/name" && !text.is_empty() {
                match affix {
                    Affix::Prefix => resource.prefixes.push(text.to_owned()),
                    Affix::Suffix => resource.suffixes.push(text.to_owned()),
                }
                resource.remember_id();
            }
            visit(resource, spec, Missing::Scalar, &mut |value| {
                let old = scalar_text(value).ok_or("a name")?;
                *value = Value::String(match affix {
                    Affix::Prefix => format!("{text}{old}"),
                    Affix::Suffix => format!("{old}{text}"),
                });
                Ok(())
            })?;
        }
    }
    Ok(())
}
