use serde_json::Value;

/// Merges `newer` into `base` (kluctl 2.28): mappings key by key, anything else is replaced by the newer side;
/// null replaces, too.
pub fn merge(base: &mut Value, newer: Value) {
    match (base, newer) {
        (Value::Object(base), Value::Object(newer)) => {
            for (key, value) in newer {
                match base.get_mut(&key) {
                    Some(slot) => merge(slot, value),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, newer) => *base = newer,
    }
}
