use schemars::{Schema, SchemaGenerator, json_schema};

/// Serde default of switches that are on unless turned off.
pub(super) const fn default_true() -> bool {
    true
}

/// Whether a value equals its type's default and need not be written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A mapping with any content.
pub(super) fn preserved_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
