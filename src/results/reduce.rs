use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::CommandResult;
use crate::object::Object;

impl CommandResult {
    /// The result with its objects reduced to what identifies them, labels and annotations: small enough to keep many.
    #[must_use]
    pub fn reduced(&self) -> Self {
        let mut reduced = self.clone();
        for object in &mut reduced.objects {
            for tree in [&mut object.rendered, &mut object.remote, &mut object.applied] {
                *tree = tree.as_deref().and_then(reduce).map(Arc::new);
            }
        }
        reduced
    }
}

fn reduce(object: &Object) -> Option<Object> {
    let kept = ["name", "namespace", "labels", "annotations"];
    let metadata = object.value()["metadata"].as_object()?;
    let metadata: Map<String, Value> = metadata
        .iter()
        .filter(|(key, value)| {
            kept.contains(&key.as_str()) && value.as_object().is_none_or(|map| !map.is_empty())
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let value = json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": metadata,
    });
    Object::new(value).ok()
}
