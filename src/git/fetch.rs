//! One commit into the mirror.

use std::{io, sync::Arc};

use gix::{ObjectId, objs::Kind};
use gix_transport::client::blocking_io::Transport;

use super::{
    GitError, GitUrl, Reference,
    cache::{Inner, cache_error},
    mirror::{Mirror, WriteLock},
    operation::{Failure, Operation},
    remote::{Depth, Remote, describe},
};
use crate::net::Failure as Retry;

/// Why a conversation brought nothing.
pub(super) enum Stop {
    Transport(Failure),
    /// The server does not give the commit by itself; it may come with everything else.
    NotByItself(String),
    Final(GitError),
}

/// The download of one commit.
pub(super) struct Fetch<'a> {
    pub(super) inner: &'a Inner,
    pub(super) url: &'a GitUrl,
    pub(super) reference: &'a Reference,
    pub(super) operation: &'a Operation,
    pub(super) commit: ObjectId,
}

impl Fetch<'_> {
    /// The mirror that has the commit's files, and the id of its root tree.
    pub(super) fn files<T: Transport>(
        &self,
        remote: &mut Remote<'_, T>,
        depth: Depth,
    ) -> Result<(Arc<Mirror>, ObjectId), Stop> {
        let repository = self.inner.repository(self.url);
        let failed = |error: io::Error| Stop::Final(cache_error(&repository, &error));
        let lock = WriteLock::acquire(&repository, self.operation).map_err(failed)?;
        let mut mirror = self.inner.mirror(&repository, &lock).map_err(failed)?;
        if mirror.is_complete(self.commit) {
            match self.root(&mirror) {
                Ok(root) => return Ok((mirror, root)),
                // The object store is damaged: start anew.
                Err(_) => {
                    mirror = self.inner.renew(&mirror, &repository, &lock).map_err(failed)?;
                }
            }
        } else if self.is_full(&mirror) {
            mirror = self.inner.renew(&mirror, &repository, &lock).map_err(failed)?;
        }
        self.download(remote, depth, &mirror)?;
        let root = self.root(&mirror)?;
        mirror.set_complete(self.commit).map_err(failed)?;
        drop(lock);
        self.inner.trim();
        Ok((mirror, root))
    }

    /// The mirror with all that came before the commit, and the id of the commit's root tree.
    pub(super) fn history<T: Transport>(
        &self,
        remote: &mut Remote<'_, T>,
    ) -> Result<(Arc<Mirror>, ObjectId), Stop> {
        let repository = self.inner.repository(self.url);
        let failed = |error: io::Error| Stop::Final(cache_error(&repository, &error));
        let lock = WriteLock::acquire(&repository, self.operation).map_err(failed)?;
        let mirror = self.inner.mirror(&repository, &lock).map_err(failed)?;
        if !mirror.is_complete(self.commit) || mirror.is_shallow() {
            let fetched = remote.fetch(vec![self.commit], Depth::Full, &mirror);
            fetched.map_err(|error| broken(self.url, &error))?;
        }
        let root = self.root(&mirror)?;
        mirror.set_complete(self.commit).map_err(failed)?;
        Ok((mirror, root))
    }

    /// Whether the repository has collected so much that it is cheaper to start anew.
    fn is_full(&self, mirror: &Mirror) -> bool {
        let options = &self.inner.options;
        let packs = mirror.packs();
        packs >= options.max_packs || (packs > 1 && mirror.bytes() > options.max_bytes / 2)
    }

    fn download<T: Transport>(
        &self,
        remote: &mut Remote<'_, T>,
        depth: Depth,
        mirror: &Mirror,
    ) -> Result<(), Stop> {
        let wants = match depth {
            Depth::One => vec![self.commit],
            Depth::Full => self.everything(remote)?,
        };
        remote.fetch(wants, depth, mirror).map_err(|error| {
            let message = describe(&error);
            match judge(self.reference, depth, &message) {
                Refusal::NotByItself => Stop::NotByItself(message),
                Refusal::Moved => {
                    Stop::Transport(Failure::Again { retry: Retry::Connection, message })
                }
                Refusal::Other => broken(self.url, &error),
            }
        })
    }

    /// The tips of all branches and tags.
    fn everything<T: Transport>(&self, remote: &mut Remote<'_, T>) -> Result<Vec<ObjectId>, Stop> {
        let refs = remote.list(&["refs/heads/", "refs/tags/"]);
        let refs = refs.map_err(|error| broken(self.url, &error))?;
        let tips = refs.iter().filter_map(|listed| {
            let (name, direct, _) = listed.unpack();
            let is_wanted = name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/");
            direct.filter(|_| is_wanted).map(ToOwned::to_owned)
        });
        let mut tips: Vec<ObjectId> = tips.collect();
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    fn root(&self, mirror: &Mirror) -> Result<ObjectId, Stop> {
        let url = || self.url.to_string();
        let reference = self.reference.to_string();
        match mirror.object(self.commit) {
            Ok(Some((Kind::Commit, content))) => {
                gix::objs::CommitRefIter::from_bytes(&content, gix::hash::Kind::Sha1)
                    .tree_id()
                    .map_err(|error| {
                        let message = format!("commit {} is damaged: {error}", self.commit);
                        Stop::Final(GitError::Protocol { url: url(), message })
                    })
            }
            Ok(Some((kind, _))) => {
                let kind = kind.to_string();
                Err(Stop::Final(GitError::NoCommit { url: url(), reference, kind }))
            }
            Ok(None) => Err(Stop::Final(GitError::UnknownCommit {
                url: url(),
                commit: self.commit.to_string(),
                message: None,
            })),
            Err(error) => Err(broken(self.url, &error)),
        }
    }
}

/// What a refused fetch means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The commit that the user gave is not given away alone; it may come with everything.
    NotByItself,
    /// The reference has moved since it was listed, and the server serves only what references point to.
    Moved,
    /// Anything else.
    Other,
}

pub(super) fn judge(reference: &Reference, depth: Depth, message: &str) -> Refusal {
    match (reference, depth) {
        (Reference::Commit(_), Depth::One) => Refusal::NotByItself,
        (Reference::Commit(_), Depth::Full) => Refusal::Other,
        (_, _) if message.contains("not our ref") => Refusal::Moved,
        (_, _) => Refusal::Other,
    }
}

/// The error for an answer that is not understood.
pub(super) fn broken(url: &GitUrl, error: &gix::error::Error) -> Stop {
    Stop::Final(GitError::Protocol { url: url.to_string(), message: describe(error) })
}
