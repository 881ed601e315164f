#![expect(clippy::disallowed_methods, reason = "makes programs, and looks at what they leave")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    cache::RenderCache,
    chart::Origin,
    output::{holds_secrets, manifests},
    program::version,
    *,
};
use crate::{
    diagnostic::Describe,
    schema::{HelmChart, HelmChartFile},
    tree::MemoryTree,
    yaml::{self, Schema},
};

fn chart(text: &str) -> HelmChart {
    let document =
        yaml::parse_document("helm-chart.yaml", text.as_bytes(), Schema::Config).unwrap();
    let value = json!({"helmChart": document.value});
    let file: HelmChartFile = yaml::from_value(&value).unwrap();
    assert_eq!(file.violations(), []);
    file.helm_chart
}

fn pulled_dir(text: &str) -> String {
    let chart = chart(&format!("releaseName: r\n{text}"));
    let origin = Origin::of(&chart).unwrap();
    origin.pulled_version_dir(&Origin::version(&chart)).unwrap()
}

#[test]
fn pulled_charts_lie_where_kluctl_puts_them() {
    for (text, dir) in [
        (
            "repo: https://Charts.Example.com/Stable/\nchartName: Web\nchartVersion: 1.2.3-RC",
            "https_charts.example.com/stable/Web/1.2.3-RC",
        ),
        ("repo: https://h:443\nchartName: c\nchartVersion: '1'", "https_h/c/1"),
        ("repo: http://h:8080/x\nchartName: c\nchartVersion: '1'", "http_8080_h/x/c/1"),
        (
            "repo: oci://ghcr.io/Org/charts/web\nchartVersion: 1.0.0",
            "oci_ghcr.io/org/charts/web/1.0.0",
        ),
        ("repo: oci://localhost:5000/web\nchartVersion: 1.0.0", "oci_5000_localhost/web/1.0.0"),
        (
            "git: {url: 'https://Git.example.com/Org/Repo.git', ref: {tag: v1}, subDir: Charts/Web}",
            "git_https_git.example.com/org/repo/charts/web/refs/tags/v1",
        ),
        ("git: {url: 'git@h:org/repo', ref: {branch: main}}", "git_ssh_h/org/repo/refs/heads/main"),
        ("git: {url: 'http://h:3000/r'}", "git_http_3000_h/r/unknown"),
    ] {
        assert_eq!(pulled_dir(text), dir, "{text}");
    }
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    for text in [
        "repo: https://h\nchartName: ../../x\nchartVersion: '1'",
        "repo: oci://h/x\nchartVersion: ../../../y",
    ] {
        let chart = chart(&format!("releaseName: r\n{text}"));
        let found = Origin::of(&chart).and_then(|o| o.pulled_version_dir(&Origin::version(&chart)));
        assert!(matches!(found, Err(HelmError::Url { .. })), "{found:?}");
    }
    for (repo, reason) in [
        ("ftp://h/x", "ftp:// is not supported"),
        ("oci://h/", "it names no chart"),
        ("nonsense", "relative URL without a base"),
        ("https://u:hunter2@", "empty host"),
    ] {
        let oci = repo.starts_with("oci:");
        let name = if oci { "" } else { "chartName: c\n" };
        let chart = chart(&format!("releaseName: r\nchartVersion: '1'\n{name}repo: '{repo}'"));
        let message = Origin::of(&chart).unwrap_err().to_string();
        assert!(message.contains(reason) && !message.contains("hunter2"), "{message}");
    }
}

const META: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

fn find_in(files: &[(&str, &str)], text: &str) -> Result<Found, String> {
    let tree = MemoryTree::from_texts(files.iter().copied());
    let chart = chart(&format!("releaseName: r\n{text}"));
    find(&tree, "deploy/app", "deploy/app/sub", &chart).map_err(|e| e.describe().to_string())
}

#[test]
fn charts_are_found_in_the_source() {
    let here = |dir: &str| Ok(Found::Here(dir.to_owned()));
    let local = [("charts/web/Chart.yaml", META), ("charts/yml/Chart.yml", META)];
    assert_eq!(find_in(&local, "path: ../../../charts/web"), here("charts/web"));
    assert_eq!(find_in(&local, "path: ../../../charts/yml/"), here("charts/yml"));
    for (path, words) in [
        ("../../../..", "outside of the project"),
        ("/charts/web", "outside of the project"),
        ("../../../charts", "there is no chart in charts"),
        ("nowhere", "there is no chart in deploy/app/sub/nowhere"),
    ] {
        let message = find_in(&local, &format!("path: {path}")).unwrap_err();
        assert!(message.contains(words), "{message}");
    }

    // The nearest directory of pulled charts counts, also when the chart is only in one further up.
    let pulled = "repo: https://h\nchartName: web\nchartVersion: 1.0.0";
    let root = ".helm-charts/https_h/web/1.0.0/Chart.yaml";
    assert_eq!(find_in(&[(root, META)], pulled), here(".helm-charts/https_h/web/1.0.0"));
    let near = "deploy/.helm-charts/https_h/web/1.0.0/Chart.yaml";
    let both = [(root, META), (near, META)];
    assert_eq!(find_in(&both, pulled), here("deploy/.helm-charts/https_h/web/1.0.0"));
    let other = [(root, META), ("deploy/.helm-charts/x", "")];
    let message = find_in(&other, pulled).unwrap_err();
    assert!(
        message.contains("was not pulled") && message.contains("kluctl helm-pull"),
        "{message}"
    );
    let newer = "apiVersion: v2\nname: web\nversion: v1.0.0\n";
    let message = find_in(&[(root, newer)], pulled).unwrap_err();
    assert!(message.contains("has version v1.0.0, not 1.0.0"), "{message}");

    let on_demand = find_in(&[(root, META)], &format!("{pulled}\nskipPrePull: true"));
    assert!(
        matches!(on_demand, Ok(Found::Elsewhere(Origin::Repository { .. }, _))),
        "{on_demand:?}"
    );
}

#[test]
fn pulled_git_charts_are_found_by_reference() {
    let git = |reference: &str| format!("git: {{url: 'https://h/r', ref: {{{reference}}}}}");
    let files = [
        (".helm-charts/git_https_h/r/refs/tags/v1/Chart.yaml", META),
        (".helm-charts/git_https_h/r/HEAD/Chart.yaml", META),
        (".helm-charts/git_https_h/r/HEAD/.git-info.yaml", "checkedOutCommit: c0ffee\n"),
    ];
    let dir = |dir: &str| Ok(Found::Here(format!(".helm-charts/git_https_h/r/{dir}")));
    assert_eq!(find_in(&files, &git("tag: v1")), dir("refs/tags/v1"));
    assert_eq!(find_in(&files, &git("commit: c0ffee")), dir("HEAD"));
    assert!(find_in(&files, &git("commit: decaf")).unwrap_err().contains("was not pulled"));
    assert!(find_in(&files, &git("branch: main")).unwrap_err().contains("was not pulled"));
}

#[test]
fn descriptions_of_charts_are_read_as_helm_reads_them() {
    let parse = |text: &str| Metadata::parse("c/Chart.yaml", text.as_bytes());
    let read = parse("name: c\nversion: 1.10\ntype: library\ndeprecated: true\n").unwrap();
    assert_eq!((read.name.as_str(), read.kind.as_str(), read.deprecated), ("c", "library", true));
    for (text, words) in [
        ("name: c\n", "version is missing"),
        ("version: 1.0.0\nname: [a]\n", "name is not a text"),
        ("a: [", "c/Chart.yaml: "),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.starts_with("c/Chart.yaml: ") && message.contains(words), "{message}");
    }
    let library = [("c/Chart.yaml", "name: c\nversion: 1.0.0\ntype: library\n")];
    let message = ChartFiles::read(&MemoryTree::from_texts(library), "c").unwrap_err().to_string();
    assert_eq!(message, "chart c is of type library, which cannot be installed");
}

#[test]
fn the_digest_covers_paths_and_contents() {
    let digest = |files: &[(&str, &str)]| {
        let mut all = vec![("c/Chart.yaml", META)];
        all.extend(files);
        ChartFiles::read(&MemoryTree::from_texts(all), "c").unwrap().digest
    };
    let one = digest(&[("c/templates/a", "x"), ("c/templates/b", "y")]);
    assert_eq!(one, digest(&[("c/templates/b", "y"), ("c/templates/a", "x"), ("other/z", "")]));
    for other in [
        digest(&[("c/templates/a", "y"), ("c/templates/b", "x")]),
        digest(&[("c/templates/a", "xy"), ("c/templates/b", "")]),
        digest(&[("c/templates/a", "x")]),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn manifests_lose_tests_and_duplicate_keys_and_gain_the_namespace() {
    let output = "---\n# Source: c/templates/a.yaml\nkind: A\nmetadata: {name: a, name: b}\nflag: yes\n\
                  ---\n# Source: c/templates/t.yaml\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: \"pre-install, test\"}}\n\
                  ---\n# only a comment\n---\nkind: List\n";
    assert_eq!(
        manifests("c", output, None).unwrap(),
        "flag: true\nkind: A\nmetadata:\n  name: b\n---\nkind: List\n"
    );
    let marked = manifests("c", output, Some("ns")).unwrap();
    let annotation = "  annotations:\n    kluctl.io/helm-install-namespace: ns\n";
    assert_eq!(marked.matches(annotation).count(), 2, "{marked}");

    let message = |output: &str| manifests("c", output, None).unwrap_err().describe().to_string();
    let text = message(
        "---\n# Source: c/templates/a.yaml\nkind: A\n---\n# Source: c/templates/b.yaml\n- x\n",
    );
    assert!(text.contains("a document that is no object from c/templates/b.yaml"), "{text}");
    let text = message("---\n# Source: c/templates/a.yaml\nkind: [A\n");
    assert!(text.contains("no YAML from c/templates/a.yaml"), "{text}");
}

#[test]
fn secrets_are_recognised_in_output() {
    assert!(holds_secrets("apiVersion: v1\nkind: Secret\n"));
    assert!(holds_secrets("kind: List\nitems:\n- kind: Secret\n"));
    assert!(!holds_secrets("kind: SecretStore\n"));
}

#[test]
fn versions_are_read_however_helm_was_built() {
    assert_eq!(version("v4.2"), Some((4, 2)));
    assert_eq!(version("v3.14.4+g81c902a\n"), Some((3, 14)));
    assert_eq!(version("v3.9.0-rc.1"), Some((3, 9)));
    assert_eq!(version("SemVer:\"v2.17.0\""), None);
}

#[test]
fn the_cache_is_bounded_and_distrusts_damage() {
    let dir = tempfile::tempdir().unwrap();
    let cache = |memory_bytes, disk_bytes| {
        let limits = CacheLimits { memory_bytes, disk_bytes };
        RenderCache::new(Some(dir.path().join("renders")), limits)
    };
    let text: Arc<str> = "x".repeat(100).into();
    let first = cache(250, 1 << 20);
    for key in [[1; 32], [2; 32]] {
        first.put(&key, &text, false);
    }
    assert!(first.get(&[1; 32]).is_some());
    first.put(&[3; 32], &text, false);
    // The second was not used for the longest time.
    let kept: Vec<bool> = [1, 2, 3].map(|key| first.get(&[key; 32]).is_some()).into();
    assert_eq!(kept, [true, false, true]);

    first.put(&[4; 32], &text, true);
    assert_eq!(cache(0, 0).get(&[4; 32]).as_deref(), Some(&*text), "another process reads it");
    let file = fs::read_dir(dir.path().join("renders")).unwrap().next().unwrap().unwrap().path();
    let mut content = fs::read(&file).unwrap();
    *content.last_mut().unwrap() ^= 1;
    fs::write(&file, content).unwrap();
    assert_eq!(cache(0, 0).get(&[4; 32]), None);

    let small = cache(0, 1000);
    for key in 10..60 {
        small.put(&[key; 32], &text, true);
    }
    let sizes = fs::read_dir(dir.path().join("renders")).unwrap();
    let bytes: u64 = sizes.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 1100, "{bytes} bytes on disk");
}

/// A program that stands for Helm: notes each run, and prints what it was given.
fn fake(dir: &Path, version: &str) -> ProgramChoice {
    let path = dir.join("helm");
    let log = dir.join("runs").display().to_string();
    let script = format!(
        "#!/bin/sh\nif [ $1 = version ]; then echo {version}; exit; fi\necho \"$*\" >> {log}\n\
         printf 'kind: A\\nenv: \"'; env | tr '\\n' ' '; printf '\"\\nvalues:\\n'; sed 's/^/  /'\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    ProgramChoice::Search(vec!["relative".into(), dir.join("none"), dir.to_owned()])
}

fn renderer(dir: &Path, program: ProgramChoice) -> Renderer {
    Renderer::new(RendererOptions {
        program,
        work_dir: dir.join("work"),
        cache_dir: Some(dir.join("renders")),
        cache_limits: CacheLimits::default(),
        parallel: 2,
    })
}

fn release() -> Release {
    let files = [("c/Chart.yaml", META), ("c/templates/a.yaml", "kind: A\n")];
    Release {
        chart: ChartFiles::read(&MemoryTree::from_texts(files), "c").unwrap(),
        name: "r".to_owned(),
        namespace: None,
        values: Some(Values { text: b"a: 1\n".as_slice().into(), is_secret: false }),
        skip_crds: false,
        capabilities: Capabilities::default(),
    }
}

fn runs(dir: &Path) -> usize {
    fs::read_to_string(dir.join("runs")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn the_same_release_is_rendered_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = fake(dir.path(), "v4.2.2");
    let one = renderer(dir.path(), program.clone());
    let cancel = CancellationToken::new();
    let release = release();
    let many = (0..8).map(|_| one.render(&release, &cancel));
    let texts = futures::future::try_join_all(many).await.unwrap();
    assert!(texts.iter().all(|text| **text == *texts[0]));
    assert_eq!(runs(dir.path()), 1);
    let home = texts[0].lines().find(|line| line.contains("HOME=")).unwrap().to_owned();
    assert!(home.contains("work/helm-") && !home.contains("PATH=/usr"), "{home}");
    assert_eq!(fs::read_dir(dir.path().join("work")).unwrap().count(), 0, "nothing is left over");

    // Another process with the same cache; then everything that makes another render.
    renderer(dir.path(), program.clone()).render(&release, &cancel).await.unwrap();
    assert_eq!(runs(dir.path()), 1);
    let others: [fn(&mut Release); 7] = [
        |r| r.name = "s".to_owned(),
        |r| r.namespace = Some("default".to_owned()),
        |r| r.values = None,
        |r| r.values = Some(Values { text: b"a: 2\n".as_slice().into(), is_secret: false }),
        |r| r.skip_crds = true,
        |r| r.capabilities.kube_version = Some("1.30".to_owned()),
        |r| r.capabilities.api_versions = ["x/v1".to_owned()].into(),
    ];
    for (index, change) in others.into_iter().enumerate() {
        let mut other = release.clone();
        change(&mut other);
        one.render(&other, &cancel).await.unwrap();
        assert_eq!(runs(dir.path()), index + 2);
    }
    let words = fs::read_to_string(dir.path().join("runs")).unwrap();
    assert!(
        words.contains("--kube-version 1.30") && words.contains("--api-versions x/v1"),
        "{words}"
    );
    assert!(words.contains("--skip-crds") && words.contains("--namespace default"), "{words}");
}

#[tokio::test]
async fn what_comes_of_secret_values_stays_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let program = fake(dir.path(), "v4.2.2");
    let cancel = CancellationToken::new();
    let mut release = release();
    release.values = Some(Values { text: b"a: hunter2\n".as_slice().into(), is_secret: true });
    let one = renderer(dir.path(), program.clone());
    for _ in 0..2 {
        assert!(one.render(&release, &cancel).await.unwrap().contains("hunter2"));
    }
    assert_eq!(runs(dir.path()), 1);
    assert!(!dir.path().join("renders").exists());
    renderer(dir.path(), program).render(&release, &cancel).await.unwrap();
    assert_eq!(runs(dir.path()), 2);
}

#[tokio::test]
async fn a_program_that_cannot_be_used_is_told_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let message = async |program: ProgramChoice| {
        let renderer = renderer(dir.path(), program);
        renderer.render(&release(), &cancel).await.unwrap_err().describe().to_string()
    };
    let text = message(ProgramChoice::Search(vec![dir.path().to_owned()])).await;
    assert!(
        text.contains("neither in PATH nor beside") && text.contains("--helm-binary"),
        "{text}"
    );
    let text = message(ProgramChoice::Path(dir.path().join("helm"))).await;
    assert!(text.contains("helm does not exist"), "{text}");
    fs::write(dir.path().join("plain"), "").unwrap();
    let text = message(ProgramChoice::Path(dir.path().join("plain"))).await;
    assert!(text.contains("is not executable"), "{text}");
    let text = message(fake(dir.path(), "v3.13.3")).await;
    assert!(text.contains("is Helm v3.13.3, at least 3.14 is needed"), "{text}");
    let text = message(fake(dir.path(), "nonsense")).await;
    assert!(text.contains("does not tell its version, but \"nonsense\""), "{text}");
}

#[tokio::test]
async fn a_cancelled_render_ends_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("helm");
    let pid = dir.path().join("pid").display().to_string();
    let script = format!(
        "#!/bin/sh\n[ $1 = version ] && echo v4.2 && exit\necho $$ > {pid}\nexec sleep 600\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let renderer = renderer(dir.path(), ProgramChoice::Path(path));
    let cancel = CancellationToken::new();
    let stop = async {
        while fs::read_to_string(&pid).unwrap_or_default().trim().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        cancel.cancel();
    };
    let release = release();
    let (result, ()) = tokio::join!(renderer.render(&release, &cancel), stop);
    assert!(matches!(result, Err(HelmError::Cancelled)), "{result:?}");
    let process = format!("/proc/{}", fs::read_to_string(&pid).unwrap().trim());
    for _ in 0..500 {
        if !Path::new(&process).exists() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the program still runs");
}
