use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Inclusion;
use crate::{
    object::{Object, ObjectRef},
    schema::{ConflictRule, IgnoreRule, ObjectSelector},
};

/// Everything a deployment wants in the cluster. It exists only when every item in scope was rendered and built, so
/// whoever holds one may prune.
#[derive(Debug, Clone)]
pub struct DesiredState {
    /// Items in deployment order; barriers are items or flags on them.
    pub items: Vec<DesiredItem>,
    /// Value of the label `kluctl.io/discriminator` that all objects carry; `None` when the project has none, and then
    /// nothing can be pruned or deleted.
    pub discriminator: Option<String>,
    /// Which part of the project was rendered; prune stays within it.
    pub inclusion: Inclusion,
    /// Hex SHA-256 over the canonical JSON of all objects in order.
    pub objects_hash: String,
    /// Fixed images that were resolved while rendering.
    pub images: Vec<FixedImageUse>,
    /// Things to tell the user that do not prevent a deployment.
    pub warnings: Vec<String>,
}

impl DesiredState {
    /// All objects in deployment order.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.items.iter().flat_map(|item| &item.objects)
    }
}

/// One deployment item after render and build.
#[derive(Debug, Clone, Default)]
pub struct DesiredItem {
    /// Directory relative to the source root, `.` for the root itself, empty for items without `path`.
    pub dir: String,
    /// Tags in label order (kluctl 2.28).
    pub tags: Vec<String>,
    /// Objects in kustomize order, labels and annotations set.
    pub objects: Vec<Arc<Object>>,
    /// Wait for all started items, this one included, before the next item starts.
    pub barrier: bool,
    /// Shown when the barrier is reached.
    pub message: Option<String>,
    /// Wait until all objects of the item are ready.
    pub wait_readiness: bool,
    /// Objects to delete before the item is applied.
    pub delete_objects: Vec<ObjectSelector>,
    /// Further objects to wait for after the item is applied.
    pub wait_readiness_objects: Vec<ObjectSelector>,
    /// Field conflict rules, lowest precedence first: later entries override earlier ones per field.
    pub conflict_resolution: Vec<ConflictRule>,
    /// Fields left out of diffs.
    pub ignore_for_diff: Vec<IgnoreRule>,
}

/// A `get_image` placeholder and what it was resolved to, as listed by `list-images` and in results; also an entry that
/// `--fixed-images-file` accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FixedImageUse {
    /// The image asked for.
    pub image: String,
    /// The image put in place.
    pub result_image: String,
    /// The image that is deployed now, when the cluster was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Namespace of the object as written in the manifest, empty for none.
    #[serde(default)]
    pub namespace: String,
    /// The object.
    pub object: ObjectRef,
    /// `Kind/name` of the object.
    pub deployment: String,
    /// Container name, empty when the field is not part of a container.
    #[serde(default)]
    pub container: String,
    /// Tags of the item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Directory of the item, with a suffix `-<n>` for its further uses.
    #[serde(default)]
    pub deployment_dir: String,
}
