//! Claiming a target at the API server. What the claims mean is decided in [`ownership`](super::ownership).

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{
    context::Context,
    outcome::Failure,
    ownership::{self, Bid, Claim, Claimant, GITOPS_GROUP, Target},
    pass::Pass,
    persist, secrets,
};
use crate::{
    api::{ClaimState, GROUP, KIND, NamespacedName, reason},
    cluster::{ApiKind, ApiOutcome},
};

/// How often the claims are read again while those who come later step back.
const LOOKS: u32 = 10;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// How a claim ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The target is the object's own, until it goes away or claims something else.
    Granted,
    /// The target is another object's.
    Refused {
        /// Which.
        owner: Claimant,
    },
}

/// Claims `target` for the object of `pass`; whatever else it claimed is given up. A granted claim is recorded when this
/// returns; a refused one with the status at the end of the pass.
///
/// # Errors
/// When the claims cannot be read or written, or another object goes first; the target must not be touched then.
pub(crate) async fn claim(pass: &mut Pass, target: &Target) -> Result<Claimed, Failure> {
    let me = Claimant::ours(&pass.key);
    let held = pass.status.claim.as_ref().filter(|claim| Target::of(claim) == *target);
    let held = held.map(|claim| claim.state);
    let created = pass.object.created().to_owned();
    let mut bid = Bid { target: target.clone(), state: ClaimState::Requested, created };
    if held == Some(ClaimState::Granted) {
        bid.state = ClaimState::Granted;
    }
    // An owner has asked before, and who is refused by what is known already need not raise a flag.
    let known = pass.context.state.claims_on(target);
    let claim = ownership::decide(&me, &bid, &known);
    let is_settled = matches!(claim, Claim::Refused { is_settled: true, .. });
    if bid.state == ClaimState::Granted || is_settled {
        return settle(pass, bid, claim, known);
    }
    if held != Some(ClaimState::Requested) {
        pass.record_claim(&bid).await?;
    }
    for _ in 0..LOOKS {
        let all = read(&pass.context, |object| Bid::read_on(object, target)).await?;
        let claim = ownership::decide(&me, &bid, &all);
        if let Claim::Pending(rival) = &claim {
            tracing::debug!(%rival, "waiting until it steps back");
            let stopping = pass.context.stopping.clone();
            if stopping.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
                break;
            }
            continue;
        }
        if claim == Claim::Granted {
            bid.state = ClaimState::Granted;
            pass.record_claim(&bid).await?;
        }
        return settle(pass, bid, claim, all);
    }
    Err(goes_first(target, "another object, which has not stepped back yet,"))
}

/// Draws the conclusion for the pass.
fn settle(
    pass: &mut Pass,
    mut bid: Bid,
    claim: Claim,
    all: BTreeMap<Claimant, Bid>,
) -> Result<Claimed, Failure> {
    let rivals = all.into_iter().filter(|(_, other)| other.target == bid.target);
    pass.rivals = Some(rivals.map(|(who, _)| who).collect());
    let (owner, is_settled) = match claim {
        Claim::Granted => return Ok(Claimed::Granted),
        Claim::Pending(rival) => return Err(goes_first(&bid.target, &rival.to_string())),
        Claim::Refused { owner, is_settled } => (owner, is_settled),
    };
    bid.state = ClaimState::Refused;
    pass.status.claim = Some(bid.record());
    if is_settled {
        return Ok(Claimed::Refused { owner });
    }
    Err(goes_first(&bid.target, &owner.to_string()))
}

fn goes_first(target: &Target, who: &str) -> Failure {
    let Target { discriminator, .. } = target;
    let message = format!(
        "discriminator {discriminator:?} is being claimed by {who} on the same cluster; nothing was deployed"
    );
    Failure::waiting(reason::OWNERSHIP_CONFLICT, message)
}

/// The other objects that claim `target`, as far as the controller may see them.
///
/// # Errors
/// When the claims cannot be read.
pub(crate) async fn others(
    context: &Context,
    key: &NamespacedName,
    target: &Target,
) -> Result<Vec<Claimant>, Failure> {
    let me = Claimant::ours(key);
    let all = read(context, Bid::read).await?;
    let others = all.into_iter().filter(|(who, bid)| *who != me && bid.target == *target);
    Ok(others.map(|(who, _)| who).collect())
}

/// All claims as they are stored at this moment, as far as the controller may see them; `ours` reads those of this API group.
async fn read(
    context: &Context,
    ours: impl Fn(&Value) -> Option<Bid>,
) -> Result<BTreeMap<Claimant, Bid>, Failure> {
    let failed = |outcome: &ApiOutcome| {
        secrets::refused(
            reason::OWNERSHIP_CONFLICT,
            "other KluctlDeployments, which may claim the same target, cannot be listed",
            outcome,
        )
    };
    let mut bids: BTreeMap<_, _> = list(context, &own_kind())
        .await
        .map_err(|outcome| failed(&outcome))?
        .iter()
        .filter_map(|object| Some((Claimant::ours(&name_of(object)), ours(object)?)))
        .collect();
    let kinds = context.own.refresh_kinds().await.map_err(|outcome| failed(&outcome))?;
    let Some(theirs) = kinds.preferred(GITOPS_GROUP, KIND) else { return Ok(bids) };
    match list(context, theirs).await {
        Ok(objects) => bids.extend(objects.iter().filter_map(|object| {
            Some((Claimant::theirs(&name_of(object)), Bid::read_foreign(object)?))
        })),
        // A warning at the start has told of it.
        Err(outcome) if outcome.is_refused() || outcome.is_absent() => {}
        Err(outcome) => return Err(failed(&outcome)),
    }
    Ok(bids)
}

/// The objects of a kind in all namespaces, or in the watched one when the rights reach no further. The answer is never
/// older than the question.
async fn list(context: &Context, kind: &ApiKind) -> Result<Vec<Value>, ApiOutcome> {
    match (context.own.list(kind, None, "").await, &context.options.namespace) {
        (Err(outcome), Some(namespace)) if outcome.is_refused() => {
            context.own.list(kind, Some(namespace), "").await
        }
        (listed, _) => listed,
    }
}

fn own_kind() -> ApiKind {
    let resource = persist::resource();
    ApiKind {
        group: GROUP.to_owned(),
        version: resource.version,
        kind: resource.kind,
        plural: resource.plural,
        namespaced: true,
        ..ApiKind::namespace()
    }
}

fn name_of(object: &Value) -> NamespacedName {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    NamespacedName::new(text("namespace"), text("name"))
}
