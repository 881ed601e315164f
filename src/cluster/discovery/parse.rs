//! Discovery documents to kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::ApiKind;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn has_verb(resource: &Value, verb: &str) -> bool {
    items(resource, "verbs").any(|found| found == verb)
}

/// Kinds and unavailable group versions of an `APIGroupDiscoveryList`. Groups list their versions by preference; a kind is
/// preferred in the first version that has its resource.
pub(super) fn aggregated(list: &Value) -> (Vec<ApiKind>, Vec<String>) {
    let mut kinds = Vec::new();
    let mut unavailable = Vec::new();
    for group in items(list, "items") {
        let name = text(&group["metadata"], "name");
        let mut seen = HashSet::new();
        for version in items(group, "versions") {
            if text(version, "freshness") == "Stale" {
                unavailable.push(format!("{name}/{}", text(version, "version")));
            }
            for resource in items(version, "resources") {
                let kind = text(&resource["responseKind"], "kind");
                if kind.is_empty() {
                    continue;
                }
                kinds.push(ApiKind {
                    group: name.to_owned(),
                    version: text(version, "version").to_owned(),
                    kind: kind.to_owned(),
                    plural: text(resource, "resource").to_owned(),
                    namespaced: text(resource, "scope") == "Namespaced",
                    listable: has_verb(resource, "list"),
                    deletable: has_verb(resource, "delete"),
                    has_status: items(resource, "subresources")
                        .any(|sub| sub["subresource"] == "status"),
                    preferred: seen.insert(text(resource, "resource")),
                });
            }
        }
    }
    (kinds, unavailable)
}

/// The core group and every group version of an `APIGroupList`, preferred versions first within a group.
pub(super) fn group_versions(list: &Value) -> Vec<(String, String)> {
    let mut found = vec![(String::new(), "v1".to_owned())];
    for group in items(list, "groups") {
        let preferred = text(&group["preferredVersion"], "version");
        let mut versions: Vec<_> =
            items(group, "versions").map(|version| text(version, "version")).collect();
        versions.sort_by_key(|version| *version != preferred);
        found.extend(
            versions
                .into_iter()
                .map(|version| (text(group, "name").to_owned(), version.to_owned())),
        );
    }
    found
}

/// Kinds of one group version from an `APIResourceList`; `known` are those of versions with more preference.
pub(super) fn resources(
    group: &str,
    version: &str,
    list: &Value,
    known: &[ApiKind],
) -> Vec<ApiKind> {
    let subresources: HashSet<&str> =
        items(list, "resources").map(|resource| text(resource, "name")).collect();
    let main = items(list, "resources").filter(|resource| !text(resource, "name").contains('/'));
    main.map(|resource| {
        let plural = text(resource, "name");
        ApiKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(resource, "kind").to_owned(),
            plural: plural.to_owned(),
            namespaced: resource["namespaced"] == true,
            listable: has_verb(resource, "list"),
            deletable: has_verb(resource, "delete"),
            has_status: subresources.contains(format!("{plural}/status").as_str()),
            preferred: !known.iter().any(|kind| kind.group == group && kind.plural == plural),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Discovery;

    #[test]
    fn aggregated_documents_become_kinds() {
        let resource = |plural: &str, kind: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
                "verbs": ["get", "list", "delete"], "subresources": [{"subresource": "status"}]})
        };
        let list = json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "autoscaling"}, "versions": [
            {"version": "v2", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")], "freshness": "Current"},
            {"version": "v1", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler"), resource("olds", "Old")],
                "freshness": "Stale"},
        ]}]});
        let (kinds, unavailable) = aggregated(&list);
        assert_eq!(unavailable, ["autoscaling/v1"]);
        let discovery = Discovery::of(kinds);
        let preferred = discovery.preferred("autoscaling", "HorizontalPodAutoscaler").unwrap();
        assert_eq!(preferred.api_version(), "autoscaling/v2");
        assert!(preferred.has_status);
        assert_eq!(discovery.preferred("autoscaling", "Old").unwrap().version, "v1");
        assert_eq!(discovery.ownable().count(), 2);
        assert_eq!(
            preferred.path(Some("a"), Some("b")),
            "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/b"
        );
    }

    #[test]
    fn documents_by_group_become_kinds() {
        let groups = json!({"groups": [{"name": "apps", "preferredVersion": {"version": "v1"},
            "versions": [{"version": "v1beta1"}, {"version": "v1"}]}]});
        assert_eq!(
            group_versions(&groups),
            [("", "v1"), ("apps", "v1"), ("apps", "v1beta1")].map(|(g, v)| (g.into(), v.into()))
        );
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["list", "delete"]},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true, "verbs": ["get"]}]});
        let kinds = resources("apps", "v1", &list, &[]);
        assert_eq!(kinds.len(), 1);
        assert!(kinds[0].has_status && kinds[0].preferred && kinds[0].listable);
        assert!(!resources("apps", "v1beta1", &list, &kinds)[0].preferred);
    }
}
