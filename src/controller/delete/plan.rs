//! What a deletion has to do, decided from the spec and the status alone.

use crate::{
    api::{FormerTarget, KluctlDeploymentSpec, KluctlDeploymentStatus, reason},
    controller::{
        identity::ClusterIdentity,
        outcome::Failure,
        record::{is_same_cluster, left_behind, recorded},
    },
};

/// A target whose objects are to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doomed {
    /// What the objects carry.
    pub discriminator: String,
    /// What the status records of it.
    pub record: FormerTarget,
    /// Whether it is what was deployed last, and not a former target.
    pub is_present: bool,
}

/// What a deletion has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whose objects go.
    pub targets: Vec<Doomed>,
    /// What to tell the user of objects that stay and that he may expect to go.
    pub notes: Vec<String>,
}

/// Plans the deletion; `None` when the objects stay because the user wants it so.
pub(super) fn plan(
    spec: &KluctlDeploymentSpec,
    status: &KluctlDeploymentStatus,
    is_migrated: bool,
) -> Option<Plan> {
    if is_migrated || spec.suspend || !spec.deletes() {
        return None;
    }
    let mut plan = Plan::default();
    if !status.common_labels.is_empty() {
        let labels: Vec<_> =
            status.common_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        plan.notes.push(format!(
            "objects of a release before v0.14.0 stay, as they have no discriminator; they carry the labels {}",
            labels.join(",")
        ));
    }
    let present = recorded(status).map(|record| (record, true));
    let former = status.former_targets.iter().map(|record| (record.clone(), false));
    for (record, is_present) in present.into_iter().chain(former) {
        match record.discriminator.clone() {
            Some(discriminator) => {
                plan.targets.push(Doomed { discriminator, record, is_present });
            }
            None if is_present => {
                if status.common_labels.is_empty() {
                    plan.notes.push(unlabelled(&record));
                }
            }
            None => plan.notes.push(left_behind(&record)),
        }
    }
    Some(plan)
}

fn unlabelled(record: &FormerTarget) -> String {
    let objects = match record.objects {
        Some(1) => "the deployed object stays".to_owned(),
        Some(count) => format!("the {count} deployed objects stay"),
        None => "whatever was deployed stays".to_owned(),
    };
    format!("{objects}: without a discriminator nothing tells what belongs to the deployment")
}

/// What a deletion can do on the cluster that was reached: the same discriminator may be somebody else's elsewhere.
///
/// # Errors
/// When the present target was deployed to another cluster; nothing is deleted then.
pub(super) fn on_cluster(plan: Plan, reached: &ClusterIdentity) -> Result<Plan, Failure> {
    let Plan { targets, mut notes } = plan;
    let mut there = Vec::new();
    for doomed in targets {
        let recorded = doomed.record.cluster_id.as_deref();
        if [&reached.id, &reached.server].iter().any(|id| is_same_cluster(recorded, Some(id))) {
            there.push(doomed);
        } else if doomed.is_present {
            let message = format!(
                "nothing is deleted: the objects were deployed to cluster {}, and the kubeconfig or context now leads to \
                 cluster {}; correct spec.kubeConfig or spec.context",
                recorded.unwrap_or_default(),
                reached.id
            );
            return Err(Failure::retry(reason::DELETE_FAILED, message));
        } else {
            notes.push(left_behind(&doomed.record));
        }
    }
    Ok(Plan { targets: there, notes })
}

/// What to tell when nobody is left to delete as.
pub(super) fn out_of_reach(plan: Plan, why: &str) -> Vec<String> {
    let labels = plan.targets.iter();
    let labels: Vec<_> =
        labels.map(|doomed| format!("kluctl.io/discriminator={}", doomed.discriminator)).collect();
    let mut notes = plan.notes;
    notes.push(format!(
        "the deployed objects stay: {why}; they carry the label {}",
        labels.join(" or ")
    ));
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{api, controller::outcome::Outlook};

    fn planned(spec: &Value, status: &Value) -> Option<Plan> {
        planned_for(spec, status, false)
    }

    fn planned_for(spec: &Value, status: &Value, is_migrated: bool) -> Option<Plan> {
        let mut all = json!({ "interval": "1m" });
        crate::object::merge(&mut all, spec.clone());
        let object = api::decode(&json!({ "spec": all, "status": status })).unwrap();
        plan(&object.spec, &object.status.unwrap(), is_migrated)
    }

    fn cluster(id: &str) -> ClusterIdentity {
        ClusterIdentity { id: id.into(), server: format!("https://{id}") }
    }

    fn discriminators(plan: &Plan) -> Vec<&str> {
        plan.targets.iter().map(|doomed| doomed.discriminator.as_str()).collect()
    }

    #[test]
    fn deletion_follows_delete_and_else_prune() {
        let deployed = json!({ "discriminator": "d", "lastDeployResult": {} });
        for (spec, deletes) in [
            (json!({}), false),
            (json!({ "prune": true }), true),
            (json!({ "delete": true }), true),
            (json!({ "prune": true, "delete": false }), false),
            (json!({ "prune": true, "delete": true, "suspend": true }), false),
        ] {
            let plan = planned(&spec, &deployed);
            assert_eq!(plan.is_some(), deletes, "{spec}");
            assert!(
                plan.is_none_or(|plan| discriminators(&plan) == ["d"] && plan.notes.is_empty())
            );
        }
        assert_eq!(planned_for(&json!({ "prune": true }), &deployed, true), None, "taken over");
    }

    #[test]
    fn what_was_never_deployed_needs_no_deletion_and_no_word() {
        let spec = json!({ "delete": true });
        assert_eq!(planned(&spec, &json!({})), Some(Plan::default()));
        let dry = json!({ "lastDeployResult": { "dryRun": true } });
        assert_eq!(planned(&spec, &dry), Some(Plan::default()));
    }

    #[test]
    fn what_cannot_be_told_from_others_is_told() {
        let spec = json!({ "delete": true });
        for (status, told) in [
            (
                json!({ "lastDeployResult": { "appliedObjects": 3 } }),
                "the 3 deployed objects stay: without",
            ),
            // A first deployment that was interrupted: the cluster is recorded before anything is applied.
            (json!({ "clusterId": "c" }), "whatever was deployed stays"),
            (json!({ "commonLabels": { "a": "b", "c": "d" }, "lastDeployResult": {} }), "a=b,c=d"),
        ] {
            let plan = planned(&spec, &status).unwrap();
            assert!(plan.targets.is_empty());
            assert!(plan.notes.len() == 1 && plan.notes[0].contains(told), "{:?}", plan.notes);
        }
    }

    #[test]
    fn former_targets_go_too_where_they_can_be_reached() {
        let status = json!({ "discriminator": "new", "clusterId": "c", "formerTargets": [
            { "discriminator": "old", "clusterId": "c" },
            { "discriminator": "far", "clusterId": "elsewhere", "objects": 2 },
            { "clusterId": "elsewhere" },
        ] });
        let plan = planned(&json!({ "prune": true }), &status).unwrap();
        assert_eq!(discriminators(&plan), ["new", "old", "far"]);
        assert_eq!(plan.notes.len(), 1);
        let plan = on_cluster(plan, &cluster("c")).unwrap();
        assert_eq!(discriminators(&plan), ["new", "old"]);
        let far = "2 objects with discriminator \"far\"";
        assert!(plan.notes[1].contains(far), "{:?}", plan.notes);
        let told = out_of_reach(plan, "nobody is there");
        assert_eq!(
            told[2],
            "the deployed objects stay: nobody is there; they carry the label kluctl.io/discriminator=new or \
             kluctl.io/discriminator=old"
        );
    }

    #[test]
    fn another_cluster_is_refused_and_an_unrecorded_one_believed() {
        let reached = |recorded: Value| {
            let status = json!({ "discriminator": "d", "clusterId": recorded });
            on_cluster(planned(&json!({ "prune": true }), &status).unwrap(), &cluster("a"))
        };
        assert!(reached(json!("a")).is_ok());
        assert!(reached(json!("https://a")).is_ok(), "recorded before its UID could be read");
        assert!(reached(json!(null)).is_ok());
        assert!(reached(json!("")).is_ok());
        let refused = reached(json!("b")).unwrap_err();
        assert_eq!((refused.reason, refused.outlook), (reason::DELETE_FAILED, Outlook::Retry));
        assert!(refused.message.contains("cluster a"), "{}", refused.message);
        assert!(refused.message.contains("cluster b"), "{}", refused.message);
    }
}
