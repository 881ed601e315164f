//! Setting conditions so that transition times and generations come out right.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{Condition, ConditionStatus, KluctlDeploymentStatus};

/// Longest message of a condition, in bytes; longer ones are cut and end in `...`.
const LONGEST_MESSAGE: usize = 20_000;

/// What all conditions that are set at one moment have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    /// Generation of the spec that they speak of.
    pub generation: i64,
    /// The moment.
    pub now: Timestamp,
}

impl Stamp {
    /// Sets a condition; the transition time moves only with the status.
    pub(super) fn set(
        self,
        status: &mut KluctlDeploymentStatus,
        condition_type: &str,
        value: ConditionStatus,
        reason: &str,
        message: &str,
    ) {
        let found = status.conditions.iter().position(|c| c.condition_type == condition_type);
        let since = found
            .map(|index| &status.conditions[index])
            .filter(|condition| condition.status == value)
            .map(|condition| condition.last_transition_time.clone());
        let condition = Condition {
            condition_type: condition_type.to_owned(),
            status: value,
            reason: reason.to_owned(),
            message: shorten(message),
            last_transition_time: since.unwrap_or_else(|| kube_time(self.now)),
            observed_generation: Some(self.generation),
        };
        match found {
            Some(index) => status.conditions[index] = condition,
            None => status.conditions.push(condition),
        }
    }
}

/// Removes a condition, if it is there.
pub(super) fn remove(status: &mut KluctlDeploymentStatus, condition_type: &str) {
    status.conditions.retain(|condition| condition.condition_type != condition_type);
}

/// Cuts a message to what a condition may hold.
pub(super) fn shorten(message: &str) -> String {
    shorten_to(message, LONGEST_MESSAGE)
}

/// Cuts a text to `longest` bytes (at a character boundary) and marks the cut with `...`.
pub(super) fn shorten_to(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(longest)])
}

/// A time as Kubernetes writes it: whole seconds.
pub(super) fn kube_time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
