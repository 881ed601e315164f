//! What the controller measures. Names and labels are those of Flux and of kluctl where they have any; labels are bounded
//! by the number of objects, and the series of a deleted object are dropped.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text::encode},
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::{Metric, Registry},
};

use super::{notify::Sent, outcome::Done};
use crate::api::{self, NamespacedName};

/// Flux's buckets for reconciliations: ten, from 10 ms to half an hour.
const RECONCILE_BUCKETS: [f64; 10] =
    [0.01, 0.038, 0.147, 0.566, 2.173, 8.349, 32.07, 123.2, 473.2, 1800.0];
/// Prometheus' default buckets, as kluctl uses for its commands, extended to the length of health waits.
const COMMAND_BUCKETS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0, 1800.0];

/// Values that the Ready condition may have.
const READY_VALUES: [&str; 3] = ["True", "False", "Unknown"];

/// Flux's labels of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
    name: String,
    namespace: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    #[prometheus(flatten)]
    object: KindLabels,
    r#type: &'static str,
    status: &'static str,
}

/// Kluctl's labels of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SentLabels {
    result: &'static str,
}

/// A stage of a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Reading the source, downloading the artifact, connecting to the cluster.
    Fetch,
    /// Rendering.
    Prepare,
    /// Deploying.
    Deploy,
    /// Pruning.
    Prune,
    /// Validating.
    Validate,
    /// Deleting everything.
    Delete,
}

impl EncodeLabelValue for Stage {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        let name = match self {
            Self::Fetch => "fetch",
            Self::Prepare => "prepare",
            Self::Deploy => "deploy",
            Self::Prune => "prune",
            Self::Validate => "validate",
            Self::Delete => "delete",
        };
        EncodeLabelValue::encode(&name, encoder)
    }
}

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

type Histograms<L> = Family<L, Histogram, Buckets>;
type Seconds = Gauge<f64, AtomicU64>;

/// All series.
pub(crate) struct Metrics {
    reconcile: Histograms<KindLabels>,
    condition: Family<ConditionLabels, Gauge>,
    suspended: Family<KindLabels, Gauge>,
    stages: Histograms<StageLabels>,
    waits: Histogram,
    deployments: Histograms<ObjectLabels>,
    prunes: Histograms<ObjectLabels>,
    validations: Histograms<ObjectLabels>,
    last_status: Family<ObjectLabels, Gauge>,
    last_deploy_start: Family<ObjectLabels, Seconds>,
    changed_objects: Family<ObjectLabels, Gauge>,
    deleted_objects: Family<ObjectLabels, Gauge>,
    orphan_objects: Family<ObjectLabels, Gauge>,
    flux_events: Family<SentLabels, Counter>,
    queued: Gauge,
    running: Gauge,
    is_leader: Gauge,
    registry: Registry,
}

/// Registers a series.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a series of Kluctl's controller.
fn own<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add(registry, &format!("kluctldeployments_{name}"), help, M::default())
}

/// Registers the durations of a command of Kluctl's controller.
fn command(registry: &mut Registry, name: &str, help: &str) -> Histograms<ObjectLabels> {
    let name = format!("kluctldeployments_{name}_duration_seconds");
    add(registry, &name, help, Family::new_with_constructor(Buckets(&COMMAND_BUCKETS)))
}

impl Metrics {
    /// Registers all series.
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let all = &mut registry;
        Self {
            reconcile: add(
                all,
                "gotk_reconcile_duration_seconds",
                "Duration of reconciliations, without the time that they wait for a worker",
                Family::new_with_constructor(Buckets(&RECONCILE_BUCKETS)),
            ),
            condition: add(
                all,
                "gotk_reconcile_condition",
                "Whether a condition has this status",
                Family::default(),
            ),
            suspended: add(
                all,
                "gotk_suspend_status",
                "Whether reconciliation is suspended",
                Family::default(),
            ),
            stages: add(
                all,
                "kluctl_stage_duration_seconds",
                "Duration of the stages of reconciliations, without the time that they wait for a worker",
                Family::new_with_constructor(Buckets(&COMMAND_BUCKETS)),
            ),
            waits: add(
                all,
                "kluctl_worker_wait_seconds",
                "Time that reconciliations wait for a worker, or for another one on the same target",
                Buckets(&COMMAND_BUCKETS).new_metric(),
            ),
            deployments: command(all, "deployment", "Duration of deployments"),
            prunes: command(all, "prune", "Duration of prunes"),
            validations: command(all, "validate", "Duration of validations"),
            last_status: own(all, "last_object_status", "1 when ready, 0 when not"),
            last_deploy_start: own(
                all,
                "last_deploy_start_timestamp_seconds",
                "When the last deployment began",
            ),
            changed_objects: own(
                all,
                "number_of_changed_objects",
                "Objects changed by the last deployment",
            ),
            deleted_objects: own(
                all,
                "number_of_deleted_objects",
                "Objects deleted by the last prune",
            ),
            orphan_objects: own(
                all,
                "number_of_orphan_objects",
                "Objects that the project does not contain any more",
            ),
            flux_events: add(
                all,
                "kluctl_flux_events",
                "Events for notification-controller, by what became of them",
                Family::default(),
            ),
            queued: add(
                all,
                "kluctl_queue_depth",
                "Objects that are due and wait for their turn",
                Gauge::default(),
            ),
            running: add(
                all,
                "kluctl_active_reconciles",
                "Objects that are being reconciled",
                Gauge::default(),
            ),
            is_leader: add(
                all,
                "kluctl_leader",
                "Whether this replica is the leader",
                Gauge::default(),
            ),
            registry,
        }
    }

    /// All series in the OpenMetrics text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _written = encode(&mut text, &self.registry);
        text
    }

    /// The end of a reconciliation: how long it took, and how long it had to wait besides.
    pub(crate) fn reconciled(&self, key: &NamespacedName, took: Duration, waited: Duration) {
        self.reconcile.get_or_create(&kind_labels(key)).observe(took.as_secs_f64());
        self.waits.observe(waited.as_secs_f64());
    }

    /// The state of an object after a reconciliation. `ready` is the status of its Ready condition.
    pub(crate) fn observed(&self, key: &NamespacedName, ready: &str, is_suspended: bool) {
        for status in READY_VALUES {
            let labels = condition_labels(key, status);
            self.condition.get_or_create(&labels).set(i64::from(status == ready));
        }
        self.last_status.get_or_create(&object_labels(key)).set(i64::from(ready == "True"));
        self.suspended.get_or_create(&kind_labels(key)).set(i64::from(is_suspended));
    }

    /// What a reconciliation did.
    pub(crate) fn done(&self, key: &NamespacedName, done: &Done) {
        let labels = object_labels(key);
        if let Some(deploy) = &done.deploy {
            self.changed_objects.get_or_create(&labels).set(deploy.status.changed_objects);
            self.orphan_objects.get_or_create(&labels).set(deploy.status.orphan_objects);
        }
        if let Some(prune) = &done.prune {
            self.deleted_objects.get_or_create(&labels).set(prune.status.deleted_objects);
        }
    }

    /// The duration of a stage of one object's reconciliation.
    pub(crate) fn stage(&self, key: &NamespacedName, stage: Stage, took: Duration) {
        let took = took.as_secs_f64();
        self.stages.get_or_create(&StageLabels { stage }).observe(took);
        let labels = object_labels(key);
        match stage {
            Stage::Deploy => self.deployments.get_or_create(&labels).observe(took),
            Stage::Prune => self.prunes.get_or_create(&labels).observe(took),
            Stage::Validate => self.validations.get_or_create(&labels).observe(took),
            Stage::Fetch | Stage::Prepare | Stage::Delete => {}
        }
    }

    /// The beginning of a deployment.
    pub(crate) fn deploy_started(&self, key: &NamespacedName, now: jiff::Timestamp) {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit into the mantissa")]
        let seconds = now.as_second() as f64;
        self.last_deploy_start.get_or_create(&object_labels(key)).set(seconds);
    }

    /// Drops the series of an object that is gone.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        let (kind, object) = (kind_labels(key), object_labels(key));
        self.reconcile.remove(&kind);
        self.suspended.remove(&kind);
        for status in READY_VALUES {
            self.condition.remove(&condition_labels(key, status));
        }
        for histograms in [&self.deployments, &self.prunes, &self.validations] {
            histograms.remove(&object);
        }
        let gauges =
            [&self.last_status, &self.changed_objects, &self.deleted_objects, &self.orphan_objects];
        for gauge in gauges {
            gauge.remove(&object);
        }
        self.last_deploy_start.remove(&object);
    }

    /// What became of an event for notification-controller.
    pub(crate) fn flux_event(&self, sent: Sent) {
        let result = match sent {
            Sent::Accepted => "accepted",
            Sent::Duplicate => "duplicate",
            Sent::Failed => "failed",
        };
        self.flux_events.get_or_create(&SentLabels { result }).inc();
    }

    /// An event that found its queue full.
    pub(crate) fn event_dropped(&self) {
        self.flux_events.get_or_create(&SentLabels { result: "dropped" }).inc();
    }

    /// How much waits and runs.
    pub(crate) fn load(&self, queued: usize, running: usize) {
        self.queued.set(i64::try_from(queued).unwrap_or(i64::MAX));
        self.running.set(i64::try_from(running).unwrap_or(i64::MAX));
    }

    /// Whether this replica is the leader.
    pub(crate) fn leader(&self, is_leader: bool) {
        self.is_leader.set(i64::from(is_leader));
    }
}

fn kind_labels(key: &NamespacedName) -> KindLabels {
    KindLabels { kind: api::KIND, name: key.name.clone(), namespace: key.namespace.clone() }
}

fn condition_labels(key: &NamespacedName, status: &'static str) -> ConditionLabels {
    ConditionLabels { object: kind_labels(key), r#type: api::READY, status }
}

fn object_labels(key: &NamespacedName) -> ObjectLabels {
    ObjectLabels { namespace: key.namespace.clone(), name: key.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_fluxs_names_and_go_with_their_object() {
        let metrics = Metrics::new();
        let key = NamespacedName::new("apps", "shop");
        metrics.reconciled(&key, Duration::from_secs(1), Duration::from_secs(20));
        metrics.observed(&key, "True", false);
        metrics.stage(&key, Stage::Deploy, Duration::from_secs(1));
        metrics.flux_event(Sent::Duplicate);
        let text = metrics.text();
        for line in [
            r#"gotk_reconcile_duration_seconds_count{kind="KluctlDeployment",name="shop",namespace="apps"} 1"#,
            r#"gotk_reconcile_condition{kind="KluctlDeployment",name="shop",namespace="apps",type="Ready",status="True"} 1"#,
            r#"kluctldeployments_deployment_duration_seconds_count{namespace="apps",name="shop"} 1"#,
            r#"kluctldeployments_last_object_status{namespace="apps",name="shop"} 1"#,
            r#"kluctl_stage_duration_seconds_count{stage="deploy"} 1"#,
            "kluctl_worker_wait_seconds_sum 20.0",
            r#"gotk_reconcile_duration_seconds_sum{kind="KluctlDeployment",name="shop",namespace="apps"} 1.0"#,
            r#"kluctl_flux_events_total{result="duplicate"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        metrics.forget(&key);
        assert!(!metrics.text().contains("shop"));
    }
}
