use crate::kustomize::{
    config::{default_kind_order, kind_rank, sortable},
    decode::Located,
    error::{KustomizeError, Result},
    kustomization::{LegacySortOptions, SortOptions},
    resmap::ResMap,
};

/// `sortOptions`: orders the objects of the whole build.
///
/// # Errors
/// When the order is unknown, or options are given that it does not have.
pub(crate) fn apply(map: &mut ResMap, options: &Located<SortOptions>) -> Result<()> {
    let SortOptions { order, legacy } = &options.value;
    match (order.as_str(), legacy) {
        ("fifo", None) => Ok(()),
        ("fifo", Some(_)) => {
            Err(options.place.child("legacySortOptions").refuse("only for `order: legacy`"))
        }
        ("legacy", legacy) => {
            let (first, last) = match legacy {
                Some(LegacySortOptions { first, last }) => (first.clone(), last.clone()),
                None => default_kind_order(),
            };
            sort(map, &first, &last);
            Ok(())
        }
        (other, _) => {
            let problem =
                options.place.child("order").problem(format!("unknown order \"{other}\""));
            Err(KustomizeError::Kustomization(Box::new(
                problem.with_expected("`legacy` or `fifo`"),
            )))
        }
    }
}

/// The order of `order: legacy` without options of its own.
pub(crate) fn apply_legacy(map: &mut ResMap) {
    let (first, last) = default_kind_order();
    sort(map, &first, &last);
}

/// Sorts by rank of the kind, then group, version and kind, then namespace and name; absent parts come last.
fn sort(map: &mut ResMap, first: &[String], last: &[String]) {
    let or = |text: &str, absent: &str| {
        if text.is_empty() { absent.to_owned() } else { text.to_owned() }
    };
    map.sort_by_key(|resource| {
        let gvk = resource.gvk();
        let rank = kind_rank(&gvk.kind, first, last);
        let name = [or(resource.namespace(), "~X"), or(resource.name(), "~N")].join("|");
        (rank, sortable(&gvk), name)
    });
}
