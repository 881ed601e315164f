//! Claiming a target at the API server. What the claims mean is decided in [`ownership`](super::ownership).

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{
    context::Context,
    outcome::Failure,
    ownership::{self, Bid, Claim, Claimant, GITOPS_GROUP, Target},
    pass::Pass,
    persist::{self, StoreError, StoredObject},
    secrets,
};
use crate::{
    api::{ClaimState, GROUP, KIND, NamespacedName, reason},
    cluster::{ApiKind, ApiOutcome},
    observer::{Observer, Rest},
};

/// How often the claims are read again while those who come later step back.
const LOOKS: u32 = 10;
/// How often a grant is tried again because somebody else wrote to the object meanwhile.
const CONFLICTS: u32 = 40;
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

/// All claims at one moment.
#[derive(Default)]
struct Look {
    bids: BTreeMap<Claimant, Bid>,
    /// Objects of this API group with a request that nobody seems to stand behind.
    abandoned: Vec<StoredObject>,
    /// The object that looks.
    own: Option<StoredObject>,
}

/// Claims `target` for the object of `pass`; whatever else it claimed is given up. A granted claim is recorded when this
/// returns; a refused one with the status at the end of the pass.
///
/// # Errors
/// When the claims cannot be read or written, or another object goes first; the target must not be touched then.
pub(crate) async fn claim(
    pass: &mut Pass,
    target: &Target,
    observer: &dyn Observer,
) -> Result<Claimed, Failure> {
    let rest = Rest::new(observer);
    let claimed = ask(pass, target, &rest).await;
    rest.over().await;
    claimed
}

/// As [`claim`]; begins to rest when others have to step back first.
async fn ask(pass: &mut Pass, target: &Target, rest: &Rest<'_>) -> Result<Claimed, Failure> {
    let me = Claimant::ours(&pass.key);
    let held = pass.status.claim.as_ref();
    let is_held = held.is_some_and(|claim| {
        claim.state == ClaimState::Granted && Target::of(claim).is_same(target)
    });
    let state = if is_held { ClaimState::Granted } else { ClaimState::Requested };
    let created = pass.object.created().to_owned();
    let mut bid = Bid { target: target.clone(), state, created, asked: None };
    // An owner has asked before, and who is refused by what is known already need not raise a flag.
    let known = pass.context.state.claims_on(target);
    let claim = ownership::decide(&me, &bid, &known);
    let is_settled = matches!(claim, Claim::Refused { is_settled: true, .. });
    if is_held || is_settled {
        return settle(pass, bid, claim, known);
    }
    let mut is_raised = false;
    let (mut looks, mut conflicts) = (0, 0);
    while looks < LOOKS && conflicts < CONFLICTS {
        looks += 1;
        if !is_raised {
            bid.asked = Some(super::now());
            pass.record_claim(&bid).await?;
        }
        let Look { bids, abandoned, own } =
            look(&pass.context, Some(&pass.key), |object| Bid::read_on(object, target)).await?;
        let is_up = |own: &StoredObject| {
            Bid::read_on(own.value(), target).is_some_and(|own| own.state == ClaimState::Requested)
        };
        let Some(own) = own.filter(is_up) else {
            is_raised = false;
            continue;
        };
        is_raised = true;
        if take_down(&pass.context, abandoned).await {
            continue;
        }
        match ownership::decide(&me, &bid, &bids) {
            Claim::Pending(rival) => {
                tracing::debug!(%rival, "waiting until it steps back");
                rest.begin();
                let stopping = pass.context.stopping.clone();
                if stopping.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
                    break;
                }
            }
            Claim::Granted => {
                bid.state = ClaimState::Granted;
                if pass.record_grant(&bid, own).await? {
                    return settle(pass, bid, Claim::Granted, bids);
                }
                // The request still stands, as the next look will show; only the version was another.
                bid.state = ClaimState::Requested;
                conflicts += 1;
                looks -= 1;
            }
            refused @ Claim::Refused { .. } => return settle(pass, bid, refused, bids),
        }
    }
    if conflicts < CONFLICTS {
        return Err(goes_first(target, "another object, which has not stepped back yet,"));
    }
    let message =
        "others write to this object faster than its claim can be recorded; nothing was deployed";
    Err(Failure::waiting(reason::OWNERSHIP_CONFLICT, message))
}

/// Takes down requests that nobody seems to stand behind. Returns whether any of them is not what it was, so that it makes
/// sense to look again; the others stand in the way like any request.
async fn take_down(context: &Context, abandoned: Vec<StoredObject>) -> bool {
    let mut is_news = false;
    for mut object in abandoned {
        let name = name_of(object.value());
        match context.store.take_down_request(&name, &mut object).await {
            Ok(()) => {
                tracing::info!(object = %name, "took down a request for a target that was not renewed");
                is_news = true;
            }
            Err(StoreError::Outdated | StoreError::Gone) => is_news = true,
            Err(error) => {
                tracing::debug!(object = %name, "an abandoned request could not be taken down: {error}");
            }
        }
    }
    is_news
}

/// Draws the conclusion for the pass.
fn settle(
    pass: &mut Pass,
    mut bid: Bid,
    claim: Claim,
    all: BTreeMap<Claimant, Bid>,
) -> Result<Claimed, Failure> {
    let rivals = all.into_iter().filter(|(_, other)| other.target.is_same(&bid.target));
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
    let all = look(context, None, Bid::read).await?.bids;
    let others = all.into_iter().filter(|(who, bid)| *who != me && bid.target.is_same(target));
    Ok(others.map(|(who, _)| who).collect())
}

/// All claims as they are stored at this moment, as far as the controller may see them; `ours` reads those of this API group,
/// and `me` is the object that looks.
async fn look(
    context: &Context,
    me: Option<&NamespacedName>,
    ours: impl Fn(&Value) -> Option<Bid>,
) -> Result<Look, Failure> {
    let failed = |outcome: &ApiOutcome| {
        secrets::refused(
            reason::OWNERSHIP_CONFLICT,
            "other KluctlDeployments, which may claim the same target, cannot be listed",
            outcome,
        )
    };
    let mut found = Look::default();
    let now = super::now();
    let kinds = context.own.refresh_kinds().await.map_err(|outcome| failed(&outcome))?;
    if let Some(theirs) = kinds.preferred(GITOPS_GROUP, KIND) {
        match list(context, theirs).await {
            Ok(objects) => found.bids.extend(objects.iter().filter_map(|object| {
                Some((Claimant::theirs(&name_of(object)), Bid::read_foreign(object)?))
            })),
            // A warning at the start has told of it.
            Err(outcome) if outcome.is_refused() || outcome.is_absent() => {}
            Err(outcome) => return Err(failed(&outcome)),
        }
    }
    // Last, because what is granted upon it is written onto these versions.
    for object in list(context, &own_kind()).await.map_err(|outcome| failed(&outcome))? {
        let name = name_of(&object);
        let is_me = me == Some(&name);
        if let Some(bid) = ours(&object) {
            let is_suspended = object["spec"]["suspend"] == true;
            if !is_me && bid.is_abandoned(is_suspended, now) {
                found.abandoned.push(StoredObject::new(object.clone()));
            }
            found.bids.insert(Claimant::ours(&name), bid);
        }
        if is_me {
            found.own = Some(StoredObject::new(object));
        }
    }
    Ok(found)
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
