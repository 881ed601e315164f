//! What the fields of the spec do: selection, images, names, and the switches for errors.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{
        Case, GitRepo, GitServer, SHARED, STUCK, condition, config_map, message_of, ready_reason,
        with,
    },
    tests,
};

tests![
    tags_and_directories_select_items,
    what_a_filter_leaves_out_is_not_pruned,
    fixed_images_are_used_where_they_fit,
    target_name_and_context_are_overridden,
    a_project_below_the_root_is_found,
    the_artifact_counts_and_not_what_its_source_says_of_itself,
    a_repository_is_cloned_and_its_secret_watched,
    without_waiting_readiness_delays_nothing,
    the_first_error_ends_a_deployment_that_aborts,
    fields_of_others_are_taken_by_force_only,
    what_cannot_be_applied_is_replaced_only_if_allowed,
    failures_are_listed_up_to_twenty_and_counted_beyond,
    deprecated_fields_give_a_warning_event,
    what_is_not_supported_yet_is_refused_by_name,
    projects_that_need_later_features_are_refused_by_name,
];

/// Three items, of which the third has no tags of its own.
const ITEMS: &[(&str, &str)] = &[
    SHARED[0],
    (
        "deployment.yaml",
        "deployments:\n  - path: one\n    tags: [first]\n  - path: two\n    tags: [second, even]\n  - path: three\noverrideNamespace: \"{{ args.namespace }}\"\n",
    ),
    (
        "one/it.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ args.name }}-one\"\n",
    ),
    (
        "two/it.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ args.name }}-two\"\n",
    ),
    (
        "three/it.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ args.name }}-three\"\n",
    ),
];

/// The deployed ConfigMaps of a deployment, without its name in front.
async fn items(case: &Case, name: &str) -> Result<Vec<String>> {
    let selector = format!("kluctl.io/discriminator={name}-{}", case.namespace);
    let mut names: Vec<String> = case.names("v1", "ConfigMap", &selector).await?;
    for item in &mut names {
        *item = item.replace(&format!("{name}-"), "");
    }
    Ok(names)
}

async fn tags_and_directories_select_items(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.publish("app", ITEMS, "v1@sha256:0001").await?;
    let chosen = [
        ("include-tag", json!({"includeTags": ["first", "three"]}), vec!["one", "three"]),
        ("exclude-tag", json!({"excludeTags": ["even"]}), vec!["one", "three"]),
        ("include-dir", json!({"includeDeploymentDirs": ["two"]}), vec!["two"]),
        ("exclude-dir", json!({"excludeDeploymentDirs": ["two", "three"]}), vec!["one"]),
    ];
    for (name, spec, _) in &chosen {
        case.apply(case.artifact_deployment(name, "app", spec.clone())).await?;
    }
    for (name, spec, expected) in &chosen {
        case.wait_ready(name).await?;
        let found = items(case, name).await?;
        ensure!(found == *expected, "{spec}: {found:?}, not {expected:?}");
    }
    Ok(())
}

async fn what_a_filter_leaves_out_is_not_pruned(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let second = ITEMS[2].1.replace("-one", "-one-b");
    let files = with(ITEMS, &[("one/second.yaml", &second)]);
    case.deploy_files("app", &files, json!({})).await?;
    case.wait_ready("app").await?;
    ensure!(items(case, "app").await? == ["one", "one-b", "three", "two"]);
    case.patch_spec("app", json!({"includeTags": ["first"]})).await?;
    case.wait_ready("app").await?;
    ensure!(items(case, "app").await?.len() == 4, "changing the filter removed something");
    case.publish("app", ITEMS, "v2@sha256:0002").await?;
    case.wait_gone("v1", "ConfigMap", "app-one-b").await?;
    ensure!(items(case, "app").await? == ["one", "three", "two"], "the filter does not protect");
    Ok(())
}

async fn fixed_images_are_used_where_they_fit(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let manifest = |name: &str| {
        config_map(name, "\"{{ images.get_image('example.com/app') }}\"")
            .replace("metadata:\n", "metadata:\n  namespace: \"{{ args.namespace }}\"\n")
    };
    let (plain, by_object, by_name) =
        (manifest("plain"), manifest("by-object"), manifest("by-name"));
    let (elsewhere, pod) = (
        manifest("elsewhere"),
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: by-container\nspec:\n  containers:\n    - {name: app, image: \"{{ images.get_image('example.com/app') }}\"}\n    - {name: side, image: \"{{ images.get_image('example.com/app') }}\"}\n",
    );
    let files = with(
        &SHARED,
        &[
            ("config/plain.yaml", &plain),
            ("config/by-object.yaml", &by_object),
            ("config/by-name.yaml", &by_name),
            ("config/elsewhere.yaml", &elsewhere),
            ("config/pod.yaml", pod),
        ],
    );
    let fixed = |result: &str, more: Value| {
        let mut entry =
            json!({"image": "example.com/app", "resultImage": format!("example.com/app:{result}")});
        crate::support::merge(&mut entry, more);
        entry
    };
    let object = json!({"object": {"version": "v1", "kind": "ConfigMap", "name": "by-object",
        "namespace": case.namespace}});
    let images = json!([
        fixed("everywhere", json!({})),
        fixed("object", object),
        fixed("name", json!({"deployment": "ConfigMap/by-name"})),
        fixed("container", json!({"container": "side"})),
        fixed("namespace", json!({"namespace": "another"})),
        {"image": "example.com/other", "resultImage": "example.com/other:1"},
    ]);
    case.deploy_files("app", &files, json!({"images": images, "noWait": true, "validate": false}))
        .await?;
    case.wait_ready("app").await?;
    for (name, tag) in [("plain", "everywhere"), ("by-object", "object"), ("by-name", "name")] {
        let value = &case.config_map(name).await?["data"]["value"];
        ensure!(*value == format!("example.com/app:{tag}"), "{name}: {value}");
    }
    let pod = case.get("v1", "Pod", "by-container").await?.unwrap_or_default();
    let images: Vec<_> = (0..2).map(|at| &pod["spec"]["containers"][at]["image"]).collect();
    ensure!(images == ["example.com/app:everywhere", "example.com/app:container"], "{images:?}");
    Ok(())
}

async fn target_name_and_context_are_overridden(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let project = format!("{}targets:\n  - name: base\n    context: nowhere\n", SHARED[0].1);
    let one = config_map("one", "\"{{ target.name }} in {{ target.context }}\"");
    let files = with(&SHARED, &[(".kluctl.yaml", &project), ("config/one.yaml", &one)]);
    let spec = json!({"target": "base", "targetNameOverride": "copy", "context": "default"});
    case.deploy_files("app", &files, spec).await?;
    let object = case.wait_ready("app").await?;
    let value = &case.config_map("one").await?["data"]["value"];
    ensure!(*value == "copy in default", "{value}");
    let result = &object["status"]["lastDeployResult"];
    ensure!(result["targetNameOverride"] == "copy", "{result}");

    case.patch_spec("app", json!({"target": "bas"})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("bas") && message.contains("base"), "{message}");
    Ok(())
}

async fn a_project_below_the_root_is_found(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let files = with(&SHARED, &[("config/one.yaml", &one)]);
    let below: Vec<(String, &str)> =
        files.iter().map(|(path, text)| (format!("apps/shop/{path}"), *text)).collect();
    let below: Vec<(&str, &str)> =
        below.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    case.deploy_files("app", &below, json!({"path": "./apps/shopp"})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    ensure!(message_of(&object, "Ready").contains("apps/shopp"), "{}", object["status"]);
    case.patch_spec("app", json!({"path": "./apps/shop"})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    case.patch_spec("app", json!({"path": "../elsewhere"})).await?;
    let object = case.wait_failed("app", "InvalidSpec").await?;
    ensure!(condition(&object, "Stalled").is_some(), "{}", object["status"]);
    Ok(())
}

async fn the_artifact_counts_and_not_what_its_source_says_of_itself(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    case.publish("app", &with(&SHARED, &[("config/one.yaml", &one)]), "v1@sha256:0001").await?;
    // The last fetch failed, which does not make the artifact bad; nor is the version asked for served any more.
    let failed = json!({"status": {"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "False", "reason": "FetchFailed", "message": "no",
            "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Stalled", "status": "True", "reason": "FetchFailed", "message": "no",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let (api_version, kind) = ("source.toolkit.fluxcd.io/v1", "ExternalArtifact");
    case.patch_status(api_version, kind, "app", failed).await?;
    let source =
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1alpha7", "kind": kind, "name": "app"});
    case.apply(case.artifact_deployment("app", "app", json!({"sourceRef": source}))).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    Ok(())
}

async fn a_repository_is_cloned_and_its_secret_watched(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let arguments = ["--user", "robot", "--password", "pass-word-1"];
    let server = GitServer::start(&case.dir.join("guarded"), &arguments)?;
    let one = config_map("one", "first");
    let files = [
        ("apps/.kluctl.yaml", SHARED[0].1),
        ("apps/deployment.yaml", SHARED[1].1),
        ("apps/config/one.yaml", &one),
    ];
    let repo = GitRepo::create(&server, &case.dir, &format!("{}/app", case.namespace), &files)?;
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git"},
            "stringData": {"username": "robot", "password": password}})
    };
    case.apply(secret("pass-word-0")).await?;
    // The retry is an hour away: only the watch on the Secret can wake the deployment.
    let mut object = case.artifact_deployment(
        "app",
        "none",
        json!({"retryInterval": "1h", "source": {
            "url": repo.url, "ref": {"branch": "main"}, "path": "apps", "secretRef": {"name": "git"}}}),
    );
    object["spec"].as_object_mut().expect("a mapping").remove("sourceRef");
    case.apply(object).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    ensure!(!message_of(&object, "Ready").contains("pass-word"), "{}", object["status"]);
    case.apply(secret("pass-word-1")).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let revision = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
    ensure!(revision.starts_with("main@sha1:"), "{revision}");

    // Without a source object there is nothing to watch: a new commit is found at the interval, or on request.
    let commit = repo.commit(&[("apps/config/one.yaml", &config_map("one", "second"))])?;
    case.request_reconcile("app", "1").await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "second", "not deployed again");
    Ok(())
}

async fn without_waiting_readiness_delays_nothing(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let wait = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(&SHARED, &[("deployment.yaml", wait), ("config/stuck.yaml", STUCK)]);
    case.deploy_files("app", &files, json!({"noWait": true, "validate": false})).await?;
    case.deploy_files("judged", &files, json!({"noWait": true})).await?;
    case.wait_ready("app").await?;
    case.wait_deployment("judged", "what is not ready", |object| {
        message_of(object, "Ready").contains("Deployment/judged")
            && object["status"]["lastDeployResult"]["time"].is_string()
    })
    .await?;
    Ok(())
}

async fn the_first_error_ends_a_deployment_that_aborts(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let refused = "apiVersion: v1\nkind: Service\nmetadata:\n  name: \"{{ args.name }}\"\nspec:\n  ports:\n    - port: 99999999\n";
    let after = config_map("\"{{ args.name }}\"", "after");
    let items = "deployments:\n  - path: bad\n  - barrier: true\n  - path: after\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(
        &SHARED,
        &[("deployment.yaml", items), ("bad/it.yaml", refused), ("after/it.yaml", &after)],
    );
    case.deploy_files("goes-on", &files, json!({})).await?;
    case.deploy_files("aborts", &files, json!({"abortOnError": true})).await?;
    for name in ["goes-on", "aborts"] {
        let object = case.wait_failed(name, "DeployFailed").await?;
        ensure!(message_of(&object, "Ready").contains("99999999"), "{}", object["status"]);
    }
    ensure!(!case.config_map("goes-on").await?.is_null(), "the rest was not deployed");
    ensure!(case.config_map("aborts").await?.is_null(), "the rest was deployed");
    Ok(())
}

async fn fields_of_others_are_taken_by_force_only(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "ours");
    case.deploy_files("app", &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await?;
    case.wait_ready("app").await?;
    case.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
        "data": {"value": "theirs"}}))
        .await?;
    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "1").await?;
    let object = case
        .wait_deployment("app", "the deployment", |o| o["status"]["lastHandledDeployAt"] == "1")
        .await?;
    let value = &case.config_map("one").await?["data"]["value"];
    ensure!(*value == "theirs", "another manager's field was taken without force: {value}");
    ensure!(object["status"]["lastDeployResult"]["warnings"] == 1, "{}", object["status"]);
    case.patch_spec("app", json!({"forceApply": true})).await?;
    case.wait_ready("app").await?;
    let value = &case.config_map("one").await?["data"]["value"];
    ensure!(*value == "ours", "forceApply left another manager's field: {value}");
    Ok(())
}

async fn what_cannot_be_applied_is_replaced_only_if_allowed(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let service = |port: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: service\nspec:\n  ports:\n    - {{name: {port}, port: 80}}\n"
        )
    };
    let fixed = |value: &str| format!("{}immutable: true\n", config_map("fixed", value));
    let (service_1, fixed_1) = (service("web"), fixed("first"));
    let files =
        with(&SHARED, &[("config/service.yaml", &service_1), ("config/fixed.yaml", &fixed_1)]);
    case.deploy_files("app", &files, json!({})).await?;
    case.wait_ready("app").await?;
    // Another manager's port stays when ours are applied, and then two have the same name.
    case.apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service"},
        "spec": {"ports": [{"name": "admin", "port": 81, "protocol": "TCP"}]}}))
        .await?;
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let before = uid(&case.config_map("fixed").await?);

    let service_2 = service("admin");
    let files =
        with(&SHARED, &[("config/service.yaml", &service_2), ("config/fixed.yaml", &fixed_1)]);
    case.publish("app", &files, "v2@sha256:0002").await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    ensure!(message_of(&object, "Ready").contains("Duplicate value"), "{}", object["status"]);
    case.patch_spec("app", json!({"replaceOnError": true})).await?;
    case.wait_ready("app").await?;
    let live = case.get("v1", "Service", "service").await?.unwrap_or_default();
    let ports = &live["spec"]["ports"];
    ensure!(ports.as_array().is_some_and(|all| all.len() == 1), "not replaced: {ports}");
    ensure!(ports[0]["name"] == "admin", "{ports}");

    let fixed_2 = fixed("second");
    let files =
        with(&SHARED, &[("config/service.yaml", &service_2), ("config/fixed.yaml", &fixed_2)]);
    case.publish("app", &files, "v3@sha256:0003").await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    ensure!(message_of(&object, "Ready").contains("ConfigMap/fixed"), "{}", object["status"]);
    ensure!(uid(&case.config_map("fixed").await?) == before, "recreated without force");
    case.patch_spec("app", json!({"forceReplaceOnError": true})).await?;
    case.wait_ready("app").await?;
    let fixed = case.config_map("fixed").await?;
    ensure!(fixed["data"]["value"] == "second" && uid(&fixed) != before, "not recreated: {fixed}");
    Ok(())
}

async fn failures_are_listed_up_to_twenty_and_counted_beyond(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let refused = "{% for i in range(23) %}apiVersion: v1\nkind: Service\nmetadata:\n  name: refused-{{ i }}\nspec:\n  ports:\n    - port: 99999999\n---\n{% endfor %}";
    let files = with(&SHARED, &[("config/refused.yaml", refused)]);
    case.deploy_files("app", &files, json!({"retryInterval": "1h"})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    let status = &object["status"];
    ensure!(status["failedObjectsCount"] == 23, "{status}");
    let listed = status["failedObjects"].as_array().map(Vec::len);
    ensure!(listed == Some(20), "{listed:?} are listed");
    ensure!(message_of(&object, "Ready").contains("and 20 more"), "{status}");
    Ok(())
}

async fn deprecated_fields_give_a_warning_event(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let spec = json!({"registrySecrets": [{"name": "registry"}], "updateImages": true});
    case.deploy_files("app", &with(&SHARED, &[("config/one.yaml", &one)]), spec).await?;
    case.wait_ready("app").await?;
    for field in ["spec.registrySecrets", "spec.updateImages"] {
        case.wait_until(&format!("the warning about {field}"), || async {
            Ok(case.events_of("app").await?.iter().any(|event| {
                event["type"] == "Warning"
                    && event["reason"] == "DeprecatedField"
                    && event["message"].as_str().is_some_and(|text| text.starts_with(field))
            }))
        })
        .await?;
    }
    Ok(())
}

async fn what_is_not_supported_yet_is_refused_by_name(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let secret = json!({"name": "none"});
    let used = [
        ("decryption", json!({"decryption": {"provider": "sops", "secretRef": secret}})),
        ("deployMode", json!({"deployMode": "poke-images"})),
    ];
    let name = |field: &str| field.to_lowercase().replace('.', "-");
    for (field, spec) in &used {
        case.apply(case.artifact_deployment(&name(field), "none", spec.clone())).await?;
    }
    for (field, _) in &used {
        let object = case.wait_failed(&name(field), "UnsupportedFeature").await?;
        let message = message_of(&object, "Ready");
        ensure!(message.contains(&format!("spec.{field}")), "{field} is not named: {message}");
        ensure!(condition(&object, "Stalled").is_some(), "{field}: {}", object["status"]);
    }
    Ok(())
}

async fn projects_that_need_later_features_are_refused_by_name(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let encrypted = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: \"ENC[AES256_GCM,data:x]\"}\nsops:\n  mac: \"ENC[AES256_GCM,data:y]\"\n  version: 3.9.0\n";
    let oci =
        "deployments:\n  - oci:\n      url: oci://example.com/x\noverrideNamespace: default\n";
    let vars = |entry: &str| format!("vars:\n  - {entry}\n{}", SHARED[1].1);
    let (gcp, vault) = (
        vars("gcpSecretManager: {secretName: projects/x}"),
        vars("vault: {address: \"https://example.com\", path: x}"),
    );
    let used = [
        ("sops", ("config/secret.yaml", encrypted), ["config/secret.yaml", "SOPS"]),
        ("oci", ("deployment.yaml", oci), ["deployment.yaml:2", "OCI"]),
        ("gcp", ("deployment.yaml", &gcp), ["deployment.yaml:2", "gcpSecretManager"]),
        ("vault", ("deployment.yaml", &vault), ["deployment.yaml:2", "vault"]),
    ];
    for (name, change, _) in &used {
        let files = with(&SHARED, &[("config/one.yaml", &one), *change]);
        case.deploy_files(name, &files, json!({"retryInterval": "1h"})).await?;
    }
    for (name, _, mentions) in &used {
        let object = case
            .wait_deployment(name, "the refusal", |object| {
                matches!(ready_reason(object), "PrepareFailed" | "UnsupportedFeature")
            })
            .await?;
        let message = message_of(&object, "Ready");
        for mention in mentions {
            ensure!(message.contains(mention), "{name}: {mention:?} is not in: {message}");
        }
        let is_clear = ["not supported", "not available"].iter().any(|text| message.contains(text));
        ensure!(is_clear, "{name}: {message}");
        ensure!(case.config_map("one").await?.is_null(), "{name}: something was deployed");
    }
    Ok(())
}
