use super::*;

#[test]
fn ready_is_never_true_when_a_step_failed() {
    let survivor =
        ObjectFailure { kind: "Pod".into(), name: "p".into(), ..ObjectFailure::default() };
    let prune_failed = Ending::Done(Done {
        deploy: Some(CommandOutcome {
            status: deployed(0, "h1"),
            failed: Vec::new(),
            survivors: Vec::new(),
            warnings: Vec::new(),
        }),
        prune: Some(CommandOutcome {
            status: deployed(0, "h1"),
            failed: Vec::new(),
            survivors: vec![survivor],
            warnings: Vec::new(),
        }),
        ..Done::default()
    });
    for (ending, expected) in [
        (
            done(Some(failed_deployment(0, "h1")), None),
            "DeployFailed: deploy failed: apps/Deployment/web: denied",
        ),
        (
            done(Some(deployed(0, "h1")), Some(validated(0, false))),
            "ValidateFailed: validate failed: apps/Deployment/web: 0 of 1 replicas are ready",
        ),
        (prune_failed, "PruneFailed: prune failed: 1 objects still exist"),
    ] {
        let case = Case { spec: json!({ "prune": true }), ..Case::default() };
        let summary = case.end(&ending);
        let (reason, message) = expected.split_once(": ").unwrap();
        assert_eq!(
            shown(&summary),
            format!("Ready=False {expected}; Reconciling=True ProgressingWithRetry: {message}")
        );
        assert_eq!(summary.status.observed_generation, -1, "the generation is not settled");
        assert_eq!(summary.next, Requeue::After(Duration::from_mins(1)), "retryInterval");
        let error = summary.events.last().unwrap();
        assert_eq!((error.severity, error.reason), (Severity::Error, reason));
        assert!(!summary.events.iter().any(|event| event.finishes));

        // A pass before the retry, with nothing due, keeps saying so, without another event.
        let quiet = case.later(&summary, 10).end(&nothing_due());
        assert_eq!(quiet.status, summary.status);
        assert!(quiet.events.is_empty());
    }
}

#[test]
fn a_rollout_is_no_failure_until_it_takes_too_long() {
    let case = || Case { spec: json!({ "timeout": "2m" }), ..Case::default() };
    let text = "apps/Deployment/web: 0 of 1 replicas are ready";
    let waiting = format!("Waiting until all objects are ready: {text}");
    let first = case().end(&done(Some(deployed(0, "h1")), Some(progressing(0, 0))));
    let expected =
        format!("Ready=Unknown Progressing: {waiting}; Reconciling=True Progressing: {waiting}");
    assert_eq!(shown(&first), expected);
    assert_eq!(texts(&first), ["deploy succeeded."], "neither good nor bad");
    assert_eq!(first.next, Requeue::After(Duration::from_secs(5)));
    assert!(first.status.failed_objects.is_empty(), "nothing failed");
    assert_eq!(first.status.observed_generation, -1, "the generation is not settled");
    assert_eq!(first.status.last_applied_revision.as_deref(), Some("main@sha1:aa"));

    let looked = case().later(&first, 60).end(&done(None, Some(progressing(60, 60))));
    assert_eq!(shown(&looked), expected);
    assert_eq!(texts(&looked), [""; 0]);
    let since = |summary: &Summary| {
        summary.status.last_validate_result.clone().unwrap().progressing_since.unwrap().0
    };
    assert_eq!(since(&looked), at(0), "it goes on, it does not begin anew");

    let good = case().later(&looked, 70).end(&done(None, Some(validated(70, true))));
    assert!(shown(&good).starts_with("Ready=True"), "{}", shown(&good));
    assert!(good.events.iter().any(|event| event.finishes), "{:?}", texts(&good));

    let late = case().later(&looked, 120).end(&done(None, Some(progressing(120, 120))));
    let failed = format!("validate failed: not ready within spec.timeout (2m0s): {text}");
    assert!(shown(&late).starts_with(&format!("Ready=False ValidateFailed: {failed}")));
    assert_eq!(texts(&late), [failed.as_str()]);
    assert_eq!(late.status.failed_objects[0].name, "web");
    assert_eq!(late.next, Requeue::After(Duration::from_mins(1)), "retryInterval");

    let broken = case().later(&looked, 70).end(&done(None, Some(validated(70, false))));
    assert!(shown(&broken).starts_with("Ready=False ValidateFailed"), "{}", shown(&broken));
    let again = case().later(&late, 130);
    let again = again.end(&done(Some(deployed(130, "h1")), Some(progressing(130, 130))));
    assert_eq!((shown(&again), since(&again)), (expected, at(130)), "a deployment begins anew");
}

#[test]
fn a_failed_deployment_does_not_count_as_applied() {
    let first = Case::default();
    let summary = first.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let next = Case { revision: "main@sha1:bb", hash: "h2", ..first.later(&summary, 100) };
    let failed = next.end(&done(Some(failed_deployment(100, "h2")), None));
    assert_eq!(failed.status.last_applied_revision.as_deref(), Some("main@sha1:aa"));
    assert_eq!(failed.status.last_attempted_revision.as_deref(), Some("main@sha1:bb"));
    assert_eq!(failed.status.failed_objects_count, 1);
    assert_eq!(failed.status.failed_objects[0].name, "web");
    let next = next.later(&failed, 200);
    let good = next.end(&done(Some(deployed(200, "h2")), Some(validated(200, true))));
    assert_eq!(good.status.last_applied_revision.as_deref(), Some("main@sha1:bb"));
    assert_eq!(good.status.failed_objects_count, 0);
    assert!(good.status.failed_objects.is_empty());
}

#[test]
fn many_failures_are_listed_up_to_twenty_and_counted_beyond() {
    let failure = |n: usize| ObjectFailure {
        kind: "Pod".into(),
        name: format!("p{n}"),
        message: "x".repeat(5000),
        ..ObjectFailure::default()
    };
    let ending = Ending::Done(Done {
        deploy: Some(CommandOutcome {
            status: failed_deployment(0, "h1"),
            failed: (0..35).map(failure).collect(),
            survivors: Vec::new(),
            warnings: Vec::new(),
        }),
        ..Done::default()
    });
    let status = Case::default().end(&ending).status;
    assert_eq!(status.failed_objects_count, 35);
    assert_eq!(status.failed_objects.len(), 20);
    assert!(status.failed_objects[0].message.len() < 1100);
}

#[test]
fn early_failures() {
    let rows = [
        (
            Failure::stalled(reason::ACCESS_DENIED, "not allowed"),
            "Ready=False AccessDenied: not allowed; Stalled=True AccessDenied: not allowed",
            Some(Severity::Error),
            Requeue::OnChange,
            GENERATION,
        ),
        (
            Failure::new(reason::SOURCE_NOT_READY, Outlook::Pending, "no artifact yet"),
            "Ready=Unknown SourceNotReady: no artifact yet; Reconciling=True ProgressingWithRetry: no artifact yet",
            Some(Severity::Info),
            Requeue::After(Duration::from_secs(30)),
            -1,
        ),
        (
            Failure::waiting(reason::ARTIFACT_FAILED, "404"),
            "Ready=False ArtifactFailed: 404; Reconciling=True ProgressingWithRetry: 404",
            Some(Severity::Info),
            Requeue::After(Duration::from_secs(30)),
            -1,
        ),
        (
            Failure::retry(reason::PREPARE_FAILED, "deployment.yaml:1:1: x"),
            "Ready=False PrepareFailed: deployment.yaml:1:1: x; Reconciling=True ProgressingWithRetry: deployment.yaml:1:1: x",
            Some(Severity::Error),
            Requeue::After(Duration::from_mins(1)),
            -1,
        ),
        (
            Failure::new(reason::DEPLOY_FAILED, Outlook::Backoff, "503"),
            "Ready=False DeployFailed: 503; Reconciling=True ProgressingWithRetry: 503",
            Some(Severity::Error),
            Requeue::Backoff(Duration::from_mins(1)),
            -1,
        ),
        (
            Failure::new(reason::PREPARE_FAILED, Outlook::Interrupted, "shutting down"),
            "",
            None,
            Requeue::After(Duration::ZERO),
            -1,
        ),
        (
            Failure::new(reason::DEPLOY_FAILED, Outlook::Interrupted, "shutting down"),
            "Ready=Unknown Progressing: Interrupted; the reconciliation is going to be repeated; \
             Reconciling=True Progressing: Interrupted; the reconciliation is going to be repeated",
            None,
            Requeue::After(Duration::ZERO),
            -1,
        ),
    ];
    for (failure, conditions, severity, next, observed) in rows {
        let summary = Case::default().end(&Ending::Failed(failure.clone()));
        assert_eq!(shown(&summary), conditions);
        assert_eq!(summary.events.first().map(|event| event.severity), severity, "{failure:?}");
        assert_eq!(summary.next, next);
        assert_eq!(summary.status.observed_generation, observed);
        assert_eq!(summary.status.last_deploy_result, None);
    }
}

#[test]
fn waiting_is_told_once_and_errors_are_one_episode() {
    let wait = Ending::Failed(Failure::waiting(reason::DEPENDENCY_NOT_READY, "b is not ready"));
    let first = Case::default();
    let summary = first.end(&wait);
    assert_eq!(texts(&summary), ["b is not ready"]);
    let second = first.later(&summary, 30);
    assert!(texts(&second.end(&wait)).is_empty());
    let other = Ending::Failed(Failure::waiting(reason::DEPENDENCY_NOT_READY, "c is not ready"));
    assert_eq!(texts(&second.end(&other)), ["c is not ready"], "another text is news");

    let fail = Ending::Failed(Failure::retry(reason::PREPARE_FAILED, "broken"));
    let first = Case::default();
    let failed = first.end(&fail);
    let second = first.later(&failed, 60);
    let failed_again = second.end(&fail);
    assert_eq!(failed.events[0].token, failed_again.events[0].token, "repeats fold");
    let third = second.later(&failed_again, 120);
    let good = third.end(&done(Some(deployed(120, "h1")), Some(validated(120, true))));
    let fourth = third.later(&good, 180);
    let relapse = fourth.end(&fail);
    assert_ne!(relapse.events[0].token, failed.events[0].token, "a relapse is news");
}

#[test]
fn stalled_goes_away_with_its_cause() {
    let first = Case::default();
    let stalled = first.end(&Ending::Failed(Failure::stalled(reason::INVALID_SPEC, "x")));
    assert!(stalled.status.condition(STALLED).is_some());
    let second = Case { generation: 2, ..first.later(&stalled, 10) };
    let mut good = deployed(10, "h1");
    good.generation = Some(2);
    let good = second.end(&done(Some(good), Some(validated(10, true))));
    assert_eq!(shown(&good), "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:aa");
}
