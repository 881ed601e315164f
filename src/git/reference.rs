//! Which commit is meant. Pure.

use gix::{ObjectId, protocol::handshake::Ref};

use super::GitError;
use crate::{schema::GitRef, yaml::closest};

/// What to look up in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// The server's default branch.
    #[default]
    Default,
    /// The tip of a branch.
    Branch(String),
    /// The commit of a tag; annotated tags are followed.
    Tag(String),
    /// A full reference name, such as `refs/pull/7/head`.
    Name(String),
    /// A commit, by its full hash.
    Commit(String),
}

impl From<Option<&GitRef>> for Reference {
    fn from(reference: Option<&GitRef>) -> Self {
        let given = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
        let Some(reference) = reference else {
            return Self::Default;
        };
        given(&reference.commit)
            .map(Self::Commit)
            .or_else(|| given(&reference.tag).map(Self::Tag))
            .or_else(|| given(&reference.branch).map(Self::Branch))
            .unwrap_or_default()
    }
}

impl std::fmt::Display for Reference {
    /// For messages: `branch "main"`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default branch"),
            Self::Branch(name) => write!(f, "branch {name:?}"),
            Self::Tag(name) => write!(f, "tag {name:?}"),
            Self::Name(name) => write!(f, "reference {name:?}"),
            Self::Commit(commit) => write!(f, "commit {commit:?}"),
        }
    }
}

/// What a reference led to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resolved {
    /// The commit's hash, 40 hexadecimal digits.
    pub commit: String,
    /// The full name of the reference, for example `refs/heads/main`; `None` when a commit was asked for.
    pub name: Option<String>,
}

impl Resolved {
    /// The revision as Flux writes it: `main@sha1:…`, `v1.0.0@sha1:…`, `refs/pull/7/head@sha1:…` or `sha1:…`.
    pub fn revision(&self) -> String {
        let short = |name: &str| {
            let short = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/"));
            short.unwrap_or(name).to_owned()
        };
        match &self.name {
            Some(name) => format!("{}@sha1:{}", short(name), self.commit),
            None => format!("sha1:{}", self.commit),
        }
    }
}

/// A commit and, if it was not given itself, the reference's full name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) commit: ObjectId,
    pub(super) name: Option<String>,
}

impl Reference {
    /// The full name to ask the server for; `None` for a commit.
    pub(super) fn full_name(&self) -> Option<String> {
        match self {
            Self::Default => Some("HEAD".to_owned()),
            Self::Branch(name) => {
                let name = name.strip_prefix("refs/heads/").unwrap_or(name);
                Some(format!("refs/heads/{name}"))
            }
            Self::Tag(name) => {
                let name = name.strip_prefix("refs/tags/").unwrap_or(name);
                Some(format!("refs/tags/{name}"))
            }
            Self::Name(name) => Some(name.clone()),
            Self::Commit(_) => None,
        }
    }

    /// The commit given, if one is.
    ///
    /// # Errors
    /// [`GitError::CommitForm`] when it is not a full hash.
    pub(super) fn commit(&self, url: &str) -> Result<Option<ObjectId>, GitError> {
        let Self::Commit(text) = self else {
            return Ok(None);
        };
        ObjectId::from_hex(text.as_bytes())
            .map(Some)
            .map_err(|_| GitError::CommitForm { url: url.to_owned(), text: text.clone() })
    }

    /// Finds the reference among those that the server listed.
    pub(super) fn find(&self, refs: &[Ref]) -> Option<Found> {
        let wanted = self.full_name()?;
        refs.iter().find_map(|listed| match listed {
            Ref::Direct { full_ref_name, object } | Ref::Peeled { full_ref_name, object, .. }
                if *full_ref_name == wanted.as_str() =>
            {
                Some(Found { commit: *object, name: Some(wanted.clone()) })
            }
            Ref::Symbolic { full_ref_name, target, object, .. }
                if *full_ref_name == wanted.as_str() =>
            {
                Some(Found { commit: *object, name: Some(target.to_string()) })
            }
            _ => None,
        })
    }

    /// The error for a reference that is not among all branches and tags.
    pub(super) fn unknown(&self, url: &str, refs: &[Ref]) -> GitError {
        let names = |prefix: &str| -> Vec<String> {
            refs.iter()
                .filter_map(|listed| match listed {
                    Ref::Direct { full_ref_name, .. }
                    | Ref::Peeled { full_ref_name, .. }
                    | Ref::Symbolic { full_ref_name, .. } => {
                        full_ref_name.to_string().strip_prefix(prefix).map(str::to_owned)
                    }
                    Ref::Unborn { .. } => None,
                })
                .collect()
        };
        let (branches, tags) = (names("refs/heads/"), names("refs/tags/"));
        if branches.is_empty() && tags.is_empty() {
            return GitError::Empty { url: url.to_owned() };
        }
        let (name, same_kind, other_kind, other) = match self {
            Self::Tag(name) => (name.as_str(), &tags, &branches, "branch"),
            Self::Branch(name) | Self::Name(name) | Self::Commit(name) => {
                (name.as_str(), &branches, &tags, "tag")
            }
            Self::Default => ("HEAD", &branches, &tags, "tag"),
        };
        let near = closest(name, same_kind.iter().map(String::as_str)).map(str::to_owned);
        let closest = if other_kind.iter().any(|existing| existing == name) {
            Some(format!("{other}: {name}"))
        } else {
            near
        };
        GitError::UnknownReference {
            url: url.to_owned(),
            reference: self.to_string(),
            closest,
            existing: format!("{}; {}", listing("branches", &branches), listing("tags", &tags)),
        }
    }
}

/// The branches and tags among what a server listed, by name.
pub(super) fn tips(refs: &[Ref]) -> Vec<Resolved> {
    let tip = |listed: &Ref| match listed {
        Ref::Direct { full_ref_name, object }
        | Ref::Peeled { full_ref_name, object, .. }
        | Ref::Symbolic { full_ref_name, object, .. } => {
            let (name, commit) = (full_ref_name.to_string(), object.to_string());
            let is_tip = name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
            is_tip.then_some(Resolved { commit, name: Some(name) })
        }
        Ref::Unborn { .. } => None,
    };
    let mut tips: Vec<Resolved> = refs.iter().filter_map(tip).collect();
    tips.sort_by(|a, b| a.name.cmp(&b.name));
    tips
}

fn listing(what: &str, names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len() {
        0 => format!("no {what}"),
        count if count > SHOWN => {
            format!("{what}: {} and {} more", names[..SHOWN].join(", "), count - SHOWN)
        }
        _ => format!("{what}: {}", names.join(", ")),
    }
}
