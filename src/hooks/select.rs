use std::{collections::BTreeSet, time::Duration};

use crate::object::{Object, annotations};

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Before every deployment.
    PreDeploy,
    /// After every deployment.
    PostDeploy,
    /// Before the first deployment of its item.
    PreDeployInitial,
    /// After the first deployment of its item.
    PostDeployInitial,
    /// Before any later deployment.
    PreDeployUpgrade,
    /// After any later deployment.
    PostDeployUpgrade,
    /// Helm's hooks around deletion and rollback: recognised, never run.
    Never,
}

/// When a hook's object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeletePolicy {
    /// Before it is applied.
    BeforeCreation,
    /// After it became ready.
    Succeeded,
    /// After it failed to become ready.
    Failed,
}

/// Which side of an item's objects hooks run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before them.
    Pre,
    /// After them.
    Post,
}

/// How an object acts as a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When it runs.
    pub moments: BTreeSet<Moment>,
    /// Hooks of one moment run by ascending weight.
    pub weight: i64,
    /// When it is deleted.
    pub delete: BTreeSet<DeletePolicy>,
    /// Whether the run waits for it.
    pub wait: bool,
    /// How long, when other than usual.
    pub timeout: Option<Duration>,
}

/// Something wrong with a hook's annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProblem {
    /// What, naming the annotation.
    pub message: String,
    /// Whether it counts as an error; Helm's unsupported hooks are warnings.
    pub is_error: bool,
}

impl Hook {
    /// Whether the object stays after a successful run, so that validation expects it.
    pub fn is_persistent(&self) -> bool {
        !self.delete.contains(&DeletePolicy::Succeeded)
    }

    /// Whether the hook only knows moments that never come.
    pub fn is_never_run(&self) -> bool {
        self.moments.iter().all(|moment| *moment == Moment::Never)
    }

    /// Whether the hook runs on this side of a deployment, which is the item's first one or not.
    pub fn runs(&self, stage: Stage, initial: bool) -> bool {
        let wanted = match (stage, initial) {
            (Stage::Pre, true) => [Moment::PreDeploy, Moment::PreDeployInitial],
            (Stage::Pre, false) => [Moment::PreDeploy, Moment::PreDeployUpgrade],
            (Stage::Post, true) => [Moment::PostDeploy, Moment::PostDeployInitial],
            (Stage::Post, false) => [Moment::PostDeploy, Moment::PostDeployUpgrade],
        };
        wanted.iter().any(|moment| self.moments.contains(moment))
    }
}

/// How `object` acts as a hook; `None` for ordinary objects and for those marked for deletion. Problems come beside it.
pub fn hook_of(object: &Object) -> (Option<Hook>, Vec<HookProblem>) {
    let mut problems = Vec::new();
    if annotations::is_delete(object) {
        return (None, problems);
    }
    let moments = moments(object, &mut problems);
    if moments.is_empty() {
        return (None, problems);
    }
    let mut error = |message: String| problems.push(HookProblem { message, is_error: true });
    let weight = object.annotation("kluctl.io/hook-weight");
    let weight = weight.or_else(|| object.annotation("helm.sh/hook-weight"));
    let weight = weight.map_or(0, |text| {
        text.trim().parse().unwrap_or_else(|_| {
            error(format!("the hook weight must be an integer, found {text:?}"));
            0
        })
    });
    let wait = object.annotation("kluctl.io/hook-wait").is_none_or(|text| {
        annotations::parse_bool(text).unwrap_or_else(|| {
            error(format!("kluctl.io/hook-wait must be true or false, found {text:?}"));
            true
        })
    });
    let timeout = object.annotation("kluctl.io/hook-timeout").and_then(|text| {
        let timeout = parse_duration(text);
        if timeout.is_none() {
            error(format!(
                "kluctl.io/hook-timeout must be a duration such as 90s or 1h30m, found {text:?}"
            ));
        }
        timeout
    });
    let delete = delete_policies(object, &mut problems);
    (Some(Hook { moments, weight, delete, wait, timeout }), problems)
}

/// The comma-separated words of an annotation.
fn words<'a>(object: &'a Object, annotation: &str) -> impl Iterator<Item = &'a str> {
    let text = object.annotation(annotation).unwrap_or_default();
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn moments(object: &Object, problems: &mut Vec<HookProblem>) -> BTreeSet<Moment> {
    let mut moments = BTreeSet::new();
    for word in words(object, "kluctl.io/hook") {
        match word {
            "pre-deploy" => moments.insert(Moment::PreDeploy),
            "post-deploy" => moments.insert(Moment::PostDeploy),
            "pre-deploy-initial" => moments.insert(Moment::PreDeployInitial),
            "post-deploy-initial" => moments.insert(Moment::PostDeployInitial),
            "pre-deploy-upgrade" => moments.insert(Moment::PreDeployUpgrade),
            "post-deploy-upgrade" => moments.insert(Moment::PostDeployUpgrade),
            other => {
                let message = format!(
                    "kluctl.io/hook has no moment {other:?}; there are pre-deploy and post-deploy, each also with \
                     -initial and -upgrade"
                );
                problems.push(HookProblem { message, is_error: true });
                moments.insert(Moment::Never)
            }
        };
    }
    for word in words(object, "helm.sh/hook") {
        let moment = match word {
            "pre-install" => Some(Moment::PreDeployInitial),
            "post-install" => Some(Moment::PostDeployInitial),
            "pre-upgrade" => Some(Moment::PreDeployUpgrade),
            "post-upgrade" => Some(Moment::PostDeployUpgrade),
            "pre-delete" | "post-delete" | "pre-rollback" | "post-rollback" => Some(Moment::Never),
            _ => None,
        };
        if moment.is_none_or(|moment| moment == Moment::Never) {
            let message = format!("helm.sh/hook {word:?} is not supported");
            problems.push(HookProblem { message, is_error: false });
        }
        moments.extend(moment);
    }
    moments
}

fn delete_policies(object: &Object, problems: &mut Vec<HookProblem>) -> BTreeSet<DeletePolicy> {
    let mut policies = BTreeSet::new();
    for annotation in ["kluctl.io/hook-delete-policy", "helm.sh/hook-delete-policy"] {
        for word in words(object, annotation) {
            match word {
                "before-hook-creation" => policies.insert(DeletePolicy::BeforeCreation),
                "hook-succeeded" => policies.insert(DeletePolicy::Succeeded),
                "hook-failed" => policies.insert(DeletePolicy::Failed),
                other => {
                    let message = format!(
                        "{annotation} has no policy {other:?}; there are before-hook-creation, hook-succeeded and hook-failed"
                    );
                    problems.push(HookProblem { message, is_error: true });
                    false
                }
            };
        }
    }
    if policies.is_empty() {
        policies.insert(DeletePolicy::BeforeCreation);
    }
    policies
}

/// A duration as Go writes it: `1h30m`, `90s`, `1.5s`, `300ms`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() && rest != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end =
            rest[end..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| end + at);
        seconds += number
            * match &rest[end..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// The positions of the hooks that run on one side of a deployment, by ascending weight and then in the order given.
pub fn select(hooks: &[(usize, Hook)], stage: Stage, initial: bool) -> Vec<(usize, Hook)> {
    let mut selected: Vec<_> =
        hooks.iter().filter(|(_, hook)| hook.runs(stage, initial)).cloned().collect();
    selected.sort_by_key(|(_, hook)| hook.weight);
    selected
}
