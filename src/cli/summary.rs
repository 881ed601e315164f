//! What a run did, in a few lines for the end of it.

use std::{fmt::Write, time::Duration};

use crate::{
    observer::Stage,
    results::{CommandResult, ObjectOutcome, Operation, OutcomeState, ResultObject},
};

/// Objects that are named when a run was interrupted; the others are counted.
const MOST_NAMED: usize = 20;

/// The summary: numbers of objects, and seconds by stage; what was not attempted, when the run was interrupted.
pub(super) fn summary(
    result: &CommandResult,
    stages: &[(Stage, Duration)],
    total: Duration,
) -> String {
    let mut out = String::new();
    if result.interrupted {
        interruption(&mut out, result);
    }
    let count =
        |is: fn(&ResultObject) -> bool| result.objects.iter().filter(|object| is(object)).count();
    let failed = |outcome: &&ObjectOutcome| matches!(outcome.state, OutcomeState::Failed { .. });
    let mut parts = vec![
        (count(|object| object.base.new), "created"),
        (count(|object| !object.base.changes.is_empty()), "changed"),
        (count(is_unchanged), "unchanged"),
        (count(|object| object.base.deleted), "deleted"),
        (count(|object| object.base.orphan), "orphaned"),
        (result.outcomes.iter().filter(failed).count(), "failed"),
    ];
    let is_removal = matches!(result.command.command.as_str(), "prune" | "delete");
    parts.retain(|(count, name)| {
        *count > 0
            || *name == "failed"
            || (!is_removal && !matches!(*name, "deleted" | "orphaned"))
            || (is_removal && *name == "deleted")
    });
    let parts: Vec<String> = parts.iter().map(|(count, name)| format!("{count} {name}")).collect();
    let times: Vec<String> =
        stages.iter().map(|(stage, took)| format!("{} {}", name(*stage), seconds(*took))).collect();
    let command = &result.command;
    let dry = if command.dry_run { " (dry run)" } else { "" };
    let _ = write!(out, "{}{dry}: {} in {} s", command.command, parts.join(", "), seconds(total));
    if !times.is_empty() {
        let _ = write!(out, " ({})", times.join(", "));
    }
    out.push('\n');
    out
}

fn is_unchanged(object: &ResultObject) -> bool {
    let base = &object.base;
    object.applied.is_some() && !base.new && !base.hook && base.changes.is_empty()
}

/// Which objects were dealt with, and which were not.
fn interruption(out: &mut String, result: &CommandResult) {
    let done = result.outcomes.iter().filter(|outcome| outcome.is_done()).count();
    let rest: Vec<&ObjectOutcome> =
        result.outcomes.iter().filter(|outcome| !outcome.is_done()).collect();
    let _ = writeln!(
        out,
        "interrupted: {done} of {} steps were completed{}",
        result.outcomes.len(),
        if rest.is_empty() { "" } else { "; these were not:" }
    );
    for outcome in rest.iter().take(MOST_NAMED) {
        let problem = outcome.problem().unwrap_or_default();
        let _ = writeln!(out, "  {} {}: {problem}", verb(outcome.operation), outcome.reference);
    }
    if rest.len() > MOST_NAMED {
        let _ = writeln!(out, "  … and {} more", rest.len() - MOST_NAMED);
    }
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Apply => "apply",
        Operation::Hook => "hook",
        Operation::Delete | Operation::Prune => "delete",
        Operation::Wait => "wait for",
    }
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Load => "load",
        Stage::Render => "render",
        Stage::Helm => "charts",
        Stage::Build => "build",
        Stage::Observe => "read",
        Stage::Apply => "apply",
        Stage::Diff => "compare",
        Stage::Prune => "prune",
        Stage::Delete => "delete",
        Stage::Validate => "validate",
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{deployment::Inclusion, object::ObjectRef, results::RunInfo};

    fn outcome(name: &str, state: OutcomeState) -> ObjectOutcome {
        let reference = ObjectRef::new("v1", "ConfigMap", Some("ns"), name);
        ObjectOutcome { reference, operation: Operation::Apply, state }
    }

    #[test]
    fn an_interrupted_run_tells_what_is_left() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let mut result =
            CommandResult::started("deploy", &RunInfo::default(), &Inclusion::default(), now);
        let stages =
            [(Stage::Render, Duration::from_millis(120)), (Stage::Apply, Duration::from_secs(2))];
        let total = Duration::from_millis(2345);
        assert_eq!(
            summary(&result, &stages, total),
            "deploy: 0 created, 0 changed, 0 unchanged, 0 failed in 2.3 s (render 0.1, apply 2.0)\n"
        );
        result.interrupted = true;
        let reason = "not attempted".to_owned();
        result.outcomes = vec![
            outcome("a", OutcomeState::Done),
            outcome("b", OutcomeState::NotAttempted { reason }),
        ];
        assert!(summary(&result, &stages, total).starts_with(
            "interrupted: 1 of 2 steps were completed; these were not:\n  apply ns/ConfigMap/b: not attempted\n"
        ));
    }
}
