//! Live against applied objects: what changed, ready for people, with secrets masked (kluctl 2.28).

mod compare;
mod ignore;
mod normalize;
mod obfuscate;
mod unified;

pub use compare::compare;
pub use ignore::{IgnoreError, IgnoreRules};
pub(crate) use ignore::{leaves, remove_all};
pub use obfuscate::{mask_text, obfuscate_changes, obfuscate_object, obfuscate_result};

use crate::{
    object::{Object, annotations::is_set},
    results::Change,
};

/// The changes from `before` to `after`, sorted by path. Server-side bookkeeping, `status` and whatever the rules and the
/// annotations of `desired` ignore is left out. Values are shown as they are; see [`obfuscate_changes`].
///
/// # Errors
/// When an annotation of `desired` holds a path or expression that cannot be read.
pub fn diff(
    before: &Object,
    after: &Object,
    desired: &Object,
    rules: &IgnoreRules,
) -> Result<Vec<Change>, IgnoreError> {
    if is_set(desired, "kluctl.io/ignore-diff") {
        return Ok(Vec::new());
    }
    let annotated = IgnoreRules::of_annotations(desired)?;
    let prepare = |object: &Object| {
        let mut tree = normalize::normalized(object);
        for rules in [rules, &annotated] {
            rules.remove_from(&object.reference(), &mut tree);
        }
        tree
    };
    Ok(compare(&prepare(before), &prepare(after)))
}

#[cfg(test)]
mod tests;
