//! What happens, chapter by chapter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago::PlaceError;
use archipelago::datacenter::{DataCenterId, DataCenterState, NoCandidate};
use archipelago::embedded::{EmbeddedStore, control_plane};
use archipelago::prelude::*;

use crate::plane::Switched;
use crate::tally::Tally;
use crate::town::{Running, Town};
use crate::view::View;

struct Stage<'a> {
    view: &'a mut View,
    tally: Tally,
    plane: Arc<Switched>,
    towns: Vec<Town>,
}

/// Tells the whole story.
pub(crate) async fn tell(view: &mut View) -> Result<Tally, BoxError> {
    println!("archipelago: three datacenters in one process, leases of 6 s and heartbeats every 2 s");
    println!("(by default they are 30 s and 10 s), sessions of 3 s, QUIC with certificates made just now");
    let certificates = std::env::temp_dir().join(format!("archipelago-multidc-{}", std::process::id()));
    std::fs::create_dir_all(&certificates)?;
    let plane = Switched::new(control_plane(Arc::new(EmbeddedStore::default()), LEASE));
    view.chapter(1, "three datacenters register");
    let mut towns = Vec::new();
    for (name, tier) in [("north", "silver"), ("south", "silver"), ("west", "gold")] {
        towns.push(Town::found(name, tier, &plane, &certificates).await?);
    }
    let mut stage = Stage { view, tally: Tally::default(), plane, towns };
    stage.register().await;
    stage.call().await;
    stage.place().await;
    stage.lose_a_leader().await;
    stage.lose_a_datacenter().await;
    stage.lose_the_control_plane().await;
    stage.drain().await;
    stage.go_home().await;
    // Nobody needs them any more.
    drop(std::fs::remove_dir_all(&certificates));
    Ok(stage.tally)
}

impl Stage<'_> {
    async fn register(&mut self) {
        let names = ["north", "south", "west"];
        let known = until(Duration::from_secs(20), || {
            let nodes = self.towns.iter().flat_map(|town| &town.nodes);
            nodes.into_iter().all(|one| names.iter().all(|name| is(one, name, DataCenterState::Active)))
        });
        let known = known.await;
        self.show("north");
        self.view.promise(known.is_some(), "every node of every datacenter knows all three as active");
    }

    /// Ten ledgers come to life in each datacenter, and are touched from everywhere.
    async fn call(&mut self) {
        self.view.chapter(2, "messages find actors in whichever datacenter they live");
        let mut good = true;
        for town in &self.towns {
            for (number, from) in (0..10).zip(town.nodes.iter().cycle()) {
                let answer = self.tally.touch(from, &format!("{}-{number}", town.name)).await;
                good &= answer.is_ok_and(|answer| answer.count == 1 && answer.node.starts_with(town.name));
            }
        }
        self.view.promise(good, "an actor that lives nowhere comes to life in the datacenter that calls it");
        let mut same = true;
        for (round, caller) in (2..).zip(self.towns.iter().flat_map(|town| &town.nodes)) {
            for (town, number) in self.towns.iter().flat_map(|town| (0..10).map(move |number| (town, number)))
            {
                let answer = self.tally.touch(caller, &format!("{}-{number}", town.name)).await;
                same &=
                    answer.is_ok_and(|answer| answer.count == round && answer.node.starts_with(town.name));
            }
        }
        self.view.promise(same, "from all six nodes the same 30 actors answer, each counts every touch once");
    }

    async fn place(&mut self) {
        self.view.chapter(3, "an actor is placed by label");
        let [north, ..] = &self.towns[..] else { return };
        let Some(caller) = north.nodes.first() else { return };
        let placed = caller.node.spawn_in("tier=gold", "Ledger", "vault").await;
        let west = placed.as_ref().is_ok_and(|placed| placed.datacenter.as_str() == "west");
        self.view.promise(
            west,
            &format!("tier=gold is the west: {}", told(&placed.map(|placed| placed.datacenter))),
        );
        let mut good = true;
        for caller in self.towns.iter().flat_map(|town| &town.nodes) {
            let answer = self.tally.touch(caller, "vault").await;
            good &= answer.is_ok_and(|answer| answer.node.starts_with("west"));
        }
        self.view.promise(good, "it lives there for everybody");
    }

    async fn lose_a_leader(&mut self) {
        self.view.chapter(4, "the leader of the south is killed");
        let before = self.plane.record("south").await;
        if let Some(south) = self.towns.iter_mut().find(|town| town.name == "south") {
            let leader = south.nodes.remove(0);
            self.view.line(&format!("{} is gone without a word", leader.name));
            leader.kill();
        }
        let (began, mut left_active, mut taken) = (Instant::now(), false, None);
        while taken.is_none() && began.elapsed() < Duration::from_secs(20) {
            let now = self.plane.record("south").await;
            left_active |= now.as_ref().is_none_or(|now| now.state != DataCenterState::Active);
            let epochs = now.zip(before.as_ref()).map(|(now, before)| (now.epoch, before.epoch));
            taken = epochs.filter(|(now, before)| now > before).map(|_| began.elapsed());
            pause().await;
        }
        let took =
            taken.map_or_else(|| "never".to_owned(), |took| format!("after {:.1} s", took.as_secs_f32()));
        self.view.promise(taken.is_some(), &format!("the other node takes over: {took}"));
        self.view.promise(!left_active, "the record of the south never left ACTIVE");
        let mut good = true;
        for number in 0..10 {
            if let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) {
                good &= self.tally.touch(caller, &format!("west-{number}")).await.is_ok();
            }
        }
        self.view.promise(good, "messages between the others went on");
    }

    async fn lose_a_datacenter(&mut self) {
        self.view.chapter(5, "the whole west is killed");
        if let Some(at) = self.towns.iter().position(|town| town.name == "west") {
            let west = self.towns.remove(at);
            self.view.line(&format!("tier={} is gone with it", west.tier));
            west.nodes.into_iter().for_each(Running::kill);
        }
        let out = until(Duration::from_secs(20), || self.all_see("west", DataCenterState::Inactive)).await;
        let limit = LEASE + Duration::from_secs(2);
        let in_time = out.is_some_and(|took| took <= limit);
        let took = out.map_or_else(|| "never".to_owned(), |took| format!("{:.1} s", took.as_secs_f32()));
        self.show("north");
        self.view.promise(in_time, &format!("it is out of routing within its lease and 2 s: {took}"));
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.node.spawn_in("tier=gold", "Ledger", "another").await;
        let nobody = matches!(&refused, Err(PlaceError::NoCandidate(NoCandidate::NotActive { .. })));
        let refusal = told(&refused.map(|placed| placed.datacenter));
        self.view.promise(nobody, &format!("nothing is placed there: {refusal}"));
        let began = Instant::now();
        let vault = caller.node.actor::<crate::town::Ledger>("vault").send(crate::town::Touch).await;
        let quick = vault.is_err() && began.elapsed() < Duration::from_secs(6);
        self.view.promise(
            quick,
            &format!("who was placed there is not split, but out of reach: {}", told(&vault.map(|a| a.node))),
        );
        let again = self.tally.touch(caller, "west-0").await;
        self.view.promise(again.is_ok(), "who merely lived there comes to life elsewhere");
    }

    async fn lose_the_control_plane(&mut self) {
        self.view.chapter(6, "the control plane goes away");
        self.plane.switch(false);
        let stale = until(Duration::from_secs(20), || {
            self.towns.iter().flat_map(|town| &town.nodes).all(|one| one.node.datacenters().stale)
        });
        let stale = stale.await.is_some();
        self.show("north");
        self.view.promise(stale, "every node knows that its map is stale, and keeps it");
        // Longer than a lease.
        actix::clock::sleep(Duration::from_secs(4)).await;
        let mut good = self.all_see("south", DataCenterState::Active);
        for caller in self.towns.iter().flat_map(|town| &town.nodes) {
            for key in ["north-0", "north-1", "south-11"] {
                good &= self.tally.touch(caller, key).await.is_ok();
            }
        }
        self.view.promise(good, "messages within and between datacenters go on");
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.node.spawn_in("south", "Ledger", "new").await;
        let is_stale = matches!(&refused, Err(PlaceError::NoCandidate(NoCandidate::Stale)));
        let refusal = told(&refused.map(|placed| placed.datacenter));
        self.view.promise(is_stale, &format!("nothing is placed by an old map: {refusal}"));
        self.plane.switch(true);
        let fresh = until(Duration::from_secs(20), || {
            self.towns.iter().flat_map(|town| &town.nodes).all(|one| !one.node.datacenters().stale)
        });
        let fresh = fresh.await.is_some() && self.all_see("south", DataCenterState::Active);
        self.view.promise(fresh, "it comes back, and nobody was taken for dead");
    }

    async fn drain(&mut self) {
        self.view.chapter(7, "the south is drained and shut down");
        let Some(south) = self.towns.iter().find(|town| town.name == "south") else { return };
        let lives = south.nodes.first().map(|one| one.name.clone()).unwrap_or_default();
        let drained = match south.nodes.first() {
            Some(one) => {
                // One that lives there for certain.
                drop(self.tally.touch(one, "southerner").await);
                one.node.drain_datacenter().await
            }
            None => Err(CallError::Stopped),
        };
        let seen = until(Duration::from_secs(20), || self.all_see("south", DataCenterState::Draining)).await;
        self.show("north");
        self.view.promise(drained.is_ok() && seen.is_some(), "it is DRAINING for everybody");
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.node.spawn_in("south", "Ledger", "late").await;
        let no_new = matches!(&refused, Err(PlaceError::NoCandidate(NoCandidate::NotActive { .. })));
        let refusal = told(&refused.map(|placed| placed.datacenter));
        self.view.promise(no_new, &format!("it takes nothing new: {refusal}"));
        let answer = self.tally.touch(caller, "southerner").await;
        let answers = answer.is_ok_and(|answer| answer.node == lives);
        self.view.promise(answers, "what lives there still answers");
        if let Some(at) = self.towns.iter().position(|town| town.name == "south") {
            for running in self.towns.remove(at).nodes {
                drop(running.node.stop().await);
                running.kill();
            }
        }
        let state = self.plane.record("south").await.map(|record| record.state);
        self.view.promise(state == Some(DataCenterState::Inactive), "its last node leaves it INACTIVE");
    }

    async fn go_home(&mut self) {
        for running in std::mem::take(&mut self.towns).into_iter().flat_map(|town| town.nodes) {
            drop(running.node.stop().await);
            running.kill();
        }
    }

    fn all_see(&self, name: &str, standing: DataCenterState) -> bool {
        self.towns.iter().flat_map(|town| &town.nodes).all(|one| is(one, name, standing))
    }

    fn show(&self, town: &str) {
        let town = self.towns.iter().find(|one| one.name == town);
        if let Some(running) = town.and_then(|town| town.nodes.first()) {
            self.view.map(&running.name, &running.node.datacenters());
        }
    }
}

fn is(running: &Running, name: &str, standing: DataCenterState) -> bool {
    let id = DataCenterId::new(name).ok();
    let map = running.node.datacenters();
    id.and_then(|id| map.get(&id).map(|entry| entry.standing)) == Some(standing)
}

fn told<T: std::fmt::Display, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    match result {
        Ok(done) => done.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Waits until `holds`, `limit` at most; how long it took.
async fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > limit {
            return None;
        }
        pause().await;
    }
    Some(began.elapsed())
}

async fn pause() {
    actix::clock::sleep(Duration::from_millis(50)).await;
}

const LEASE: Duration = Duration::from_secs(6);
