use crate::{
    api::{
        CommandStatus, Footprint, FormerTarget, KluctlDeploymentStatus, MAX_FOOTPRINT,
        MAX_FORMER_TARGETS,
    },
    controller::{
        identity::ClusterIdentity,
        outcome::Facts,
        record::{
            Fate, fate, is_same_cluster, record_target, recorded, recorded_context, searched,
            union, unpruned,
        },
        tests::deployed,
    },
};

fn footprint(namespaces: &[&str]) -> Footprint {
    Footprint {
        namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        kinds: vec!["ConfigMap".into()],
    }
}

fn facts(discriminator: Option<&str>, cluster: &str, namespaces: &[&str]) -> Facts {
    Facts {
        discriminator: discriminator.map(str::to_owned),
        cluster: Some(ClusterIdentity { id: cluster.into(), server: String::new() }),
        context: Some("prod".into()),
        footprint: footprint(namespaces),
        ..Facts::default()
    }
}

/// The status after deployments to these targets, all in namespace `a`.
fn after(targets: &[(Option<&str>, &str)]) -> KluctlDeploymentStatus {
    let mut status = KluctlDeploymentStatus::default();
    for (discriminator, cluster) in targets {
        assert!(record_target(&mut status, &facts(*discriminator, cluster, &["a"])).is_empty());
        status.last_deploy_result = Some(deployed(0, "h1"));
    }
    status
}

/// Discriminators and clusters of the former targets.
fn former(status: &KluctlDeploymentStatus) -> Vec<(Option<&str>, &str)> {
    let former = status.former_targets.iter();
    former
        .map(|f| (f.discriminator.as_deref(), f.cluster_id.as_deref().unwrap_or_default()))
        .collect()
}

#[test]
fn a_target_is_remembered_when_another_one_follows() {
    assert!(former(&after(&[(Some("d"), "c"), (Some("d"), "c")])).is_empty());
    assert_eq!(former(&after(&[(Some("d"), "c"), (Some("e"), "c")])), [(Some("d"), "c")]);
    assert_eq!(former(&after(&[(Some("d"), "c"), (Some("d"), "x")])), [(Some("d"), "c")]);
    assert_eq!(former(&after(&[(Some("d"), "c"), (None, "c")])), [(Some("d"), "c")]);
    assert_eq!(former(&after(&[(None, "c"), (Some("d"), "x")])), [(None, "c")]);
    assert!(former(&after(&[(None, "c"), (Some("d"), "c")])).is_empty(), "they get the label");
    let there_and_back = after(&[(Some("d"), "c"), (Some("e"), "c"), (Some("d"), "c")]);
    assert_eq!(former(&there_and_back), [(Some("e"), "c")]);
    let status = after(&[(Some("d"), "c"), (Some("e"), "c")]);
    let record = &status.former_targets[0];
    assert_eq!((record.context.as_deref(), record.objects), (Some("prod"), Some(3)));
    assert_eq!(record.footprint, footprint(&["a"]));
}

#[test]
fn what_was_deployed_elsewhere_is_no_record_of_what_is_here() {
    let hash = |cluster: &str| {
        let mut status = after(&[(Some("d"), "c")]);
        record_target(&mut status, &facts(Some("d"), cluster, &["a"]));
        status.last_deploy_result.and_then(|result| result.objects_hash)
    };
    assert_eq!(hash("c").as_deref(), Some("h1"));
    assert_eq!(hash("x"), None, "killed now, the next run has to deploy");
}

#[test]
fn what_was_never_deployed_is_no_target() {
    assert_eq!(recorded(&KluctlDeploymentStatus::default()), None);
    let dry = KluctlDeploymentStatus {
        last_deploy_result: Some(CommandStatus { dry_run: true, ..deployed(0, "h") }),
        raw_target: Some("name: x\n".into()),
        ..KluctlDeploymentStatus::default()
    };
    assert_eq!(recorded(&dry), None);
    // Nothing but the record that precedes the first object.
    let mut interrupted = KluctlDeploymentStatus::default();
    record_target(&mut interrupted, &facts(None, "c", &[]));
    assert_eq!(recorded(&interrupted).and_then(|record| record.cluster_id).as_deref(), Some("c"));
}

#[test]
fn the_footprint_grows_until_it_is_known_to_be_less() {
    let mut status = after(&[(Some("d"), "c")]);
    record_target(&mut status, &facts(Some("d"), "c", &["b"]));
    assert_eq!(status.footprint.namespaces, ["a", "b"]);
    record_target(&mut status, &facts(Some("e"), "c", &["c"]));
    assert_eq!(status.footprint.namespaces, ["c"]);
    assert_eq!(status.former_targets[0].footprint.namespaces, ["a", "b"]);
    record_target(&mut status, &facts(Some("d"), "c", &["d"]));
    assert_eq!(status.footprint.namespaces, ["a", "b", "d"], "back where it was");
}

#[test]
fn records_are_bounded_and_say_so() {
    let mut status = after(&[(Some("d"), "c")]);
    let mut told = Vec::new();
    for number in 0..=MAX_FORMER_TARGETS {
        let next = format!("e{number}");
        told.extend(record_target(&mut status, &facts(Some(&next), "c", &["a"])));
    }
    assert_eq!(status.former_targets.len(), MAX_FORMER_TARGETS);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("discriminator \"d\""), "{told:?}");

    let many = Footprint {
        namespaces: (0..=MAX_FOOTPRINT).map(|number| format!("n{number:04}")).collect(),
        kinds: Vec::new(),
    };
    let bounded = union(&many, &Footprint::default());
    assert_eq!(bounded.namespaces.len(), MAX_FOOTPRINT);
    assert!(searched(&bounded, "own").is_partial);
    let few = searched(&footprint(&["a"]), "own");
    assert!(!few.is_partial);
    assert_eq!(few.namespaces, ["a", "own"]);
}

#[test]
fn a_cluster_that_is_not_named_is_believed() {
    assert!(is_same_cluster(Some("a"), Some("a")));
    assert!(!is_same_cluster(Some("a"), Some("b")));
    for unknown in [None, Some("")] {
        assert!(is_same_cluster(unknown, Some("a")) && is_same_cluster(Some("a"), unknown));
    }
}

#[test]
fn a_former_target_is_pruned_counted_or_told_of() {
    let target = |discriminator: Option<&str>, cluster: &str| FormerTarget {
        discriminator: discriminator.map(str::to_owned),
        cluster_id: Some(cluster.to_owned()),
        context: Some("prod".into()),
        objects: Some(2),
        ..FormerTarget::default()
    };
    let decided = |former: &FormerTarget, prunes| fate(former, Some("c"), prunes, &[]);
    assert_eq!(decided(&target(Some("d"), "c"), true), Fate::Prune);
    assert_eq!(decided(&target(Some("d"), "c"), false), Fate::Count);
    let Fate::OutOfReach(told) = decided(&target(Some("d"), "x"), true) else { panic!() };
    assert!(told.starts_with("left behind on cluster x (context prod)"), "{told}");
    assert!(told.contains("2 objects with discriminator \"d\""), "{told}");
    assert!(told.contains("kluctl.io/discriminator=d"), "{told}");
    let Fate::OutOfReach(told) = decided(&target(None, "x"), true) else { panic!() };
    assert!(told.contains("by hand"), "{told}");
    let rivals = ["KluctlDeployment x/y".to_owned()];
    let Fate::TakenOver(told) = fate(&target(Some("d"), "c"), Some("c"), true, &rivals) else {
        panic!()
    };
    assert!(told.contains("KluctlDeployment x/y"), "{told}");

    assert_eq!(unpruned("d", 0, false), None);
    assert!(unpruned("d", 0, true).is_some(), "nothing seen is not nothing there");
    assert!(unpruned("d", 2, false).unwrap().starts_with("2 objects of the former"));
}

#[test]
fn the_recorded_context_is_found_also_in_the_go_controllers_text() {
    let status = |text: &str| KluctlDeploymentStatus {
        raw_target: Some(text.to_owned()),
        ..KluctlDeploymentStatus::default()
    };
    let theirs = "args:\n  a: b\ncontext: prod\ndiscriminator: d\nname: prod\n";
    assert_eq!(recorded_context(&status(theirs)).as_deref(), Some("prod"));
    assert_eq!(recorded_context(&status("name: x\n")), None);
    assert_eq!(recorded_context(&status(": : :")), None);
}
