//! The conversation with a server: list references, fetch commits. Blocking; generic over the transport.

use std::num::NonZeroU32;

use gix::{
    ObjectId,
    bstr::BString,
    error::{Error, Result},
    progress::Discard,
    protocol::{
        self, Handshake, LsRefsCommand,
        fetch::{self, Arguments, Negotiate, Shallow, negotiate},
        handshake::Ref,
        ls_refs::RefPrefixes,
        transport::{Protocol, Service},
    },
};
use gix_transport::client::blocking_io::Transport;

use super::{mirror::Mirror, operation::Operation};

const AGENT: &str = concat!("git/flux-kluctl-controller-", env!("CARGO_PKG_VERSION"));

/// How much of a commit's history is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The commit alone.
    One,
    /// Everything.
    Full,
}

/// An open conversation.
pub(super) struct Remote<'a, T: Transport> {
    transport: protocol::SendFlushOnDrop<T>,
    handshake: Handshake,
    operation: &'a Operation,
}

impl<'a, T: Transport> Remote<'a, T> {
    pub(super) fn open(mut transport: T, operation: &'a Operation) -> Result<Self> {
        let handshake = protocol::handshake(
            &mut transport,
            Service::UploadPack,
            // Transports bring their own credentials.
            |_| Ok(None),
            Vec::new(),
            &mut Discard,
        )?;
        Ok(Self {
            transport: protocol::SendFlushOnDrop::new(transport, false),
            handshake,
            operation,
        })
    }

    /// The references that start with one of the prefixes. Old servers list all.
    pub(super) fn list(&mut self, prefixes: &[&str]) -> Result<Vec<Ref>> {
        if let Some(refs) = &self.handshake.refs {
            return Ok(refs.clone());
        }
        let mut wanted = RefPrefixes::new();
        wanted.extend(prefixes.iter().map(|prefix| BString::from(*prefix)));
        LsRefsCommand::new(Some(wanted), &self.handshake.capabilities, agent()).invoke_blocking(
            &mut self.transport.inner,
            &mut Discard,
            false,
        )
    }

    /// Downloads commits with their files into the mirror.
    pub(super) fn fetch(&mut self, wants: Vec<ObjectId>, depth: Depth, mirror: &Mirror) -> Result {
        let shallow = match depth {
            Depth::One if self.can_be_shallow() => Shallow::DepthAtRemote(NonZeroU32::MIN),
            Depth::Full if mirror.is_shallow() => Shallow::undo(),
            Depth::One | Depth::Full => Shallow::NoChange,
        };
        let mut negotiation = Wants { wants, haves: mirror.recent_commits() };
        let mut written = None;
        let result = protocol::fetch(
            &mut negotiation,
            |pack, progress, interrupt| {
                written = Some(mirror.write_pack(pack, progress, interrupt)?);
                Ok(true)
            },
            Discard,
            &self.operation.interrupt,
            fetch::Context {
                handshake: &mut self.handshake,
                transport: &mut self.transport.inner,
                user_agent: agent(),
                trace_packetlines: false,
            },
            fetch::Options {
                shallow_file: mirror.shallow_file(),
                shallow: &shallow,
                tags: fetch::Tags::None,
                reject_shallow_remote: false,
            },
        );
        if let Some(keep) = written {
            mirror.release_pack(keep);
        }
        result.map(drop)
    }

    fn can_be_shallow(&self) -> bool {
        let capabilities = &self.handshake.capabilities;
        match self.handshake.server_protocol_version {
            Protocol::V2 => capabilities
                .capability("fetch")
                .and_then(|fetch| fetch.supports("shallow"))
                .unwrap_or(false),
            Protocol::V0 | Protocol::V1 => capabilities.contains("shallow"),
        }
    }
}

fn agent() -> protocol::command::Feature {
    ("agent", Some(AGENT.to_owned()))
}

/// A negotiation that knows what it wants: no walk through history, one round.
struct Wants {
    wants: Vec<ObjectId>,
    /// Commits whose files are there already, so that the server sends only what changed.
    haves: Vec<ObjectId>,
}

impl Negotiate for Wants {
    fn mark_complete_and_common_ref(&mut self) -> Result<negotiate::Action> {
        Ok(negotiate::Action::MustNegotiate { remote_ref_target_known: Vec::new() })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _known: &[bool]) -> bool {
        for want in &self.wants {
            arguments.want(want);
        }
        !self.wants.is_empty()
    }

    fn one_round(
        &mut self,
        _state: &mut negotiate::one_round::State,
        arguments: &mut Arguments,
        _previous: Option<&fetch::Response>,
    ) -> Result<(negotiate::Round, bool)> {
        for have in &self.haves {
            arguments.have(have);
        }
        let round = negotiate::Round {
            haves_sent: self.haves.len(),
            in_vain: 0,
            haves_to_send: self.haves.len(),
            previous_response_had_at_least_one_in_common: false,
        };
        Ok((round, true))
    }
}

/// The messages of an error and its causes, outermost first, without repetitions.
pub(super) fn describe(error: &Error) -> String {
    let mut messages: Vec<String> = Vec::new();
    for cause in error.iter_errors() {
        let message = crate::secret::redact_text(cause.to_string().trim());
        if !message.is_empty() && !messages.contains(&message) {
            messages.push(message);
        }
    }
    messages.join(": ")
}
