use std::sync::Arc;

use super::{Inclusion, inherited::Inherited};
use crate::{
    schema,
    vars::{Context, Templates},
};

/// One use of one `deployment.yaml`: the same file included twice gives two.
pub(crate) struct Project {
    /// Position in [`super::Deployment::projects`].
    pub(crate) id: usize,
    /// Position in [`super::Deployment::sources`].
    pub(crate) source: usize,
    /// Directory in the source.
    pub(crate) dir: String,
    /// The project that includes this one.
    pub(crate) parent: Option<Arc<Project>>,
    /// Searches the directories of this project and of its parents in the same source.
    pub(crate) templates: Templates,
    pub(crate) inherited: Inherited,
}

impl Project {
    /// This project, the one that includes it, and so on up.
    pub(crate) fn ancestry(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |project| project.parent.as_deref())
    }
}

/// A deployment item with everything that is needed to render it: includes flattened, tags and variables final.
pub(crate) struct Item {
    pub(crate) project: Arc<Project>,
    /// Directory in the source; `None` for items without `path`.
    pub(crate) dir: Option<String>,
    /// How often the directory was used before.
    pub(crate) use_index: usize,
    /// The item as written. For the barrier after an include, an empty one.
    pub(crate) config: schema::DeploymentItem,
    pub(crate) tags: Vec<String>,
    pub(crate) context: Context,
}

impl Item {
    /// Whether the item is part of a run with these filters (kluctl 2.28).
    pub(crate) fn is_included(&self, inclusion: &Inclusion) -> bool {
        self.config.only_render
            || self.config.always_deploy
            || self.config.barrier
            || inclusion.includes(&self.tags, self.shown_dir().as_deref())
    }

    /// The directory as annotations and filters have it: relative to the source root, `.` for the root itself.
    pub(crate) fn shown_dir(&self) -> Option<String> {
        let dir = self.dir.as_ref()?;
        Some(if dir.is_empty() { ".".to_owned() } else { dir.clone() })
    }

    /// The directory of a render on disk: further uses of the same directory get a suffix.
    pub(crate) fn render_dir(&self) -> Option<String> {
        let dir = self.shown_dir()?;
        Some(if self.use_index == 0 { dir } else { format!("{dir}-{}", self.use_index) })
    }

    /// What to call the item in progress and messages.
    pub(crate) fn name(&self) -> String {
        match self.shown_dir() {
            Some(dir) => dir,
            None if self.config.barrier => "barrier".to_owned(),
            None if !self.config.delete_objects.is_empty() => "deleteObjects".to_owned(),
            None => "item without path".to_owned(),
        }
    }
}
