//! `generators`, `transformers` and `validators`: kustomize's built-in plug-ins, configured by objects of apiVersion
//! `builtin`. Programs and containers are not run.

mod configuration;
mod generator;
mod iam_policy;
mod transformer;
mod value_add;

pub(crate) use generator::generate;
pub(crate) use transformer::transformers;

use super::{
    accumulate::Build,
    decode::Located,
    error::{KustomizeError, Result},
    files::Files,
    origin::Trail,
    resmap::ResMap,
};
use crate::diagnostic::{Class, Diagnostic};

/// What plug-ins are read and run with.
pub(crate) struct Context<'a> {
    pub build: &'a Build<'a>,
    /// Directory that paths are relative to.
    pub dir: &'a str,
    /// The same, for origins.
    pub path: &'a Trail,
    pub files: Files<'a>,
    /// Name of the kustomization file.
    pub file: &'a str,
    /// Builds a directory that is named in place of a file.
    pub load: &'a dyn Fn(&Located<String>) -> Result<ResMap>,
}

/// Runs transformers as validators: they may refuse the objects but not change them.
///
/// # Errors
/// When one refuses, or changes something other than the label `validated-by`.
pub(crate) fn validate(
    context: &Context<'_>,
    map: &ResMap,
    entries: &[Located<String>],
) -> Result<()> {
    const VALIDATED_BY: &str = "validated-by";
    for plugin in transformers(context, entries)? {
        let mut copy = map.clone();
        plugin.apply(context, &mut copy)?;
        for resource in copy.iter_mut() {
            let labels = resource.value.pointer_mut("/metadata/labels");
            if let Some(labels) = labels.and_then(serde_json::Value::as_object_mut) {
                labels.remove(VALIDATED_BY);
            }
        }
        let changed = map.iter().zip(copy.iter()).find(|(old, new)| old.value != new.value);
        if changed.is_some() || map.iter().len() != copy.iter().len() {
            let object = changed.map(|(old, _)| old.id().to_string()).unwrap_or_default();
            return Err(KustomizeError::Transform(Box::new(
                Diagnostic::new(Class::Project, "a validator changes objects")
                    .with_location(plugin.at().clone())
                    .with_object(object)
                    .with_hint("name it under `transformers` if that is meant"),
            )));
        }
    }
    Ok(())
}
