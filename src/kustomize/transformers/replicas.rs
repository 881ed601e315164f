use crate::kustomize::{
    config::FieldSpecs,
    decode::Located,
    error::{KustomizeError, Result},
    kustomization::Replica,
    resmap::ResMap,
    walk::{Missing, visit},
};

/// An entry of `replicas`: sets the replica count of the objects of a name.
///
/// # Errors
/// When no object of a kind with replicas has, or had, the name.
pub(crate) fn apply(
    map: &mut ResMap,
    replica: &Located<Replica>,
    specs: &FieldSpecs,
) -> Result<()> {
    let Replica { name, count } = &replica.value;
    let mut found = false;
    for resource in map.iter_mut() {
        for spec in &specs.0 {
            let named = resource
                .former_ids()
                .chain([resource.id()])
                .any(|id| id.name == *name && id.gvk.is_selected_by(&spec.gvk));
            if !named {
                continue;
            }
            found = true;
            visit(resource, spec, Missing::Scalar, &mut |value| {
                if value.is_array() || value.is_object() {
                    return Err("a number");
                }
                *value = (*count).into();
                Ok(())
            })?;
        }
    }
    if found { Ok(()) } else { Err(nothing_named(map, replica, specs)) }
}

fn nothing_named(map: &ResMap, replica: &Located<Replica>, specs: &FieldSpecs) -> KustomizeError {
    let name = &replica.value.name;
    let problem = replica.place.problem(format!("no object named \"{name}\" has replicas"));
    let candidates: Vec<String> = map
        .iter()
        .filter(|resource| specs.0.iter().any(|spec| resource.gvk().is_selected_by(&spec.gvk)))
        .map(|resource| resource.original_id().to_string())
        .collect();
    let hint = if candidates.is_empty() {
        "there are no Deployments, StatefulSets, ReplicaSets or ReplicationControllers".to_owned()
    } else {
        format!("there are: {}", candidates.join(", "))
    };
    KustomizeError::Kustomization(Box::new(problem.with_hint(hint)))
}
