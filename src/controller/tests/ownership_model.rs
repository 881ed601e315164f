//! All orders of events of three objects that claim one target: controllers that look, write, pause for any time between the
//! two, die, and take each other for dead without any reason.

use std::collections::{BTreeMap, HashMap};

use super::super::ownership::{Bid, Claim, Claimant, Target, decide};
use crate::api::{
    ClaimState::{self, Granted, Refused, Requested},
    NamespacedName,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What an object does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Raise,
    Look,
    /// Writes a grant onto the version of the object that it has seen, if that is still the latest.
    Grant {
        is_latest: bool,
    },
    /// Takes down another one's request, likewise.
    TakeDown {
        whom: usize,
        is_latest: bool,
    },
    Retreat,
    Work,
    Rest,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// The flags as stored.
    states: [Option<ClaimState>; 3],
    steps: [Step; 3],
    /// Whose controllers never do anything again.
    dead: [bool; 3],
    /// How many controllers may still die.
    deaths: u8,
    /// How many owners may still leave.
    departures: u8,
    /// Whether a grant needs the version that was seen.
    is_fenced: bool,
}

impl World {
    fn start(is_fenced: bool) -> Self {
        let (states, steps, dead) = ([None; 3], [Step::Raise; 3], [false; 3]);
        Self { states, steps, dead, deaths: 1, departures: 1, is_fenced }
    }

    fn bids(&self) -> BTreeMap<Claimant, Bid> {
        let ages = ["2", "1", "2"];
        let bids = (0..3).filter_map(|i| {
            let (created, target) = (ages[i].to_owned(), Target::default());
            Some((who(i), Bid { target, state: self.states[i]?, created, asked: None }))
        });
        bids.collect()
    }

    /// Stores a flag. Whoever has seen the object before has seen an old version now.
    fn write(&mut self, i: usize, state: Option<ClaimState>) {
        self.states[i] = state;
        for (other, step) in self.steps.iter_mut().enumerate() {
            match step {
                Step::Grant { is_latest } if other == i => *is_latest = false,
                Step::TakeDown { whom, is_latest } if *whom == i => *is_latest = false,
                _ => {}
            }
        }
    }

    /// The worlds after the next step of one object.
    fn after(&self, i: usize) -> Vec<Self> {
        if self.dead[i] {
            return Vec::new();
        }
        let mut all = Vec::new();
        if self.deaths > 0 {
            let mut next = self.clone();
            (next.dead[i], next.deaths) = (true, self.deaths - 1);
            all.push(next);
        }
        let mut next = self.clone();
        match self.steps[i] {
            Step::Raise => {
                next.write(i, Some(Requested));
                next.steps[i] = Step::Look;
            }
            Step::Look if self.states[i] != Some(Requested) => next.steps[i] = Step::Raise,
            Step::Look => {
                let rivals = (0..3).filter(|j| *j != i && self.states[*j] == Some(Requested));
                all.extend(rivals.map(|whom| {
                    let mut next = self.clone();
                    next.steps[i] = Step::TakeDown { whom, is_latest: true };
                    next
                }));
                let bids = self.bids();
                match decide(&who(i), &bids[&who(i)], &bids) {
                    Claim::Granted => next.steps[i] = Step::Grant { is_latest: true },
                    Claim::Pending(_) => return all,
                    Claim::Refused { .. } => next.steps[i] = Step::Retreat,
                }
            }
            Step::Grant { is_latest } if is_latest || !self.is_fenced => {
                next.write(i, Some(Granted));
                next.steps[i] = Step::Work;
            }
            Step::Grant { .. } => next.steps[i] = Step::Raise,
            Step::TakeDown { whom, is_latest } => {
                if is_latest {
                    next.write(whom, Some(Refused));
                }
                next.steps[i] = Step::Look;
            }
            Step::Retreat => {
                next.write(i, Some(Refused));
                next.steps[i] = Step::Rest;
            }
            Step::Work if self.departures > 0 => {
                next.write(i, None);
                next.departures -= 1;
                next.steps[i] = Step::Rest;
            }
            // Looks again after a while, and is woken when the owner goes.
            Step::Rest if self.states[i].is_some() && !self.states.contains(&Some(Granted)) => {
                next.steps[i] = Step::Raise;
            }
            Step::Work | Step::Rest => return all,
        }
        all.push(next);
        all
    }

    fn owners(&self) -> usize {
        self.states.iter().filter(|state| **state == Some(Granted)).count()
    }

    /// Whether somebody owns the target, or nobody is left who wants it.
    fn is_settled(&self) -> bool {
        let wants = |i: &usize| {
            let has_left = self.steps[*i] == Step::Rest && self.states[*i].is_none();
            !self.dead[*i] && !has_left
        };
        self.owners() == 1 || !(0..3).any(|i| wants(&i))
    }
}

fn who(i: usize) -> Claimant {
    Claimant::ours(&NamespacedName::new("ns", NAMES[i]))
}

/// All worlds that can come about, each with those it can come from.
fn explore(is_fenced: bool) -> HashMap<World, Vec<World>> {
    let start = World::start(is_fenced);
    let mut seen = HashMap::from([(start.clone(), Vec::new())]);
    let mut pending = vec![start];
    while let Some(world) = pending.pop() {
        for next in (0..3).flat_map(|i| world.after(i)) {
            let from = seen.entry(next.clone()).or_insert_with(|| {
                pending.push(next);
                Vec::new()
            });
            from.push(world.clone());
        }
    }
    seen
}

#[test]
fn in_no_order_of_events_two_objects_own_a_target() {
    let worlds = explore(true);
    let double = worlds.keys().find(|world| world.owners() > 1);
    assert_eq!(double, None);
    assert!(worlds.len() > 1_000, "{} worlds", worlds.len());
    // It is the version that makes it safe to take others for dead.
    assert!(explore(false).keys().any(|world| world.owners() > 1));
}

#[test]
fn from_everywhere_there_is_a_way_to_an_owner() {
    let worlds = explore(true);
    let mut pending: Vec<_> = worlds.keys().filter(|world| world.is_settled()).cloned().collect();
    let mut good: std::collections::HashSet<_> = pending.iter().cloned().collect();
    while let Some(world) = pending.pop() {
        for before in &worlds[&world] {
            if good.insert(before.clone()) {
                pending.push(before.clone());
            }
        }
    }
    let stuck = worlds.keys().find(|world| !good.contains(*world));
    assert_eq!(stuck, None);
}
