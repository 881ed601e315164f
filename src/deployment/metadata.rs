//! What Kubernetes refuses about names, labels and annotations, found before anything is sent.

use serde_json::{Map, Value};

use crate::{
    diagnostic::FieldPath,
    object::{Object, annotations::TAG_LABEL_PREFIX, type_name},
};

/// A name, label or annotation that every API server refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MetadataProblem {
    /// The field, from the object's root.
    pub field: FieldPath,
    /// What is wrong.
    pub message: String,
    /// What would have been accepted.
    pub expected: String,
    /// What to do, where that is not plain.
    pub hint: Option<String>,
}

/// Groups whose kinds all take names in the form of a DNS subdomain. In other groups some names may have more characters.
const DNS_GROUPS: [&str; 12] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "scheduling.k8s.io",
];

const MAX_ANNOTATIONS: usize = 256 << 10;
const DNS_SUBDOMAIN: &str = "lower case letters, digits, `-` and `.`, with a letter or digit at both ends of each part, \
                             at most 253 characters";
const DNS_LABEL: &str = "lower case letters, digits and `-`, with a letter or digit at both ends, at most 63 characters";
const LABEL_VALUE: &str =
    "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
const QUALIFIED_NAME: &str = "a name of at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, \
                              if need be behind a DNS name and `/`";

/// All that is wrong with the object's metadata, and with that of the pods it makes.
pub(super) fn problems(object: &Object) -> Vec<MetadataProblem> {
    let mut found = Problems(Vec::new());
    let root = FieldPath::root();
    found.names(object, &root.child("metadata"));
    found.metadata(&object.value()["metadata"], &root.child("metadata"));
    let group = object.reference().group;
    if matches!(group.as_str(), "apps" | "batch") {
        let template = &object.value()["spec"]["template"]["metadata"];
        found.metadata(template, &root.child("spec").child("template").child("metadata"));
    }
    found.0
}

struct Problems(Vec<MetadataProblem>);

impl Problems {
    fn add(&mut self, field: FieldPath, message: String, expected: &str) -> &mut MetadataProblem {
        let expected = expected.to_owned();
        self.0.push(MetadataProblem { field, message, expected, hint: None });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    fn names(&mut self, object: &Object, metadata: &FieldPath) {
        let reference = object.reference();
        let name = &*reference.name;
        let is_label =
            reference.group.is_empty() && matches!(&*reference.kind, "Namespace" | "Service");
        let is_subdomain = DNS_GROUPS.contains(&&*reference.group) && reference.kind != "IPAddress";
        let (fits, expected) = if is_label {
            (is_dns_label(name), DNS_LABEL)
        } else if is_subdomain {
            (is_dns_subdomain(name), DNS_SUBDOMAIN)
        } else {
            let fits = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
            (fits, "a name without `/` and `%`")
        };
        if !fits {
            let message = format!("{name:?} is no name that {} can have", reference.kind);
            self.add(metadata.child("name"), message, expected);
        }
        if let Some(namespace) = &reference.namespace
            && !namespace.is_empty()
            && !is_dns_label(namespace)
        {
            let message = format!("{namespace:?} is no name of a namespace");
            self.add(metadata.child("namespace"), message, DNS_LABEL);
        }
    }

    fn metadata(&mut self, metadata: &Value, path: &FieldPath) {
        for (key, value) in self.entries(metadata, "labels", path) {
            let field = || path.child("labels").child(key.as_str());
            if !is_qualified_name(key) {
                self.add(field(), format!("{key:?} is no label"), QUALIFIED_NAME);
            }
            let Some(text) = self.text(value, field) else { continue };
            // Of tags there was a warning; a render is no less complete for them.
            if !is_label_value(text) && !key.starts_with(TAG_LABEL_PREFIX) {
                let message = format!("{text:?} is no value that a label can have");
                self.add(field(), message, LABEL_VALUE);
            }
        }
        let mut bytes = 0;
        for (key, value) in self.entries(metadata, "annotations", path) {
            let field = || path.child("annotations").child(key.as_str());
            if !is_qualified_name(&key.to_lowercase()) {
                self.add(field(), format!("{key:?} is no annotation"), QUALIFIED_NAME);
            }
            bytes += key.len() + self.text(value, field).map_or(0, str::len);
        }
        if bytes > MAX_ANNOTATIONS {
            let message = format!("the annotations have {bytes} bytes");
            self.add(path.child("annotations"), message, "at most 262144 bytes");
        }
    }

    /// The entries of a mapping below `metadata`.
    fn entries<'a>(
        &mut self,
        metadata: &'a Value,
        name: &str,
        path: &FieldPath,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        let entries = match metadata.get(name) {
            Some(Value::Object(entries)) => Some(entries),
            None | Some(Value::Null) => None,
            Some(other) => {
                let message = format!("is {}", type_name(other));
                self.add(path.child(name), message, "a mapping of texts");
                None
            }
        };
        entries.into_iter().flat_map(Map::iter)
    }

    /// The text of a label or annotation; null counts as an empty one.
    fn text<'a>(&mut self, value: &'a Value, field: impl Fn() -> FieldPath) -> Option<&'a str> {
        match value {
            Value::String(text) => Some(text),
            Value::Null => Some(""),
            other => {
                let problem = self.add(field(), format!("is {}", type_name(other)), "a text");
                problem.hint = (!other.is_object() && !other.is_array())
                    .then(|| format!("quote it: \"{other}\""));
                None
            }
        }
    }
}

fn is_dns_label(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || c == '-')
}

fn is_dns_subdomain(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
}

/// Whether a label can have this value.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(object: Value) -> Vec<String> {
        let object = Object::new(object).unwrap();
        problems(&object).iter().map(|one| format!("{}: {}", one.field, one.message)).collect()
    }

    #[test]
    fn valid_metadata_passes() {
        for object in [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "a.b-1", "namespace": "ns",
                "labels": {"a": "", "app.kubernetes.io/name": "A_b.c", "n": null, "kluctl.io/tag-0": "a b"},
                "annotations": {"Example.com/Any_Key": "any text\nat all"},
            }}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "system:Reader"}}),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
                "metadata": {"name": "2001:db8::1"}}),
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "A_b:c"}}),
        ] {
            assert_eq!(told(object), Vec::<String>::new());
        }
    }

    #[test]
    fn names_and_labels_that_every_server_refuses_are_told() {
        insta::assert_snapshot!(told(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a.b", "namespace": "A", "labels": {
                "a b": "x", "ok": "not/ok", "number": 1, "list": [], "x/y/z": "a", "long": "x".repeat(64),
            }, "annotations": {"-": "x", "flag": true}},
        })).join("\n"), @r#"
        metadata.name: "a.b" is no name that Service can have
        metadata.namespace: "A" is no name of a namespace
        metadata.labels["a b"]: "a b" is no label
        metadata.labels.list: is a list
        metadata.labels.long: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is no value that a label can have
        metadata.labels.number: is a number
        metadata.labels.ok: "not/ok" is no value that a label can have
        metadata.labels["x/y/z"]: "x/y/z" is no label
        metadata.annotations["-"]: "-" is no annotation
        metadata.annotations.flag: is a boolean
        "#);
        insta::assert_snapshot!(told(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "Under_score", "labels": ["a"]},
            "spec": {"template": {"metadata": {"labels": {"app": "a b"}}}},
        })).join("\n"), @r#"
        metadata.name: "Under_score" is no name that Deployment can have
        metadata.labels: is a list
        spec.template.metadata.labels.app: "a b" is no value that a label can have
        "#);
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "T", "metadata": {"name": "a/b"}});
        assert_eq!(told(object), ["metadata.name: \"a/b\" is no name that T can have"]);
    }
}
