//! Random kustomizations, the same ones each time; `hack/kustomize-probe` makes and compares them.

use std::{path::Path, process::Command};

use super::program;

#[test]
fn kustomize_agrees_on_random_kustomizations() {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("hack/kustomize-probe");
    let output = Command::new(probe)
        .args(["--seed", "7000", "--count", "150"])
        .env("KLUCTL", env!("CARGO_BIN_EXE_kluctl"))
        .env("KUSTOMIZE", program())
        .output()
        .expect("hack/kustomize-probe runs");
    let summary = String::from_utf8_lossy(&output.stderr);
    let differences = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{summary}\n{differences}");
    // Both refuse a part of them; most are built.
    let built = summary.split(' ').next().and_then(|count| count.parse::<usize>().ok());
    assert!(built >= Some(60), "{summary}");
}
