use serde_json::{Map, Value};

use crate::schema::{AwsConfig, FixedImage, TargetConfig};

/// The target that is worked with: rendered, overridden, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The name; empty for a project without targets, unless overridden.
    pub name: String,
    /// The kubeconfig context asked for; once connected, the one in use, empty without a cluster.
    pub context: Option<String>,
    /// All arguments: declared defaults, the target's, those from outside. A mapping.
    pub args: Value,
    /// The label value that marks what this target owns; without one nothing can be pruned.
    pub discriminator: Option<String>,
    /// Fixed images, the later the stronger: the target's, then those of the request.
    pub images: Vec<FixedImage>,
    /// How AWS is reached.
    pub aws: AwsConfig,
    /// The entry as templates see it, with only the target's own arguments and images.
    own: TargetConfig,
}

impl Target {
    /// Makes a target of a rendered entry; `args` are all arguments.
    pub(super) fn new(own: TargetConfig, args: Value) -> Self {
        Self {
            name: own.name.clone(),
            context: own.context.clone(),
            args,
            discriminator: own.discriminator.clone().filter(|text| !text.is_empty()),
            images: own.images.clone(),
            aws: own.aws.clone().unwrap_or_default(),
            own,
        }
    }

    /// Sets the kubeconfig context in use; empty when there is no cluster. Templates rendered from now on see it.
    pub fn set_context(&mut self, context: &str) {
        self.context = Some(context.to_owned());
    }

    /// What templates see as `target`: `name`, `context`, `args` (the target's own), `aws`, `images` (the target's own) and
    /// `discriminator`, without those that are not set. Also the form in which targets are listed.
    pub fn to_value(&self) -> Value {
        let shown = TargetConfig {
            name: self.name.clone(),
            context: self.context.clone(),
            discriminator: self.discriminator.clone(),
            aws: Some(self.aws.clone()),
            args: self.own.args.clone(),
            images: self.own.images.clone(),
        };
        to_value(&shown)
    }

    /// The variables at the start of every render: `target` and `args`.
    pub fn variables(&self) -> Map<String, Value> {
        variables(self.to_value(), self.args.clone())
    }
}

pub(super) fn variables(target: Value, args: Value) -> Map<String, Value> {
    Map::from_iter([("target".to_owned(), target), ("args".to_owned(), args)])
}

/// The JSON form of an entry, which cannot fail for these types.
pub(super) fn to_value(config: &TargetConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}
