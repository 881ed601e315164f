//! What the API server says to a KluctlDeployment, and how kubectl shows one.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, config_map, with},
    tests,
};

tests![
    every_field_of_every_release_is_accepted_and_kept,
    what_makes_no_sense_is_refused_at_once,
    defaults_are_filled_in,
    kubectl_shows_what_matters_by_short_name_and_category,
    explain_describes_every_field,
];

/// All fields that releases from v0.0.2 to v0.16.5 had, and ours.
fn all_fields() -> Value {
    let secret = json!({"name": "secret"});
    json!({
        "sourceRef": {"apiVersion": "source.toolkit.fluxcd.io/v1beta2", "kind": "Bucket", "name": "s", "namespace": "n"},
        "path": "./apps",
        "dependsOn": [{"name": "a"}, {"name": "b", "namespace": "n"},
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "c"}],
        "credentials": {
            "git": [{"host": "example.com", "path": "a/*", "secretRef": secret}],
            "oci": [{"registry": "example.com", "repository": "a/*", "secretRef": secret}],
            "helm": [{"host": "example.com", "path": "a/*", "secretRef": secret}],
        },
        "interval": "1h30m", "retryInterval": "1.5s", "deployInterval": "never", "validateInterval": "10ms",
        "timeout": "90s", "suspend": true, "target": "prod", "targetNameOverride": "copy", "context": "c",
        "serviceAccountName": "account", "kubeConfig": {"secretRef": {"name": "secret", "key": "k"}},
        "renameContexts": [{"oldContext": "a", "newContext": "b"}],
        "decryption": {"provider": "sops", "secretRef": secret, "serviceAccount": "account"},
        "helmCredentials": [{"secretRef": secret}],
        "registrySecrets": [secret],
        "args": {"text": "a", "number": 1.5, "flag": true, "nothing": {}, "list": [1, "a", [true]], "deep": {"a": {"b": 1}}},
        "updateImages": true,
        "images": [{
            "image": "a", "resultImage": "b", "deployedImage": "c", "registryImage": "d", "namespace": "n",
            "object": {"group": "apps", "version": "v1", "kind": "Deployment", "name": "x", "namespace": "n"},
            "deployment": "Deployment/x", "container": "c", "versionFilter": "semver(allow_no_nums=false)",
            "deployTags": ["t"], "deploymentDir": "d",
        }, {"image": "a", "resultImage": "b", "object": {"id": "x_apps_Deployment_n", "v": "v1"}}],
        "dryRun": true, "noWait": true, "forceApply": true, "replaceOnError": true, "forceReplaceOnError": true,
        "abortOnError": true, "includeTags": ["a"], "excludeTags": ["b"], "includeDeploymentDirs": ["c"],
        "excludeDeploymentDirs": ["d"], "deployMode": "poke-images", "deployOnChanges": false, "validate": false,
        "prune": true, "delete": false,
    })
}

fn object(case: &Case, spec: &Value) -> Value {
    json!({"apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
        "metadata": {"name": "app", "namespace": case.namespace}, "spec": spec})
}

async fn every_field_of_every_release_is_accepted_and_kept(case: &mut Case) -> Result<()> {
    let mut spec = all_fields();
    let stored = case.try_apply(&object(case, &spec)).await?;
    ensure!(stored["spec"] == spec, "{:#}", stored["spec"]);
    let all = spec.as_object_mut().expect("a mapping");
    all.remove("sourceRef");
    all.remove("path");
    let source = json!({"url": "https://example.com/x.git", "ref": {"branch": "b", "tag": "t"}, "path": "p",
        "secretRef": {"name": "secret"}});
    all.insert("source".into(), source);
    let stored = case.try_apply(&object(case, &spec)).await?;
    ensure!(stored["spec"] == spec, "{:#}", stored["spec"]);
    Ok(())
}

async fn what_makes_no_sense_is_refused_at_once(case: &mut Case) -> Result<()> {
    let source = json!({"url": "https://example.com/x.git"});
    let long = "x".repeat(64);
    let cases = [
        ("/interval", json!(null), "spec.interval: Required value"),
        ("/interval", json!("5x"), "spec.interval in body should match"),
        ("/interval", json!("-5m"), "spec.interval in body should match"),
        ("/interval", json!(""), "spec.interval in body should match"),
        ("/interval", json!("5m junk"), "spec.interval in body should match"),
        ("/interval", json!("never"), "spec.interval in body should match"),
        ("/interval", json!(5), "spec.interval"),
        ("/retryInterval", json!("never"), "spec.retryInterval in body should match"),
        ("/timeout", json!("soon"), "spec.timeout in body should match"),
        ("/deployInterval", json!("sometimes"), "spec.deployInterval in body should match"),
        ("/validateInterval", json!("5"), "spec.validateInterval in body should match"),
        ("/source", source.clone(), "exactly one of sourceRef and source"),
        ("/sourceRef", json!(null), "exactly one of sourceRef and source"),
        ("/sourceRef/kind", json!("HelmChart"), "Unsupported value: \"HelmChart\""),
        ("/sourceRef/name", json!(""), "spec.sourceRef.name"),
        ("/sourceRef/apiVersion", json!("v1"), "apiVersion must belong to the group"),
        ("/dependsOn", json!([{"name": "a", "kind": "Kustomization"}]), "given together"),
        ("/dependsOn", json!([{"namespace": "a"}]), "spec.dependsOn[0].name: Required value"),
        ("/kubeConfig", json!({}), "kubeConfig needs secretRef"),
        (
            "/renameContexts",
            json!([{"oldContext": "a", "newContext": ""}]),
            "spec.renameContexts[0].newContext",
        ),
        ("/decryption", json!({"provider": "gpg"}), "Unsupported value: \"gpg\""),
        ("/deployMode", json!("half-deploy"), "Unsupported value: \"half-deploy\""),
        ("/target", json!(""), "spec.target"),
        ("/target", json!(long), "spec.target"),
        ("/images", json!([{"image": "a"}]), "spec.images[0].resultImage: Required value"),
        ("/args", json!([1]), "spec.args"),
        ("/prun", json!(true), ".spec.prun: field not declared in schema"),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = json!({"interval": "1m", "sourceRef": {"kind": "Bucket", "name": "a"}});
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = spec.pointer_mut(parent).and_then(Value::as_object_mut).expect("a mapping");
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), value.clone());
        }
        match case.try_apply(&object(case, &spec)).await {
            Ok(_) => anyhow::bail!("spec{pointer} = {value} was accepted"),
            Err(error) => {
                let error = format!("{error:#}");
                ensure!(error.contains(expected), "spec{pointer} = {value}: {error}");
            }
        }
    }
    let mut both = json!({"interval": "1m", "source": source, "path": "p"});
    let error = case.try_apply(&object(case, &both)).await.expect_err("path with source");
    ensure!(format!("{error:#}").contains("use source.path"), "{error:#}");
    both.as_object_mut().expect("a mapping").remove("path");
    case.try_apply(&object(case, &both)).await?;
    Ok(())
}

async fn defaults_are_filled_in(case: &mut Case) -> Result<()> {
    let spec = json!({"interval": "1m", "sourceRef": {"kind": "Bucket", "name": "a"}});
    let stored = case.try_apply(&object(case, &spec)).await?;
    let spec = &stored["spec"];
    for (field, value) in [
        ("suspend", json!(false)),
        ("validate", json!(true)),
        ("deployOnChanges", json!(true)),
        ("deployMode", json!("full-deploy")),
        ("prune", json!(false)),
        ("dryRun", json!(false)),
        // These follow other fields, so that a default would hide whether they were given.
        ("delete", Value::Null),
        ("deployInterval", Value::Null),
        ("validateInterval", Value::Null),
        ("target", Value::Null),
    ] {
        ensure!(spec[field] == value, "{field}: {}, not {value}", spec[field]);
    }
    Ok(())
}

async fn kubectl_shows_what_matters_by_short_name_and_category(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let project = format!("{}targets:\n  - name: prod\n", SHARED[0].1);
    let files = with(&SHARED, &[(".kluctl.yaml", &project), ("config/one.yaml", &one)]);
    case.deploy_files("app", &files, json!({"target": "prod"})).await?;
    case.wait_ready("app").await?;
    let get = |arguments: &[&str]| {
        let all = [&["get", "-n", &case.namespace], arguments].concat();
        case.suite.kubectl(&all)
    };
    let shown = get(&["kd", "app", "-o", "wide"])?;
    let mut lines = shown.lines();
    let heads: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    let expected = [
        "NAME",
        "TARGET",
        "DEPLOYED",
        "READY",
        "STATUS",
        "AGE",
        "REVISION",
        "SUSPENDED",
        "DRYRUN",
        "PRUNED",
        "VALIDATED",
    ];
    ensure!(heads == expected, "{heads:?}");
    let row = lines.next().unwrap_or_default();
    let values: Vec<_> = row.split_whitespace().collect();
    ensure!(values[..2] == ["app", "prod"] && values[3] == "True", "{row}");
    for value in ["Applied revision: v1@sha256:0001", "false"] {
        ensure!(row.contains(value), "{value:?} is not in: {row}");
    }
    let shown = get(&["kd"])?;
    let heads: Vec<_> = shown.lines().next().unwrap_or_default().split_whitespace().collect();
    ensure!(heads == expected[..6], "without -o wide: {heads:?}");
    for category in ["all", "fluxcd", "fluxcd-appliers"] {
        let shown = get(&[category, "-o", "name"])?;
        ensure!(shown.contains("kluctldeployment.flux.kluctl.io/app"), "{category}: {shown}");
    }
    Ok(())
}

async fn explain_describes_every_field(case: &mut Case) -> Result<()> {
    let crd = case
        .api("apiextensions.k8s.io/v1", "CustomResourceDefinition", None)
        .get("kluctldeployments.flux.kluctl.io")
        .await?;
    let schema = &crd.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let mut missing = Vec::new();
    for part in ["spec", "status"] {
        undescribed(&schema[part], part, &mut missing);
    }
    ensure!(missing.is_empty(), "no description: {missing:?}");
    let explained = case.suite.kubectl(&[
        "explain",
        "kluctldeployments.spec.dependsOn",
        "--api-version=flux.kluctl.io/v1alpha1",
    ])?;
    for text in ["must be ready before this one", "apiVersion", "<string> -required-"] {
        ensure!(explained.contains(text), "{text:?} is missing:\n{explained}");
    }
    Ok(())
}

/// Adds the paths below `path` that say nothing about themselves.
fn undescribed(schema: &Value, path: &str, missing: &mut Vec<String>) {
    if schema["description"].as_str().is_none_or(|text| text.len() < 3) {
        missing.push(path.to_owned());
    }
    let properties = [&schema["properties"], &schema["items"]["properties"]];
    for (name, inner) in properties.into_iter().filter_map(Value::as_object).flatten() {
        undescribed(inner, &format!("{path}.{name}"), missing);
    }
}
