use serde_json::{Map, Value};

use crate::object::Object;

/// A copy of the object's tree without what changes on its own, and with lists that are maps at heart turned into maps, so
/// that a new order is no change.
pub(super) fn normalized(object: &Object) -> Value {
    let mut tree = Map::new();
    for (key, value) in object.value().as_object().into_iter().flatten() {
        match key.as_str() {
            "status" => {}
            "metadata" => {
                tree.insert(key.clone(), metadata(value));
            }
            _ => {
                tree.insert(key.clone(), value.clone());
            }
        }
    }
    let mut tree = Value::Object(tree);
    integers(&mut tree);
    forget_controller_uid(&mut tree);
    match object.kind() {
        "Deployment" | "StatefulSet" | "DaemonSet" | "Job" => {
            containers(tree.pointer_mut("/spec/template/spec"));
        }
        "CronJob" => containers(tree.pointer_mut("/spec/jobTemplate/spec/template/spec")),
        "Secret" | "ConfigMap" => forget_empty_data(&mut tree),
        "ServiceAccount" => forget_token_secrets(object.name(), &mut tree),
        _ => {}
    }
    tree
}

fn metadata(value: &Value) -> Value {
    const SERVER_SIDE: [&str; 6] =
        ["managedFields", "creationTimestamp", "generation", "resourceVersion", "selfLink", "uid"];
    let Some(map) = value.as_object() else { return value.clone() };
    let mut metadata: Map<String, Value> = map
        .iter()
        .filter(|(key, _)| !SERVER_SIDE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // So that the first label or annotation shows as one field, not as a whole new mapping.
    for key in ["labels", "annotations"] {
        let slot = metadata.entry(key).or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    Value::Object(metadata)
}

/// Numbers like `1.0`, which some servers return for integers, as integers.
fn integers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and small")]
            if let Some(float) = number.as_f64()
                && float.fract() == 0.0
                && float.abs() < 9.0e15
            {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(integers),
        Value::Object(map) => map.values_mut().for_each(integers),
        _ => {}
    }
}

/// Labels that the job controller adds to pod templates and selectors.
fn forget_controller_uid(tree: &mut Value) {
    for path in ["/spec/template/metadata/labels", "/spec/selector/matchLabels"] {
        if let Some(Value::Object(labels)) = tree.pointer_mut(path) {
            labels.remove("controller-uid");
            labels.remove("batch.kubernetes.io/controller-uid");
        }
    }
}

fn containers(pod: Option<&mut Value>) {
    let Some(pod) = pod else { return };
    for key in ["containers", "initContainers"] {
        for container in pod.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            by_name(container, "env", |entry| entry["name"].as_str().map(str::to_owned));
            by_name(container, "envFrom", |entry| {
                ["configMapRef", "secretRef"].iter().find_map(|source| {
                    Some(format!("{source}/{}", entry[source]["name"].as_str()?))
                })
            });
        }
    }
}

/// Turns a list into a mapping by name, when every entry has a name of its own.
fn by_name(container: &mut Value, key: &str, name_of: impl Fn(&Value) -> Option<String>) {
    let Some(Value::Array(list)) = container.get_mut(key) else { return };
    let names: Option<Vec<String>> = list.iter().map(&name_of).collect();
    let Some(names) = names else { return };
    let count = names.len();
    let map: Map<String, Value> = names.into_iter().zip(list.iter().cloned()).collect();
    if map.len() == count && count > 0 {
        container[key] = Value::Object(map);
    }
}

fn forget_empty_data(tree: &mut Value) {
    if let Some(map) = tree.as_object_mut()
        && map
            .get("data")
            .is_some_and(|data| data.is_null() || data.as_object().is_some_and(Map::is_empty))
    {
        map.remove("data");
    }
}

/// Token secrets that the token controller adds.
fn forget_token_secrets(account: &str, tree: &mut Value) {
    let Some(map) = tree.as_object_mut() else { return };
    let Some(Value::Array(secrets)) = map.get_mut("secrets") else { return };
    let prefix = format!("{account}-");
    secrets.retain(|secret| secret["name"].as_str().is_some_and(|name| !name.starts_with(&prefix)));
    if secrets.is_empty() {
        map.remove("secrets");
    }
}
