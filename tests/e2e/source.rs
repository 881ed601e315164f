//! Every kind of source, and what happens when the artifact server misbehaves.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha384, Sha512};

use crate::{
    support::{
        Case, Fault, FaultProxy, TWO_CONFIG_MAPS, condition, config_map, is_ready, message_of,
        ready_reason,
    },
    tests,
};

tests![
    a_missing_source_is_waited_for,
    a_source_without_an_artifact_is_waited_for_without_noise,
    a_lost_artifact_is_waited_for,
    server_errors_are_retried,
    a_reset_connection_is_retried,
    a_truncated_artifact_is_refused,
    wrong_bytes_are_refused,
    an_endless_artifact_is_cut_off,
    a_slow_artifact_is_given_up,
    whoever_is_in_a_hurry_spoils_no_others_download,
    a_redirect_to_another_host_is_refused,
    a_source_in_another_namespace_can_be_forbidden,
    two_deployments_of_a_revision_download_it_once,
    a_changed_digest_of_the_same_revision_is_noticed,
    a_bucket_is_deployed,
    an_oci_repository_is_deployed,
    an_external_artifact_is_deployed,
    a_sha384_digest_is_verified,
    a_sha512_digest_is_verified,
    a_blake3_digest_is_verified,
    an_archive_that_escapes_is_refused,
    an_archive_with_a_hard_link_is_refused,
    an_archive_with_a_device_is_refused,
    links_of_an_archive_lead_nowhere,
];

/// What a fault leads to.
struct Expected<'a> {
    /// Downloads that one run tries. A second one comes 5 to 6 seconds after the first.
    attempts: usize,
    /// Parts of the message.
    mentions: &'a [&'a str],
}

/// A fault that one retry does not outlast.
const RETRIED: usize = 2;

/// Runs a project through a proxy with a fault, expects the failure, removes the fault, expects the recovery.
async fn survives(case: &mut Case, fault: Fault, expected: Expected<'_>) -> Result<()> {
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    let source = case.git_repository("app", &repo).await?;
    let proxy = FaultProxy::start(&storage_address(&source)?, fault).await?;
    let address = proxy.address.clone();
    case.start_controller_with(
        &["--http-retry=1", "--requeue-dependency=1s"],
        &[("SOURCE_CONTROLLER_LOCALHOST", &address)],
    )
    .await?;
    // Too short for a retry where none is expected.
    let timeout = if expected.attempts > 1 { "20s" } else { "4s" };
    let spec =
        json!({"args": {"namespace": case.namespace}, "timeout": timeout, "retryInterval": "1s"});
    case.apply(case.deployment("app", spec)).await?;
    let object = case.wait_failed("app", "ArtifactFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(
        proxy.requests() >= expected.attempts,
        "{} downloads were tried: {message}",
        proxy.requests()
    );
    if expected.attempts > 1 {
        let attempts = format!("not downloaded after {} attempts", expected.attempts);
        ensure!(message.contains(&attempts), "{attempts:?} is not in: {message}");
    }
    for mention in expected.mentions {
        ensure!(message.contains(mention), "{mention:?} is not in: {message}");
    }
    ensure!(
        condition(&object, "Stalled").is_none(),
        "a transient fault stalls: {}",
        object["status"]
    );
    ensure!(case.config_map("one").await?.is_null(), "something was deployed");
    proxy.set(Fault::None);
    case.wait_ready("app").await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "first",
        "not deployed after the recovery"
    );
    Ok(())
}

/// `host:port` of the artifact server.
fn storage_address(source: &Value) -> Result<String> {
    let url = source["status"]["artifact"]["url"].as_str().context("no artifact URL")?;
    Ok(url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned())
}

async fn a_missing_source_is_waited_for(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.apply(case.deployment("app", json!({"args": {"namespace": case.namespace}}))).await?;
    let object = case.wait_failed("app", "ArtifactFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("GitRepository") && message.contains("app"), "{message}");
    // It is picked up by the watch: the retry interval is an hour here.
    case.apply(
        case.deployment(
            "app",
            json!({"args": {"namespace": case.namespace}, "retryInterval": "1h"}),
        ),
    )
    .await?;
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    case.git_repository("app", &repo).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn a_source_without_an_artifact_is_waited_for_without_noise(case: &mut Case) -> Result<()> {
    let controller = case.start_controller(&["--requeue-dependency=1s"]).await?;
    let log = controller.log.clone();
    case.apply(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "app"},
        "spec": {"interval": "1h", "url": "http://127.0.0.1:1/nothing.git", "suspend": true},
    }))
    .await?;
    case.apply(case.deployment("app", json!({"args": {"namespace": case.namespace}}))).await?;
    case.wait_for(
        "flux.kluctl.io/v1alpha1",
        "KluctlDeployment",
        "app",
        "that it waits",
        |object| {
            condition(object, "Reconciling").is_some_and(|c| c["status"] == "True")
                && message_of(object, "Reconciling").contains("artifact")
                && condition(object, "Ready").is_some_and(|c| c["status"] == "Unknown")
                && ready_reason(object) == "SourceNotReady"
        },
    )
    .await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let log = std::fs::read_to_string(log)?;
    ensure!(
        !log.to_lowercase().contains("\"level\":\"error\"") && !log.contains("failed"),
        "waiting is logged as an error:\n{log}"
    );
    ensure!(log.contains("Waiting: GitRepository"), "waiting is not logged:\n{log}");
    let events = case
        .api("v1", "Event", Some(&case.namespace))
        .list(&kube::api::ListParams::default())
        .await?;
    let warnings: Vec<_> =
        events.items.iter().filter(|event| event.data["type"] == "Warning").collect();
    ensure!(warnings.is_empty(), "waiting is told as a warning: {warnings:?}");
    Ok(())
}

async fn a_lost_artifact_is_waited_for(case: &mut Case) -> Result<()> {
    survives(case, Fault::Status(404), Expected { attempts: 1, mentions: &["404"] }).await
}

async fn server_errors_are_retried(case: &mut Case) -> Result<()> {
    survives(case, Fault::Status(503), Expected { attempts: RETRIED, mentions: &["503"] }).await
}

async fn a_reset_connection_is_retried(case: &mut Case) -> Result<()> {
    survives(case, Fault::Reset, Expected { attempts: RETRIED, mentions: &["reset"] }).await
}

async fn a_truncated_artifact_is_refused(case: &mut Case) -> Result<()> {
    let mentions = &["end of file before message length reached"];
    survives(case, Fault::Truncate, Expected { attempts: RETRIED, mentions }).await
}

async fn wrong_bytes_are_refused(case: &mut Case) -> Result<()> {
    let mentions = &["the digest is sha256:", ", expected sha256:"];
    survives(case, Fault::WrongBytes, Expected { attempts: 1, mentions }).await
}

async fn an_endless_artifact_is_cut_off(case: &mut Case) -> Result<()> {
    let mentions = &["the file is longer than the ", " bytes that the source announces"];
    survives(case, Fault::Endless, Expected { attempts: 1, mentions }).await
}

async fn a_slow_artifact_is_given_up(case: &mut Case) -> Result<()> {
    let mentions = &["not downloaded within 3 s", " bytes arrived"];
    survives(case, Fault::Slow, Expected { attempts: 1, mentions }).await
}

async fn a_redirect_to_another_host_is_refused(case: &mut Case) -> Result<()> {
    let fault = Fault::Redirect("http://localhost:1/elsewhere".into());
    let mentions = &["refused to follow a redirect", "another host, localhost:1"];
    survives(case, fault, Expected { attempts: 1, mentions }).await
}

async fn a_source_in_another_namespace_can_be_forbidden(case: &mut Case) -> Result<()> {
    case.start_controller(&["--no-cross-namespace-refs"]).await?;
    let spec = json!({
        "args": {"namespace": case.namespace},
        "sourceRef": {"kind": "GitRepository", "name": "app", "namespace": "default"},
    });
    case.apply(case.deployment("app", spec)).await?;
    let object = case.wait_failed("app", "AccessDenied").await?;
    ensure!(condition(&object, "Stalled").is_some(), "not stalled: {}", object["status"]);
    Ok(())
}

async fn whoever_is_in_a_hurry_spoils_no_others_download(case: &mut Case) -> Result<()> {
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    let source = case.git_repository("app", &repo).await?;
    let proxy = FaultProxy::start(&storage_address(&source)?, Fault::Slow).await?;
    let address = proxy.address.clone();
    case.start_controller_with(&[], &[("SOURCE_CONTROLLER_LOCALHOST", &address)]).await?;
    let apply = async |name: &str, timeout: &str| {
        let spec = json!({
            "args": {"namespace": case.namespace}, "timeout": timeout, "retryInterval": "1h",
            "sourceRef": {"kind": "GitRepository", "name": "app"},
        });
        case.apply(case.deployment(name, spec)).await
    };
    apply("hasty", "4s").await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    apply("patient", "15s").await?;
    let failed = case.wait_failed("hasty", "ArtifactFailed").await?;
    let message = message_of(&failed, "Ready");
    ensure!(message.contains("not downloaded within 3 s"), "{message}");
    let failed = case.wait_failed("patient", "ArtifactFailed").await?;
    let message = message_of(&failed, "Ready");
    ensure!(message.contains("not downloaded within 14 s"), "{message}");
    ensure!(proxy.requests() == 1, "{} downloads", proxy.requests());
    Ok(())
}

async fn two_deployments_of_a_revision_download_it_once(case: &mut Case) -> Result<()> {
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    let source = case.git_repository("app", &repo).await?;
    let proxy = FaultProxy::start(&storage_address(&source)?, Fault::None).await?;
    let address = proxy.address.clone();
    case.start_controller_with(&[], &[("SOURCE_CONTROLLER_LOCALHOST", &address)]).await?;
    for name in ["a", "b"] {
        let mut object = case.deployment(
            name,
            json!({
                "args": {"namespace": case.namespace},
                "sourceRef": {"kind": "GitRepository", "name": "app"},
                "dryRun": name == "b",
            }),
        );
        object["spec"]["prune"] = (name == "a").into();
        case.apply(object).await?;
    }
    case.wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", "a", "an attempt", |object| {
        object["status"]["lastAttemptedRevision"].is_string()
    })
    .await?;
    case.wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", "b", "an attempt", |object| {
        object["status"]["lastAttemptedRevision"].is_string()
    })
    .await?;
    ensure!(proxy.requests() == 1, "{} downloads of one artifact", proxy.requests());
    Ok(())
}

async fn a_changed_digest_of_the_same_revision_is_noticed(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    // Ignoring a file changes the tarball under the same commit.
    case.patch(
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        "app",
        json!({"spec": {"ignore": "/config/two.yaml"}}),
    )
    .await?;
    case.wait_gone("v1", "ConfigMap", "two").await
}

async fn a_bucket_is_deployed(case: &mut Case) -> Result<()> {
    let server = case.start_bucket_server(&case.namespace.clone(), TWO_CONFIG_MAPS).await?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket"},
        "stringData": {"accesskey": "access", "secretkey": "secret-key"}}))
        .await?;
    case.apply(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket", "metadata": {"name": "app"},
        "spec": {"interval": "1h", "provider": "generic", "bucketName": case.namespace, "endpoint": server.address,
                 "insecure": true, "secretRef": {"name": "bucket"}},
    }))
    .await?;
    case.start_controller(&[]).await?;
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": {"kind": "Bucket", "name": "app"}});
    case.apply(case.deployment("app", spec)).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let revision = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
    ensure!(revision.starts_with("sha256:"), "{revision}");
    Ok(())
}

async fn an_oci_repository_is_deployed(case: &mut Case) -> Result<()> {
    let registry = case.start_registry().await?;
    let reference = format!("{}/{}/app:v1", registry.address, case.namespace);
    case.push_oci_artifact(&reference, TWO_CONFIG_MAPS)?;
    case.apply(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "app"},
        "spec": {"interval": "1h", "url": format!("oci://{}/{}/app", registry.address, case.namespace),
                 "ref": {"tag": "v1"}, "insecure": true},
    }))
    .await?;
    case.start_controller(&[]).await?;
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": {"kind": "OCIRepository", "name": "app"}});
    case.apply(case.deployment("app", spec)).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let revision = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
    ensure!(revision.starts_with("v1@sha256:"), "{revision}");
    Ok(())
}

async fn an_external_artifact_is_deployed(case: &mut Case) -> Result<()> {
    case.external_artifact("app", case.tarball(TWO_CONFIG_MAPS)?, "v1@sha256:aaaa").await?;
    case.start_controller(&[]).await?;
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": {"kind": "ExternalArtifact", "name": "app"}});
    case.apply(case.deployment("app", spec)).await?;
    case.wait_ready("app").await?;
    let changed = config_map("one", "second");
    let files = [&TWO_CONFIG_MAPS[..2], &[("config/one.yaml", changed.as_str())]].concat();
    case.external_artifact("app", case.tarball(&files)?, "v2@sha256:bbbb").await?;
    case.wait_for("v1", "ConfigMap", "one", "the second revision", |object| {
        object["data"]["value"] == "second"
    })
    .await?;
    case.wait_gone("v1", "ConfigMap", "two").await
}

async fn a_sha384_digest_is_verified(case: &mut Case) -> Result<()> {
    verifies(case, |bytes| format!("sha384:{}", hex(&Sha384::digest(bytes)))).await
}

async fn a_sha512_digest_is_verified(case: &mut Case) -> Result<()> {
    verifies(case, |bytes| format!("sha512:{}", hex(&Sha512::digest(bytes)))).await
}

async fn a_blake3_digest_is_verified(case: &mut Case) -> Result<()> {
    verifies(case, |bytes| format!("blake3:{}", blake3::hash(bytes).to_hex())).await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Announces a digest of other bytes, expects the refusal, then announces the right one.
async fn verifies(case: &mut Case, digest: impl Fn(&[u8]) -> String) -> Result<()> {
    case.start_controller(&[]).await?;
    let bytes = case.tarball(TWO_CONFIG_MAPS)?;
    let (right, wrong) = (digest(&bytes), digest(b"other bytes"));
    case.external_artifact("app", bytes, "v1@sha256:aaaa").await?;
    let case = &*case;
    let announce = async |digest: &str| {
        let status = json!({"status": {"artifact": {"digest": digest}}});
        case.patch_status("source.toolkit.fluxcd.io/v1", "ExternalArtifact", "app", status).await
    };
    announce(&wrong).await?;
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": {"kind": "ExternalArtifact", "name": "app"}});
    case.apply(case.deployment("app", spec)).await?;
    let object = case.wait_failed("app", "ArtifactFailed").await?;
    let message = message_of(&object, "Ready");
    let expected = format!("the digest is {right}, expected {wrong}");
    ensure!(message.contains(&expected), "{expected:?} is not in: {message}");
    ensure!(case.config_map("one").await?.is_null(), "unverified bytes were deployed");
    announce(&right).await?;
    let object = case.wait_ready("app").await?;
    ensure!(object["status"]["lastAttemptedDigest"] == right.as_str(), "{}", object["status"]);
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    Ok(())
}

/// A project's tarball with one more entry, which is no file.
fn with_entry(kind: tar::EntryType, name: &str, target: &str) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o644);
    if kind.is_symlink() || kind.is_hard_link() {
        archive.append_link(&mut header, name, target)?;
    } else {
        header.set_device_major(1)?;
        header.set_device_minor(3)?;
        archive.append_data(&mut header, name, std::io::empty())?;
    }
    for (path, text) in TWO_CONFIG_MAPS {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, path, text.as_bytes())?;
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &archive.into_inner()?)?;
    Ok(encoder.finish()?)
}

async fn refuses_entry(case: &mut Case, kind: tar::EntryType, shown: &str) -> Result<()> {
    case.start_controller(&[]).await?;
    let bytes = with_entry(kind, "config/special.yaml", "../outside")?;
    case.deploy_tarball("app", bytes, json!({})).await?;
    let object = case.wait_failed("app", "ArtifactFailed").await?;
    let message = message_of(&object, "Ready");
    let expected = format!("config/special.yaml: is a {shown}");
    ensure!(message.contains(&expected), "{expected:?} is not in: {message}");
    ensure!(case.config_map("one").await?.is_null(), "a part of it was deployed");
    Ok(())
}

async fn an_archive_with_a_hard_link_is_refused(case: &mut Case) -> Result<()> {
    refuses_entry(case, tar::EntryType::Link, "hard link").await
}

async fn an_archive_with_a_device_is_refused(case: &mut Case) -> Result<()> {
    refuses_entry(case, tar::EntryType::Char, "device").await
}

/// source-controller leaves links out when it packs; what others pack may have them.
async fn links_of_an_archive_lead_nowhere(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let outside = case.dir.join("outside.yaml");
    std::fs::write(&outside, config_map("outside", "stolen"))?;
    let target = outside.display().to_string();
    let bytes = with_entry(tar::EntryType::Symlink, "config/three.yaml", &target)?;
    case.deploy_tarball("app", bytes, json!({})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    ensure!(case.config_map("outside").await?.is_null(), "a link was followed");
    Ok(())
}

async fn an_archive_that_escapes_is_refused(case: &mut Case) -> Result<()> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    let name = b"../outside.yaml";
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_size(4);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append(&header, &b"evil"[..])?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &archive.into_inner()?)?;
    case.external_artifact("app", encoder.finish()?, "v1@sha256:cccc").await?;
    case.start_controller(&[]).await?;
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": {"kind": "ExternalArtifact", "name": "app"}});
    case.apply(case.deployment("app", spec)).await?;
    let object = case
        .wait_deployment("app", "the refusal", |object| {
            !is_ready(object) && ready_reason(object) == "ArtifactFailed"
        })
        .await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("../outside.yaml"), "{message}");
    Ok(())
}
