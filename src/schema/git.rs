use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::Violations;
use crate::{diagnostic::FieldPath, yaml::TextOr};

/// Which commit of a Git repository: exactly one of the fields is set.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitRef {
    /// The tip of this branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit this tag points to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// This commit, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl GitRef {
    pub(super) fn check(&self, path: &FieldPath, violations: &mut Violations) {
        let given = [&self.branch, &self.tag, &self.commit];
        let count = given.into_iter().flatten().filter(|name| !name.is_empty()).count();
        if count != 1 {
            let found = if count == 0 { "is empty" } else { "names more than one revision" };
            violations.add(path.clone(), found, "exactly one of branch, tag and commit");
        }
    }
}

impl fmt::Display for GitRef {
    /// `refs/heads/<branch>`, `refs/tags/<tag>` or the commit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.branch, &self.tag, &self.commit) {
            (Some(branch), _, _) => write!(f, "refs/heads/{branch}"),
            (_, Some(tag), _) => write!(f, "refs/tags/{tag}"),
            (_, _, Some(commit)) => f.write_str(commit),
            _ => f.write_str("HEAD"),
        }
    }
}

/// A directory of a Git repository, written as a URL or as a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GitProject {
    /// URL of the repository, as any Git client takes it.
    pub url: String,
    /// Revision; left out, the default branch.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Directory in the repository; left out, its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_dir: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GitProjectFields {
    /// URL of the repository, as any Git client takes it.
    url: String,
    /// Revision; left out, the default branch.
    #[serde(default, rename = "ref")]
    reference: Option<GitRef>,
    /// Directory in the repository; left out, its root.
    #[serde(default)]
    sub_dir: Option<String>,
}

impl<'de> Deserialize<'de> for GitProject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match TextOr::deserialize(deserializer)? {
            TextOr::Text(url) => Self { url, reference: None, sub_dir: None },
            TextOr::Fields(GitProjectFields { url, reference, sub_dir }) => {
                Self { url, reference, sub_dir }
            }
        })
    }
}

impl JsonSchema for GitProject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GitProject".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<GitProjectFields>();
        json_schema!({
            "description": "A directory of a Git repository, written as a URL or as a mapping.",
            "anyOf": [{"type": "string"}, fields],
        })
    }
}

impl GitProject {
    pub(super) fn check(&self, path: &FieldPath, violations: &mut Violations) {
        check_git_url(&self.url, &path.child("url"), violations);
        if let Some(reference) = &self.reference {
            reference.check(&path.child("ref"), violations);
        }
        check_sub_dir(self.sub_dir.as_deref(), path, violations);
    }
}

/// Checks the form of a repository URL; whether it leads anywhere is found out by whoever clones.
pub(super) fn check_git_url(url: &str, path: &FieldPath, violations: &mut Violations) {
    if url.is_empty() {
        violations.add(path.clone(), "is empty", "the URL of a Git repository");
    } else if url.starts_with("file:") {
        let message = "file:// repositories are not supported";
        violations.add(path.clone(), message, "an https or ssh URL");
    }
}

/// The characters that no part of `subDir` may have, as file systems and shells give them a meaning.
const FORBIDDEN_IN_SUB_DIR: &str = "\\:*?\"<>|^";

pub(super) fn check_sub_dir(sub_dir: Option<&str>, path: &FieldPath, violations: &mut Violations) {
    let forbidden = |c: char| c.is_control() || FORBIDDEN_IN_SUB_DIR.contains(c);
    if let Some(found) = sub_dir.and_then(|dir| dir.chars().find(|c| forbidden(*c))) {
        let message = format!("has the character {found:?}");
        let expected = format!("a path without control characters and {FORBIDDEN_IN_SUB_DIR}");
        violations.add(path.child("subDir"), message, expected);
    }
}
