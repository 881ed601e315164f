use std::fmt;

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

/// A string or a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A single value.
    One(String),
    /// Several values.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The values in order.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not derived, so that an error names the entry at fault and what was expected.
        deserializer.deserialize_any(OneOrManyVisitor)
    }
}

struct OneOrManyVisitor;

impl<'de> Visitor<'de> for OneOrManyVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<OneOrMany, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany::Many)
    }
}

/// An entry of `ignoreForDiff` (kluctl 2.28).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoreRule {
    /// JSON paths of ignored fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<OneOrMany>,
    /// Unanchored regular expressions on the paths of leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path_regex: Option<OneOrMany>,
    /// Only objects of this API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only objects of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only objects of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What to do with a field that another field manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictAction {
    /// Leave the field to its owner, silently.
    Ignore,
    /// Take the field over.
    ForceApply,
}

/// An entry of `conflictResolution` (kluctl 2.28).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConflictRule {
    /// JSON paths of the fields meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<OneOrMany>,
    /// Unanchored regular expressions on the paths of leaves of the rendered object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path_regex: Option<OneOrMany>,
    /// Unanchored regular expressions on the name of the field manager that owns the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<OneOrMany>,
    /// Only objects of this API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only objects of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only objects of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What to do.
    pub action: ConflictAction,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Schema, from_document, parse_document};

    fn read(text: &str) -> Result<IgnoreRule, String> {
        let document = parse_document("x.yaml", text.as_bytes(), Schema::Config).unwrap();
        from_document("x.yaml", &document).map_err(|error| error.to_string())
    }

    #[test]
    fn one_or_many_strings_say_what_is_wrong() {
        let many = OneOrMany::Many(vec!["a".into(), "1".into()]);
        assert_eq!(read("fieldPath: [a, 1]\n").unwrap().field_path, Some(many));
        assert_eq!(read("fieldPath: a\n").unwrap().field_path, Some(OneOrMany::One("a".into())));
        insta::assert_snapshot!(
            read("fieldPath: 1\n").unwrap_err(),
            @"x.yaml:1:1: fieldPath: found the number 1, expected a string or a list of strings"
        );
        insta::assert_snapshot!(
            read("fieldPath: [a, {b: c}]\n").unwrap_err(),
            @"x.yaml:1:16: fieldPath[1]: found a mapping, expected a string"
        );
    }
}
