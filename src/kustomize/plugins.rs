//! `generators`, `transformers` and `validators`.

use super::{
    accumulate::Build,
    config::TransformerConfig,
    decode::Located,
    error::{KustomizeError, Result},
    resmap::ResMap,
    resource::Resource,
};

/// What plug-ins are read with.
pub(crate) struct Context<'a> {
    pub build: &'a Build<'a>,
    /// Directory that paths are relative to.
    pub dir: &'a str,
    /// The same, seen from the root kustomization.
    pub path: &'a str,
    pub config: &'a TransformerConfig,
    /// Builds a directory that is named in place of a file.
    pub load: &'a dyn Fn(&Located<String>) -> Result<ResMap>,
}

pub(crate) struct Plugin;

fn refuse(entry: &Located<String>) -> KustomizeError {
    entry.place.refuse("plug-ins are not supported yet")
}

pub(crate) fn generate(_: &Context<'_>, entries: &[Located<String>]) -> Result<Vec<Resource>> {
    entries.first().map_or_else(|| Ok(Vec::new()), |entry| Err(refuse(entry)))
}

pub(crate) fn transformers(_: &Context<'_>, entries: &[Located<String>]) -> Result<Vec<Plugin>> {
    entries.first().map_or_else(|| Ok(Vec::new()), |entry| Err(refuse(entry)))
}

pub(crate) fn validate(_: &Context<'_>, _: &mut ResMap, entries: &[Located<String>]) -> Result<()> {
    entries.first().map_or(Ok(()), |entry| Err(refuse(entry)))
}

impl Plugin {
    pub(crate) fn apply(self, _: &Context<'_>, _: &mut ResMap) -> Result<()> {
        Ok(())
    }
}
