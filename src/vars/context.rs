use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::{jinja, object::merge};

/// The variables that templates of one place see: a mapping at the root. Cheap to clone; changing a clone leaves the
/// original alone.
#[derive(Clone)]
pub struct Context {
    values: Arc<Value>,
    /// The same values as the template engine wants them, made on first use and shared by clones.
    prepared: Arc<OnceLock<jinja::Vars>>,
}

impl Default for Context {
    fn default() -> Self {
        Self::from(Map::new())
    }
}

impl From<Map<String, Value>> for Context {
    fn from(values: Map<String, Value>) -> Self {
        Self { values: Arc::new(Value::Object(values)), prepared: Arc::default() }
    }
}

impl Context {
    /// All variables, as a mapping.
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// The variable of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Sets a variable as it is, without merging.
    pub fn set(&mut self, name: &str, value: Value) {
        if let Value::Object(values) = self.change() {
            values.insert(name.to_owned(), value);
        }
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: &str) {
        if let Value::Object(values) = self.change() {
            values.remove(name);
        }
    }

    /// Merges a mapping of variables, which win over those that are there.
    pub fn merge(&mut self, newer: Map<String, Value>) {
        merge(self.change(), Value::Object(newer));
    }

    /// Merges a mapping of variables, of which only those count that are not there yet.
    pub fn merge_below(&mut self, defaults: Map<String, Value>) {
        let mut merged = Value::Object(defaults);
        merge(&mut merged, std::mem::take(self.change()));
        *self.change() = merged;
    }

    /// The variables for the template engine.
    pub(crate) fn for_templates(&self) -> &jinja::Vars {
        self.prepared.get_or_init(|| jinja::Vars::new(&self.values))
    }

    fn change(&mut self) -> &mut Value {
        self.prepared = Arc::default();
        Arc::make_mut(&mut self.values)
    }
}
