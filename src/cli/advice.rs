//! What to do about an error of a result, as far as its words tell.

use regex::Regex;

/// Words of errors, and what to do about them; the first that fits counts.
const ADVICE: [(&str, &str); 13] = [
    (
        "serves no kind",
        "deploy its CustomResourceDefinition in an item before, or install what defines it",
    ),
    (
        "the server could not find the requested resource",
        "install what defines the kind, or use a version of it that the cluster serves",
    ),
    (
        "field is immutable",
        "--force-replace-on-error deletes the object and creates it anew; what it holds may be lost",
    ),
    (
        "updates to statefulset spec",
        "--force-replace-on-error deletes the StatefulSet and creates it anew; its claims stay",
    ),
    ("exceeded quota", "ask for less, or raise the ResourceQuota that the message names"),
    ("is being terminated", "wait until the namespace is gone, and run the command again"),
    ("failed calling webhook", "look whether the service behind the webhook runs"),
    (
        "denied the request",
        "change the object as the webhook wants it; nothing is replaced by force",
    ),
    ("denied request", "change the object as the policy wants it; nothing is replaced by force"),
    ("has no discriminator", "set `discriminator` in .kluctl.yaml, or give --discriminator"),
    (
        "not ready after",
        "look at the object with `kubectl describe`; --readiness-timeout waits longer",
    ),
    ("Unauthorized", "log in again, or give another --context"),
    ("the run was interrupted", "the same command, run again, completes it"),
];

/// The next step after an error, if there is an obvious one.
pub(super) fn next_step(message: &str) -> Option<String> {
    if let Some(rule) = missing_right(message) {
        return Some(rule);
    }
    if message.starts_with("namespaces \"") && message.contains("\" not found") {
        return Some("add the Namespace to the project, in an item before".to_owned());
    }
    let advice = ADVICE.iter().find(|(words, _)| message.contains(words));
    advice.map(|(_, advice)| (*advice).to_owned())
}

/// The rule to add when the API server says which right is missing.
fn missing_right(message: &str) -> Option<String> {
    let pattern = concat!(
        r#"(?s)User "(?<user>[^"]*)" cannot (?<verb>\S+) resource "(?<resource>[^"]*)" "#,
        r#"in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?"#
    );
    let found = Regex::new(pattern).ok()?;
    let found = found.captures(message)?;
    let (user, verb, resource, group) =
        (&found["user"], &found["verb"], &found["resource"], &found["group"]);
    let role = match found.name("namespace") {
        Some(namespace) => format!("a Role in namespace {}", namespace.as_str()),
        None => "a ClusterRole".to_owned(),
    };
    Some(format!(
        "grant {user} by {role} the rule {{apiGroups: [\"{group}\"], resources: [{resource}], verbs: [{verb}]}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::next_step;

    #[test]
    fn a_missing_right_is_named_as_a_rule() {
        let message = "configmaps \"x\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \"configmaps\" in API group \"\" in the namespace \"ns\"";
        assert_eq!(
            next_step(message).unwrap(),
            "grant system:serviceaccount:a:b by a Role in namespace ns the rule {apiGroups: [\"\"], resources: [configmaps], verbs: [patch]}"
        );
        let message = "x is forbidden: User \"u\" cannot create resource \"clusterroles\" in API group \"rbac.authorization.k8s.io\" at the cluster scope";
        assert_eq!(
            next_step(message).unwrap(),
            "grant u by a ClusterRole the rule {apiGroups: [\"rbac.authorization.k8s.io\"], resources: [clusterroles], verbs: [create]}"
        );
    }

    #[test]
    fn known_errors_have_a_next_step() {
        let cases = [
            ("the cluster serves no kind Thing in example.com/v1", "CustomResourceDefinition"),
            (
                "Job.batch \"x\" is invalid: spec.template: field is immutable",
                "--force-replace-on-error",
            ),
            ("pods \"x\" is forbidden: exceeded quota: q, requested: pods=1", "ResourceQuota"),
            ("namespaces \"gone\" not found: it is not part of the deployment", "Namespace"),
            ("admission webhook \"a.b\" denied the request: no", "webhook"),
            ("not ready after 300 s: 0 of 1 replicas are ready", "--readiness-timeout"),
        ];
        for (message, expected) in cases {
            let step = next_step(message).unwrap_or_default();
            assert!(step.contains(expected), "{message}: {step}");
        }
        assert_eq!(next_step("something else"), None);
    }
}
