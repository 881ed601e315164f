//! Each directory below `tests/differential/kustomize` is a case, except `shared`, which holds manifests for all of them;
//! `overlay` in a case is built if it exists, else the case itself. Both programs must give the same bytes, or both refuse. A
//! case with a file `better` documents where we deliberately differ, and why: then the outcomes must not be equal, and ours
//! must be the objects of `expected.yaml`, or an error that holds every line of `expected-error`. A case with `expected-error`
//! alone is one that both refuse, with what our message must say.

use std::{fs, path::Path};

use flux_kluctl_controller::tree::DiskTree;

use super::{agree, difference, documents, ours, theirs};

/// What is wrong with a case, if anything.
fn check(corpus: &Path, name: &str) -> Option<String> {
    let case = corpus.join(name);
    let overlay = case.join("overlay").is_dir();
    let dir = if overlay { format!("{name}/overlay") } else { name.to_owned() };
    let tree = DiskTree::new(corpus).unwrap();
    let (ours, theirs) = (ours(&tree, &dir), theirs(&corpus.join(dir)));
    let same = agree(&ours, &theirs);
    let expected_error = fs::read_to_string(case.join("expected-error")).ok();
    if !case.join("better").exists() {
        if !same {
            return Some(difference(&ours, &theirs));
        }
        return expected_error.and_then(|lines| missing_line(&lines, &ours.unwrap_err()));
    }
    if same {
        return Some("no difference any more: drop the file `better`".to_owned());
    }
    match ours {
        Ok(ours) => {
            let expected = fs::read_to_string(case.join("expected.yaml")).unwrap_or_default();
            let equal = documents(ours.as_bytes()) == documents(expected.as_bytes());
            (!equal).then(|| difference(&Ok(ours), &Ok(expected)))
        }
        Err(message) => match expected_error.filter(|lines| !lines.is_empty()) {
            Some(lines) => missing_line(&lines, &message),
            None => Some(message),
        },
    }
}

fn missing_line(lines: &str, message: &str) -> Option<String> {
    let missing = lines.lines().find(|line| !message.contains(line))?;
    Some(format!("`{missing}` is not in: {message}"))
}

fn cases(corpus: &Path) -> Vec<String> {
    let entries = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap());
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut cases: Vec<String> = names.filter(|name| name != "shared").collect();
    cases.sort();
    cases
}

#[test]
fn kustomize_agrees_on_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/kustomize");
    let cases = cases(&corpus);
    let only = std::env::var("KUSTOMIZE_CASE").unwrap_or_default();
    let failures: Vec<String> = cases
        .iter()
        .filter(|name| name.contains(&only))
        .filter_map(|name| check(&corpus, name).map(|problem| format!("== {name}\n{problem}")))
        .collect();
    let (failed, all) = (failures.len(), cases.len());
    assert!(failures.is_empty(), "{failed} of {all} cases:\n{}", failures.join("\n"));
    assert!(all >= 340, "only {all} cases");
}
