use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
fn object(spec: Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": { "name": "shop", "namespace": "apps" },
        "spec": spec,
    })
}

#[test]
fn durations_follow_go() {
    for (text, millis) in [
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("300ms", 300),
        ("0", 0),
        ("0s", 0),
        (".5s", 500),
        ("1.s", 1_000),
        ("+1s", 1_000),
        ("1m1m", 120_000),
        ("1500us", 1),
        ("1500000ns", 1),
        ("1.0000000000001s", 1_000),
    ] {
        let parsed: GoDuration = text.parse().unwrap();
        assert_eq!(parsed.0.as_millis(), millis, "{text}");
    }
    for text in ["", "5", "5x", "5mxyz", "m", "1d", "-1s", "1h 30m", ".s", "never", "9999999h"] {
        assert!(text.parse::<GoDuration>().is_err(), "{text}");
    }
    assert_eq!(
        "5mxyz".parse::<GoDuration>().unwrap_err().to_string(),
        "`5mxyz` is not a duration, expected a duration such as 30s, 10m or 1h30m"
    );
}

#[test]
fn durations_print_as_go_prints_them() {
    for (text, shown) in [
        ("90m", "1h30m0s"),
        ("10m", "10m0s"),
        ("1.5s", "1.5s"),
        ("300ms", "300ms"),
        ("1500us", "1.5ms"),
        ("0s", "0s"),
        ("1h", "1h0m0s"),
        ("42s", "42s"),
    ] {
        assert_eq!(text.parse::<GoDuration>().unwrap().to_string(), shown);
    }
}

#[test]
fn never_is_a_period_that_does_not_come() {
    assert_eq!("never".parse(), Ok(DurationOrNever::Never));
    assert_eq!("1m".parse(), Ok(DurationOrNever::Every(Duration::from_mins(1))));
    assert!("xnever".parse::<DurationOrNever>().is_err());
}

#[test]
fn intervals_default_to_each_other() {
    let spec = |more: Value| {
        let mut spec = json!({ "interval": "10m", "sourceRef": { "kind": "Bucket", "name": "b" } });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        decode(&object(spec)).unwrap().spec
    };
    let minutes = |n| Some(Duration::from_mins(n));

    let plain = spec(json!({}));
    assert_eq!(Some(plain.retry_interval()), minutes(10));
    assert_eq!(plain.deploy_period(), None, "deployInterval defaults to never");
    assert_eq!(plain.validate_period(), minutes(10), "validateInterval defaults to interval");
    assert_eq!(Some(plain.timeout()), minutes(10));
    assert!(!plain.deletes());
    assert!(plain.validate && plain.deploy_on_changes);

    let set = spec(json!({
        "retryInterval": "1m", "deployInterval": "1h", "validateInterval": "never", "prune": true
    }));
    assert_eq!(Some(set.retry_interval()), minutes(1));
    assert_eq!(set.deploy_period(), minutes(60));
    assert_eq!(set.validate_period(), None);
    assert_eq!(Some(set.timeout()), minutes(60));
    assert!(set.deletes(), "delete follows prune");
    assert!(!spec(json!({ "prune": true, "delete": false })).deletes());
    assert_eq!(spec(json!({ "interval": "1s" })).timeout(), Duration::from_secs(30));
    assert_eq!(spec(json!({ "timeout": "1s" })).timeout(), Duration::from_secs(1));
    assert_eq!(spec(json!({ "validate": false })).validate_period(), None);
}

#[test]
fn every_field_of_every_release_is_read() {
    // One value for each spec field of the releases v0.0.2 to v0.16.5, in the forms that they had.
    let spec = json!({
        "dependsOn": [{ "name": "base" }, { "name": "base", "namespace": "other" }],
        "interval": "5m", "retryInterval": "1m", "timeout": "3m",
        "deployInterval": "never", "validateInterval": "5m",
        "path": "./deploy",
        "sourceRef": { "apiVersion": "source.toolkit.fluxcd.io/v1beta2", "kind": "GitRepository",
            "name": "shop", "namespace": "flux-system" },
        "registrySecrets": [{ "name": "registry" }],
        "suspend": true, "target": "prod", "targetNameOverride": "prod-1", "context": "default",
        "serviceAccountName": "deployer",
        "kubeConfig": { "secretRef": { "name": "remote", "key": "config" } },
        "renameContexts": [{ "oldContext": "default", "newContext": "prod" }],
        "decryption": { "provider": "sops", "secretRef": { "name": "age" }, "serviceAccount": "kms" },
        "helmCredentials": [{ "secretRef": { "name": "helm" } }],
        "args": { "replicas": 3, "tags": ["a"], "deep": { "er": null } },
        "updateImages": true,
        "images": [
            { "image": "a", "resultImage": "a:1", "deployedImage": "a:0", "registryImage": "a:2",
              "namespace": "n", "object": { "id": "web_apps_Deployment_n", "v": "v1" },
              "deployment": "Deployment/web", "container": "c", "versionFilter": "semver()",
              "deployTags": ["t"], "deploymentDir": "d" },
            { "image": "b", "resultImage": "b:1", "object": { "group": "apps", "version": "v1",
              "kind": "Deployment", "name": "web", "namespace": "n" } },
        ],
        "dryRun": true, "noWait": true, "forceApply": true, "replaceOnError": true,
        "forceReplaceOnError": true, "abortOnError": true,
        "includeTags": ["a"], "excludeTags": ["b"],
        "includeDeploymentDirs": ["c"], "excludeDeploymentDirs": ["d"],
        "deployMode": "poke-images", "deployOnChanges": false, "validate": false,
        "prune": true, "delete": true,
    });
    let decoded = decode(&object(spec.clone())).unwrap();
    // What is written back carries every field with its value: nothing was silently dropped.
    let mut again = serde_json::to_value(&decoded.spec).unwrap();
    for (field, shown) in [("interval", "5m0s"), ("retryInterval", "1m0s"), ("timeout", "3m0s")] {
        assert_eq!(again[field], shown);
        again[field] = spec[field].clone();
    }
    again["validateInterval"] = "5m".into();
    assert_eq!(again, spec);

    let own_clone = json!({
        "interval": "5m",
        "source": { "url": "https://git.example.com/shop.git", "ref": { "branch": "main", "tag": "v1" },
            "path": "deploy", "secretRef": { "name": "git" } },
    });
    assert!(decode(&object(own_clone)).unwrap().spec.source.is_some());
}

#[test]
fn a_malformed_object_names_its_field() {
    for (spec, expected) in [
        (
            json!({ "interval": "5mxyz", "sourceRef": { "kind": "Bucket", "name": "b" } }),
            "spec.interval: `5mxyz` is not a duration, expected a duration such as 30s, 10m or 1h30m",
        ),
        (
            json!({ "interval": "5m", "deployInterval": "xnever" }),
            "spec.deployInterval: `xnever` is not a duration, expected a duration such as 30s, 10m or \
             1h30m, or the word never",
        ),
        (
            json!({ "interval": "5m", "prune": "yes" }),
            "spec.prune: invalid type: string \"yes\", expected a boolean",
        ),
        (json!({ "target": "x" }), "spec: missing field `interval`"),
    ] {
        assert_eq!(decode(&object(spec)).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_unreadable_status_field_does_not_hide_the_others() {
    let mut value = object(json!({ "interval": "5m" }));
    value["status"] = json!({
        "observedGeneration": 3,
        "lastDeployResult": "not a mapping",
        "discriminator": "shop-prod",
        "involvedRepos": [{ "url": "x" }],
        "conditions": [{ "type": "Healthy", "status": "True", "reason": "x", "message": "",
            "lastTransitionTime": "2024-01-01T00:00:00Z" }],
    });
    let status = decode(&value).unwrap().status.unwrap();
    assert_eq!(status.observed_generation, 3);
    assert_eq!(status.discriminator.as_deref(), Some("shop-prod"));
    assert_eq!(status.last_deploy_result, None);
    assert!(status.condition("Healthy").unwrap().is_true());
}

#[test]
fn artifacts_of_old_sources_have_a_digest_too() {
    let digest = |value: Value| serde_json::from_value::<Artifact>(value).unwrap().digest();
    assert_eq!(digest(json!({ "digest": "sha256:ab" })).unwrap(), "sha256:ab");
    assert_eq!(digest(json!({ "digest": "ab" })).unwrap(), "sha256:ab");
    assert_eq!(digest(json!({ "checksum": "ab" })).unwrap(), "sha256:ab");
    assert_eq!(
        digest(json!({ "checksum": "a".repeat(40) })).unwrap(),
        format!("sha1:{}", "a".repeat(40))
    );
    assert_eq!(digest(json!({})), None);
}

#[test]
fn the_schema_is_structural_and_reads_well() {
    let text = &crd_files().unwrap()[0].text;
    let crd: Value = serde_yaml::from_str(text).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut undescribed = Vec::new();
    check_schema("spec", &schema["properties"]["spec"], &mut undescribed);
    check_schema("status", &schema["properties"]["status"], &mut undescribed);
    assert!(undescribed.is_empty(), "without description or type: {undescribed:?}");
    assert_eq!(schema["properties"]["status"]["default"], json!({ "observedGeneration": -1 }));
    assert_eq!(schema["required"], json!(["spec"]));
}

/// Collects the fields that lack a type or a description, and refuses what an API server would.
fn check_schema(path: &str, schema: &Value, undescribed: &mut Vec<String>) {
    for keyword in ["$ref", "anyOf", "oneOf", "allOf", "nullable"] {
        assert!(schema.get(keyword).is_none_or(Value::is_object), "{path}: {keyword}");
    }
    if schema["type"].as_str().is_none() || schema["description"].as_str().is_none_or(str::is_empty)
    {
        undescribed.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        check_schema(&format!("{path}.{name}"), property, undescribed);
    }
    if schema["items"]["properties"].is_object() {
        for (name, property) in schema["items"]["properties"].as_object().into_iter().flatten() {
            check_schema(&format!("{path}[].{name}"), property, undescribed);
        }
    }
}

/// `make crds` runs this test with `UPDATE_CRDS=1`, which writes the files in place of comparing them.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "reads and writes the generated files of the source tree"
)]
fn crd_is_current() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    for file in crd_files().unwrap() {
        let path = dir.join(&file.name);
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&path, &file.text).unwrap();
        }
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(current == file.text, "crds/{} is out of date; run `make crds`", file.name);
    }
}

/// `make crds` writes the page in the same way.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "reads and writes the generated files of the source tree"
)]
fn reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/spec/v1alpha1.md");
    let page = reference_page().unwrap();
    if std::env::var_os("UPDATE_CRDS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(current == page, "docs/spec/v1alpha1.md is out of date; run `make crds`");
}
