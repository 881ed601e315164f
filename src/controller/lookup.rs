use std::sync::Arc;

use serde_json::Value;

use crate::cluster::{ApiKind, ApiOutcome, Cluster, Discovery};

/// Reads an object as the controller itself.
pub(super) async fn get(
    cluster: &Cluster,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> ApiOutcome {
    cluster.get(kind, namespace, name).await.outcome
}

/// What was found under a name, whichever version its kind is served in.
pub(super) enum Found {
    /// The object.
    Object(Value),
    /// The cluster serves no such kind.
    NoKind,
    /// There is no such object, or it cannot be read.
    Refused(Arc<ApiKind>, ApiOutcome),
}

/// Reads an object of the kind that `choose` finds among those of the cluster. What is not there may be served in another
/// version by now, so then the kinds are asked for anew.
///
/// # Errors
/// When the kinds of the cluster cannot be listed.
pub(super) async fn find(
    cluster: &Cluster,
    choose: impl Fn(&Discovery) -> Option<Arc<ApiKind>>,
    namespace: &str,
    name: &str,
) -> Result<Found, ApiOutcome> {
    let kinds = cluster.kinds().await?;
    let known = choose(&kinds);
    let mut found = Found::NoKind;
    if let Some(kind) = known.clone() {
        found = read(cluster, kind, namespace, name).await;
    }
    let is_absent = match &found {
        Found::Object(_) => false,
        Found::NoKind => true,
        Found::Refused(_, outcome) => outcome.is_absent(),
    };
    if is_absent {
        let kinds = cluster.refresh_kinds().await?;
        match choose(&kinds) {
            None => return Ok(Found::NoKind),
            Some(kind) if Some(&kind) != known.as_ref() => {
                found = read(cluster, kind, namespace, name).await;
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

async fn read(cluster: &Cluster, kind: Arc<ApiKind>, namespace: &str, name: &str) -> Found {
    match get(cluster, &kind, Some(namespace), name).await {
        ApiOutcome::Done(object) => Found::Object(object),
        outcome => Found::Refused(kind, outcome),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::cluster::tests::script::{Script, aggregated, answer, hasty};

    #[tokio::test]
    async fn an_object_is_found_in_whichever_version_is_served_now() {
        let script = Script::start().await;
        let cluster = script.cluster(hasty());
        let choose = |kinds: &Discovery| kinds.preferred("example.com", "Widget").cloned();
        assert!(choose(&cluster.kinds().await.unwrap()).is_some_and(|kind| kind.version == "v1"));

        let widgets = [("widgets", "Widget", true)];
        script.on("GET /apis", [aggregated("example.com", "v2", &widgets)]);
        let widget = json!({ "metadata": { "name": "a" } });
        script.on("GET /apis/example.com/v2/namespaces/ns/widgets/a", [answer(200, &widget)]);
        // The kinds are asked for a few times a second at most.
        let gap = Duration::from_millis(350);
        tokio::time::sleep(gap).await;
        let found = find(&cluster, choose, "ns", "a").await.unwrap();
        assert!(matches!(found, Found::Object(object) if object["metadata"]["name"] == "a"));
        let found = find(&cluster, choose, "ns", "b").await.unwrap();
        assert!(matches!(found, Found::Refused(_, outcome) if outcome.is_absent()));

        script.on("GET /apis", [aggregated("example.com", "v2", &[])]);
        tokio::time::sleep(gap).await;
        assert!(matches!(find(&cluster, choose, "ns", "b").await, Ok(Found::NoKind)));
    }
}
