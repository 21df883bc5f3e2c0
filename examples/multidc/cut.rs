//! The chapter that needs real networks: a datacenter is cut off from the others, and comes back.
//!
//! Who is cut off goes on by itself, and so do the others. Calls across the cut end in time, with an error that says so, or find their
//! actor elsewhere. Nothing that was placed is split, and nothing that it counted is lost.

use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState;

use crate::node::{Failed, Why};
use crate::running::Running;
use crate::scenes::{after, told};
use crate::stage::Stage;

/// What is seen of calls while the cut is under way.
#[derive(Default)]
struct Seen {
    /// Calls within each datacenter, and those that failed.
    home: usize,
    broken: Vec<String>,
    /// Calls across the cut that failed as they should; and those that were late or failed otherwise.
    refused: usize,
    wrong: Vec<String>,
    /// What the vault has counted.
    vault: u64,
}

impl Stage<'_> {
    /// Whether the story can go on: it cannot while a network stays cut.
    pub(crate) async fn cut_off(&mut self) -> bool {
        if self.cables.is_empty() {
            return true;
        }
        self.view.chapter("the west is cut off, and comes back");
        let began = Instant::now();
        self.cables.iter().for_each(|cable| self.view.ask(&cable.pull()));
        let mut seen = Seen::default();
        if !self.go_on_until(&mut seen, "the cut is noticed", Self::is_cut).await {
            self.view.skip("nobody has cut the network");
            return true;
        }
        self.excused.push("west");
        self.show("north");
        self.show("west");
        self.view.promise(true, &format!("both sides know, {}", after(Some(began.elapsed()))));
        self.apart(&mut seen).await;
        let (home, refused) = (seen.home, seen.refused);
        self.view.promise(
            seen.broken.is_empty() && home > 0,
            &format!("{home} calls within each datacenter's own network were answered all the while"),
        );
        self.view.promise(
            seen.wrong.is_empty() && refused > 0,
            &format!("{refused} calls across the cut failed in time, and said that nobody answers there"),
        );
        seen.broken.iter().chain(&seen.wrong).for_each(|line| self.view.line(line));
        self.together(seen.vault).await
    }

    /// What holds while there is no way across.
    async fn apart(&mut self, seen: &mut Seen) {
        let first =
            |name| self.towns.iter().find(|town| town.name == name).and_then(|town| town.nodes.first());
        let (Some(outer), Some(inner)) = (first("north"), first("west")) else { return };
        seen.across(outer, "vault").await;
        let vault = self.tally.touch(inner, "vault").await.ok();
        seen.vault = vault.as_ref().map_or(0, |answer| answer.count);
        let on = vault.is_some_and(|answer| answer.node.starts_with("west"));
        self.view.promise(on, "who was placed in the west goes on there, and only there");
        let (from_outer, from_inner) =
            (outer.place("tier=gold", "another").await, inner.place("north", "another").await);
        let refused = matches!(&from_outer, Err(refused) if refused.why == Why::NotActive)
            && matches!(&from_inner, Err(refused) if refused.why == Why::Stale);
        let said = format!("{}; {}", told(&from_outer), told(&from_inner));
        self.view.promise(refused, &format!("nothing is placed across the cut: {said}"));
        let mut good = true;
        for (caller, home) in [(outer, "north"), (inner, "west")] {
            let born = self.tally.touch(caller, &format!("born-in-{home}")).await;
            good &= born.is_ok_and(|answer| answer.node.starts_with(home));
        }
        self.view.promise(good, "new actors come to life on both sides");
        let moved = self.tally.touch(outer, "west-9").await;
        let elsewhere = moved.is_ok_and(|answer| !answer.node.starts_with("west"));
        self.view.promise(elsewhere, "who merely lived in the west comes to life elsewhere for the others");
    }

    /// Heals the network; the vault must go on from `count`. Whether all are there again.
    async fn together(&mut self, count: u64) -> bool {
        self.cables.iter().for_each(|cable| self.view.ask(&cable.plug()));
        let healed = self.until("they find each other again", |stage| {
            let fresh = stage.nodes().all(|one| !one.report().map.stale);
            fresh && stage.towns.iter().all(|town| stage.all_see(town.name, DataCenterState::Active))
        });
        let healed = healed.await;
        self.view.promise(healed.is_some(), &format!("all three are active again: {}", after(healed)));
        if healed.is_none() {
            return false;
        }
        let crossed = self.cross_again().await;
        self.view.promise(crossed.is_some(), &format!("calls cross again: {}", after(crossed)));
        let (mut count, mut wrong) = (count, None);
        // The south knows nobody's home but by asking, and whoever was silent is not asked for 5 s.
        for caller in self.towns.iter().filter(|town| town.name != "south").flat_map(|town| &town.nodes) {
            match self.tally.touch(caller, "vault").await {
                Ok(answer) if answer.node.starts_with("west") && answer.count > count => count = answer.count,
                other => wrong = Some(format!("{} was told {other:?} after {count}", caller.name)),
            }
        }
        let same = "who was placed in the west is the same for both that know its home, and has kept count";
        self.view.promise(wrong.is_none(), same);
        wrong.iter().for_each(|line| self.view.line(line));
        true
    }

    /// Waits until every node of the others reaches the west; how long that took.
    async fn cross_again(&self) -> Option<Duration> {
        let began = Instant::now();
        for caller in self.towns.iter().filter(|town| town.name != "west").flat_map(|town| &town.nodes) {
            while !reaches_the_west(caller).await {
                if began.elapsed() > CROSSED {
                    return None;
                }
                actix::clock::sleep(PAUSE).await;
            }
        }
        Some(began.elapsed())
    }

    /// Calls within and between the datacenters until `holds`; whether it did.
    async fn go_on_until(&self, seen: &mut Seen, what: &str, holds: fn(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > self.patience {
                self.view.waited();
                return false;
            }
            self.view.waiting(what, began);
            for town in &self.towns {
                for caller in &town.nodes {
                    seen.at_home(caller, town.name).await;
                }
            }
            for (town, key) in [("north", "vault"), ("south", "west-8"), ("west", "north-5")] {
                if let Some(caller) = self.town(town).and_then(|town| town.nodes.first()) {
                    seen.across(caller, key).await;
                }
            }
            actix::clock::sleep(PAUSE).await;
        }
        self.view.waited();
        true
    }

    /// The others have left the west out, and the west knows that its map is old.
    fn is_cut(&self) -> bool {
        self.towns.iter().all(|town| {
            town.nodes.iter().all(|one| match town.name {
                "west" => one.report().map.stale,
                _ => one.sees("west", DataCenterState::Inactive),
            })
        })
    }
}

/// Places a ledger there and calls it.
async fn reaches_the_west(caller: &Running) -> bool {
    let key = format!("placed-by-{}", caller.name);
    let placed = caller.place("tier=gold", &key).await;
    placed.is_ok() && caller.touch(&key).await.0.is_ok_and(|answer| answer.node.starts_with("west"))
}

impl Seen {
    /// A node calls an actor of its own datacenter.
    async fn at_home(&mut self, caller: &Running, town: &str) {
        for number in 0..3 {
            let key = format!("{town}-{number}");
            self.home += 1;
            match caller.touch(&key).await {
                (Ok(answer), took) if answer.node.starts_with(town) && took < DEADLINE => {}
                other => self.broken.push(format!("{} called {key}: {other:?}", caller.name)),
            }
        }
    }

    /// A node calls an actor beyond the cut. An answer is as good as an error: the cut may not be there yet.
    async fn across(&mut self, caller: &Running, key: &str) {
        match caller.touch(key).await {
            (Ok(_), took) if took < DEADLINE => {}
            (Err(Failed { out_of_reach: true, .. }), took) if took < DEADLINE => self.refused += 1,
            other => self.wrong.push(format!("{} called {key}: {other:?}", caller.name)),
        }
    }
}

/// A call takes 5 s at most (`calls.timeout`); a busy machine may take another to say so.
const DEADLINE: Duration = Duration::from_secs(6);
/// Who found a datacenter silent leaves it alone for 5 s.
const CROSSED: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
