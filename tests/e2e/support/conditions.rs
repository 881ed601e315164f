use anyhow::{Result, ensure};
use serde_json::Value;

/// A condition's status, `None` when the condition is not there.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether Ready=True for the current generation.
pub(crate) fn is_ready(object: &Value) -> bool {
    is(object, "Ready", "True")
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// The reason of the Ready condition, empty when it is not there.
pub(crate) fn ready_reason(object: &Value) -> &str {
    condition(object, "Ready").and_then(|ready| ready["reason"].as_str()).unwrap_or_default()
}

/// The message of a condition, empty when it is not there.
pub(crate) fn message_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).and_then(|condition| condition["message"].as_str()).unwrap_or_default()
}

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == status)
}

/// Flux's rules for an object whose reconciliation has settled.
///
/// 1. Ready is there, with a reason and a message.
/// 2. Ready=True excludes Reconciling and Stalled, and the generation was observed.
/// 3. Stalled=True means Ready=False, the generation was observed, and nobody is working on it.
/// 4. Ready=False without Stalled means that it is tried again: Reconciling=True.
/// 5. No condition of these three occurs twice, and each tells which generation it speaks of.
pub(crate) fn check_conditions(object: &Value) -> Result<()> {
    let shown = serde_json::to_string_pretty(&object["status"])?;
    let generation = object["metadata"]["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    let ready = condition(object, "Ready");
    ensure!(ready.is_some(), "no Ready condition:\n{shown}");
    let ready = ready.unwrap();
    ensure!(
        ready["reason"].as_str().is_some_and(|r| !r.is_empty()),
        "Ready has no reason:\n{shown}"
    );
    ensure!(
        ready["message"].as_str().is_some_and(|m| !m.is_empty()),
        "Ready has no message:\n{shown}"
    );
    if is(object, "Ready", "True") {
        ensure!(!is(object, "Reconciling", "True"), "Ready and Reconciling:\n{shown}");
        ensure!(!is(object, "Stalled", "True"), "Ready and Stalled:\n{shown}");
        ensure!(
            observed == generation,
            "Ready without observing generation {generation:?}:\n{shown}"
        );
    } else if is(object, "Stalled", "True") {
        ensure!(is(object, "Ready", "False"), "Stalled but not Ready=False:\n{shown}");
        ensure!(!is(object, "Reconciling", "True"), "Stalled and Reconciling:\n{shown}");
        ensure!(
            observed == generation,
            "Stalled without observing generation {generation:?}:\n{shown}"
        );
    } else {
        ensure!(
            is(object, "Reconciling", "True"),
            "neither Ready, Stalled nor Reconciling:\n{shown}"
        );
    }
    for kind in ["Ready", "Reconciling", "Stalled"] {
        let all = object["status"]["conditions"].as_array().into_iter().flatten();
        let found: Vec<&Value> = all.filter(|condition| condition["type"] == kind).collect();
        ensure!(found.len() <= 1, "{kind} occurs twice:\n{shown}");
        for condition in found {
            let speaks_of = condition["observedGeneration"].as_i64();
            ensure!(
                speaks_of.is_some() && speaks_of <= generation,
                "{kind} of which generation?\n{shown}"
            );
        }
    }
    Ok(())
}
