//! What happens, chapter by chapter.

use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState;

use crate::actors::Answer;
use crate::node::{Placed, Why};
use crate::running::{Running, Town};
use crate::stage::{LEASE, Registry, Stage};

impl Stage<'_> {
    pub(crate) async fn register(&mut self) {
        // What an earlier run has left in the registry is active, too, but elsewhere.
        let known = self.until("they get to know each other", |stage| {
            stage.towns.iter().all(|town| {
                let addresses: Vec<_> = town.nodes.iter().filter_map(|one| one.report().address).collect();
                stage.nodes().all(|one| one.report().reaches(town.name, &addresses))
            })
        });
        let known = known.await;
        self.show("north");
        self.view
            .promise(known.is_some(), "every node of every datacenter knows all three, and where they are");
    }

    /// Ten ledgers come to life in each datacenter, and are touched from everywhere.
    pub(crate) async fn call(&mut self) {
        self.view.chapter("messages find actors in whichever datacenter they live");
        let mut good = true;
        for town in &self.towns {
            for (number, from) in (0..10).zip(town.nodes.iter().cycle()) {
                let answer = self.tally.touch(from, &format!("{}-{number}", town.name)).await;
                good &= answer.is_ok_and(|answer| answer.count == 1 && answer.node.starts_with(town.name));
            }
        }
        self.view.promise(good, "an actor that lives nowhere comes to life in the datacenter that calls it");
        let (mut wrong, began) = (None, Instant::now());
        for (round, caller) in (2..).zip(self.towns.iter().flat_map(|town| &town.nodes)) {
            for (town, number) in self.towns.iter().flat_map(|town| (0..10).map(move |number| (town, number)))
            {
                self.view.waiting(&format!("{} touches everybody", caller.name), began);
                let key = format!("{}-{number}", town.name);
                let answer = self.tally.touch(caller, &key).await;
                let right = |answer: &Answer| answer.count == round && answer.node.starts_with(town.name);
                if !answer.as_ref().is_ok_and(right) {
                    wrong
                        .get_or_insert(format!("{key} answers {} with {answer:?}, not {round}", caller.name));
                }
            }
        }
        self.view.waited();
        let same = "from all six nodes the same 30 actors answer, each counts every touch once";
        self.view.promise(wrong.is_none(), same);
        if let Some(wrong) = wrong {
            self.view.line(&wrong);
        }
    }

    pub(crate) async fn place(&mut self) {
        self.view.chapter("an actor is placed by label");
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let placed = caller.place("tier=gold", "vault").await;
        let west = placed.as_ref().is_ok_and(|datacenter| datacenter == "west");
        self.view.promise(west, &format!("tier=gold is the west: {}", told(&placed)));
        let mut good = true;
        for caller in self.towns.iter().flat_map(|town| &town.nodes) {
            let answer = self.tally.touch(caller, "vault").await;
            good &= answer.is_ok_and(|answer| answer.node.starts_with("west"));
        }
        self.view.promise(good, "it lives there for everybody");
    }

    pub(crate) async fn lose_a_leader(&mut self) {
        self.view.chapter("the leader of the south is killed");
        if let Some(south) = self.towns.iter_mut().find(|town| town.name == "south") {
            let leader = south.nodes.remove(0);
            self.view.line(&format!("{} is gone without a word", leader.name));
            leader.kill();
        }
        let (began, mut good, mut taken) = (Instant::now(), true, None);
        while taken.is_none() && began.elapsed() < Duration::from_secs(20) {
            self.view.waiting("the other node notices", began);
            if let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) {
                for number in 0..10 {
                    good &= self.tally.touch(caller, &format!("west-{number}")).await.is_ok();
                }
            }
            let next = self.town("south").and_then(|town| town.nodes.first());
            taken = next.filter(|next| next.report().takeovers > 0).map(|_| began.elapsed());
            actix::clock::sleep(Duration::from_millis(50)).await;
        }
        self.view.waited();
        self.view.promise(taken.is_some(), &format!("the other node takes over: {}", after(taken)));
        // Until whoever had counted the lease from the last heartbeat of the dead would have counted it whole.
        let quiet = LEASE.saturating_sub(began.elapsed()) + Duration::from_secs(1);
        actix::clock::sleep(quiet).await;
        let stayed = self.all_see("south", DataCenterState::Active) && self.downs().is_empty();
        self.view.promise(stayed, "nobody has ever seen the south as anything but ACTIVE");
        self.tell_downs();
        self.view.promise(good, "messages between the others went on");
    }

    pub(crate) async fn lose_a_datacenter(&mut self) {
        self.view.chapter("the whole west is killed");
        if let Some(west) = self.take_town("west") {
            self.view.line(&format!("tier={} is gone with it", west.tier));
            west.nodes.into_iter().for_each(Running::kill);
            self.excused.push("west");
        }
        let out = self.until("its lease runs out", |stage| stage.all_see("west", DataCenterState::Inactive));
        let out = out.await;
        let in_time = out.is_some_and(|took| took <= LEASE + Duration::from_secs(2));
        self.show("north");
        self.view.promise(in_time, &format!("it is out of routing within its lease and 2 s: {}", after(out)));
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.place("tier=gold", "another").await;
        let nobody = matches!(&refused, Err(refused) if refused.why == Why::NotActive);
        self.view.promise(nobody, &format!("nothing is placed there: {}", told(&refused)));
        let (vault, took) = caller.touch("vault").await;
        let quick = vault.is_err() && took < Duration::from_secs(6);
        let said = vault.map_or_else(|error| error.said, |answer| format!("it lives on {}", answer.node));
        self.view.promise(quick, &format!("who was placed there is not split, but out of reach: {said}"));
        let again = self.tally.touch(caller, "west-0").await;
        self.view.promise(again.is_ok(), "who merely lived there comes to life elsewhere");
    }

    pub(crate) async fn lose_the_control_plane(&mut self) {
        self.view.chapter("the control plane goes away");
        if !self.registry.away(self.view) {
            let why = "the server is yours, and nodes go there by themselves: nothing here can take it away";
            return self.view.skip(why);
        }
        let began = Instant::now();
        let stale = self.until("they notice", |stage| stage.nodes().all(|one| one.report().map.stale));
        let stale = stale.await.is_some();
        let cabled = matches!(self.registry, Registry::Cabled(_));
        if !stale && cabled {
            return self.view.skip("nobody has cut the network");
        }
        self.show("north");
        self.view.promise(stale, "every node knows that its map is stale, and keeps it");
        let rest = (LEASE + Duration::from_secs(2)).saturating_sub(began.elapsed());
        self.view.line("more than a lease passes");
        actix::clock::sleep(rest).await;
        let mut good = self.all_see("south", DataCenterState::Active);
        for caller in self.towns.iter().flat_map(|town| &town.nodes) {
            for key in ["north-0", "north-1", "south-11"] {
                good &= self.tally.touch(caller, key).await.is_ok();
            }
        }
        self.view.promise(good, "messages within and between datacenters go on");
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.place("south", "new").await;
        let is_stale = matches!(&refused, Err(refused) if refused.why == Why::Stale);
        self.view.promise(is_stale, &format!("nothing is placed by an old map: {}", told(&refused)));
        self.registry.back(self.view);
        let fresh = self.until("it comes back", |stage| {
            let active = |town: &Town| stage.all_see(town.name, DataCenterState::Active);
            stage.nodes().all(|one| !one.report().map.stale) && stage.towns.iter().all(active)
        });
        let fresh = fresh.await.is_some();
        if cabled {
            // Connections that nobody has ended are given up after 10 to 15 s, by one datacenter sooner than by another: the lease of
            // the later one, short as it is here, may end meanwhile for the sooner one.
            self.view.promise(fresh, "it comes back, and everybody is active for everybody");
        } else {
            let nobody = self.downs().is_empty();
            self.view.promise(fresh && nobody, "it comes back, and nobody was taken for dead");
        }
        self.tell_downs();
    }

    pub(crate) async fn drain(&mut self) {
        self.view.chapter("the south is drained and shut down");
        let Some(one) =
            self.towns.iter().find(|town| town.name == "south").and_then(|town| town.nodes.first())
        else {
            return;
        };
        let lives = one.name.clone();
        // One that lives there for certain.
        let born = self.tally.touch(one, "southerner").await;
        let drained = born.is_ok() && one.drain().await.is_ok();
        let seen = self.until("they hear", |stage| stage.all_see("south", DataCenterState::Draining)).await;
        self.show("north");
        self.view.promise(drained && seen.is_some(), "it is DRAINING for everybody");
        let Some(caller) = self.towns.first().and_then(|town| town.nodes.first()) else { return };
        let refused = caller.place("south", "late").await;
        let no_new = matches!(&refused, Err(refused) if refused.why == Why::NotActive);
        self.view.promise(no_new, &format!("it takes nothing new: {}", told(&refused)));
        let answer = self.tally.touch(caller, "southerner").await;
        self.view.promise(answer.is_ok_and(|answer| answer.node == lives), "what lives there still answers");
        let mut stopped = true;
        for running in self.take_town("south").into_iter().flat_map(|town| town.nodes) {
            stopped &= running.stop().await.is_ok();
        }
        let out = self.until("it leaves", |stage| stage.all_see("south", DataCenterState::Inactive)).await;
        let told = out.is_some_and(|took| took < LEASE / 2);
        self.view.promise(stopped && told, "its last node leaves it INACTIVE, long before its lease ends");
    }
}

pub(crate) fn told(placed: &Placed) -> String {
    match placed {
        Ok(datacenter) => datacenter.clone(),
        Err(refused) => refused.said.clone(),
    }
}

pub(crate) fn after(took: Option<Duration>) -> String {
    took.map_or_else(|| "never".to_owned(), |took| format!("after {:.1} s", took.as_secs_f32()))
}
