//! Asks and tells through a ref, as multiples of what plain actix does in the same run.

use std::time::Instant;

use archipelago::Error;
use archipelago::prelude::*;
use futures_channel::mpsc;
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::Bar;
use crate::actors::{Add, Counter, Note};

pub(crate) const ROUNDS: usize = 15;
/// Enough for a profiler, which is slow.
const ROUNDS_ALONE: usize = 3;
const IN_FLIGHT: u64 = 64;
const ASKS: u64 = 2_000;
const TELLS: u64 = 128_000;
/// Tells before the sender waits for them: below every queue's bound.
const BURST: u64 = 512;

/// Caller and actor on one arbiter.
pub(crate) async fn same_arbiter() -> Result<Vec<Bar>, Error> {
    let node = Node::builder().on_current_arbiter().actor::<Counter>().start().await?;
    let (plain, virtual_actor) = (Counter::default().start(), node.actor::<Counter>("bench"));
    let mut asks = Vec::new();
    let mut tells = Vec::new();
    for _ in 0..ROUNDS {
        let (theirs, ours) = (ask_plain(&plain).await, ask_ref(&node, &virtual_actor).await?);
        println!("ask   {:>10.0}/s plain {:>10.0}/s ref", theirs, ours);
        asks.push(ours / theirs);
        let (theirs, ours) = (tell_plain(&plain).await, tell_ref(&node, &virtual_actor).await?);
        println!("tell  {:>10.0}/s plain {:>10.0}/s ref", theirs, ours);
        tells.push(ours / theirs);
    }
    node.stop().await?;
    Ok(vec![
        Bar::at_least("ask_vs_addr_send", median(&mut asks), 1.0),
        Bar::at_least("tell_vs_try_send", median(&mut tells), 0.7),
    ])
}

/// One contestant, a few rounds: `ask-plain`, `ask-ref`, `tell-plain`, `tell-ref`, or `across` for all that goes across
/// arbiters; anything else runs none.
pub(crate) async fn alone(contestant: &str) -> Result<(), Error> {
    if contestant == "across" {
        return across_arbiters(ROUNDS_ALONE).await;
    }
    let node = Node::builder().on_current_arbiter().actor::<Counter>().start().await?;
    let (plain, virtual_actor) = (Counter::default().start(), node.actor::<Counter>("bench"));
    // Both have come to life, as in the race.
    plain.send(Add(0)).await.expect("the actor lives");
    virtual_actor.send(Add(0)).await?;
    for _ in 0..ROUNDS_ALONE {
        match contestant {
            "ask-plain" => println!("{:.0}/s", ask_plain(&plain).await),
            "ask-ref" => println!("{:.0}/s", ask_ref(&node, &virtual_actor).await?),
            "tell-plain" => println!("{:.0}/s", tell_plain(&plain).await),
            "tell-ref" => println!("{:.0}/s", tell_ref(&node, &virtual_actor).await?),
            _ => println!("there is no contestant {contestant}"),
        }
    }
    node.stop().await?;
    Ok(())
}

/// Caller on the main arbiter, actor on another thread: for information, there is no bar.
pub(crate) async fn across_arbiters(rounds: usize) -> Result<(), Error> {
    let node = Node::builder().actor::<Counter>().start().await?;
    let arbiter = Arbiter::new();
    let plain = Counter::start_in_arbiter(&arbiter.handle(), |_| Counter::default());
    let virtual_actor = node.actor::<Counter>("bench");
    let (mut asks, mut tells) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        asks.push(ask_across(&virtual_actor).await / ask_plain(&plain).await);
        tells.push(tell_across(&virtual_actor).await / tell_plain(&plain).await);
    }
    println!("across arbiters: ask at {:.2} of Addr::send, {IN_FLIGHT} in flight", median(&mut asks));
    println!("across arbiters: tell at {:.2} of Addr::try_send", median(&mut tells));
    node.stop().await?;
    arbiter.stop();
    Ok(())
}

async fn ask_plain(addr: &Addr<Counter>) -> f64 {
    let start = Instant::now();
    let callers = (0..IN_FLIGHT).map(|_| {
        let addr = addr.clone();
        actix::spawn(async move {
            for n in 0..ASKS {
                addr.send(Add(n)).await.expect("the actor lives");
            }
        })
    });
    join_all(callers.collect::<Vec<_>>()).await;
    rate(IN_FLIGHT * ASKS, start)
}

async fn ask_ref(node: &Node, actor: &ActorRef<Counter>) -> Result<f64, Error> {
    let start = Instant::now();
    let (done, all_done) = mpsc::unbounded::<()>();
    for _ in 0..IN_FLIGHT {
        let (caller, done) = (actor.clone(), done.clone());
        node.spawn_beside(actor, move || async move {
            for n in 0..ASKS {
                caller.send(Add(n)).await.expect("the actor answers");
            }
            drop(done);
        })?;
    }
    drop(done);
    all_done.collect::<Vec<()>>().await;
    Ok(rate(IN_FLIGHT * ASKS, start))
}

/// The same from the main arbiter, to an actor on another thread.
async fn ask_across(actor: &ActorRef<Counter>) -> f64 {
    let start = Instant::now();
    let callers = (0..IN_FLIGHT).map(|_| {
        let actor = actor.clone();
        actix::spawn(async move {
            for n in 0..ASKS {
                actor.send(Add(n)).await.expect("the actor answers");
            }
        })
    });
    join_all(callers.collect::<Vec<_>>()).await;
    rate(IN_FLIGHT * ASKS, start)
}

async fn tell_plain(addr: &Addr<Counter>) -> f64 {
    let start = Instant::now();
    for n in 0..TELLS {
        addr.try_send(Note(n)).expect("there is room");
        if n % BURST == BURST - 1 {
            addr.send(Add(0)).await.expect("the actor lives");
        }
    }
    rate(TELLS, start)
}

async fn tell_ref(node: &Node, actor: &ActorRef<Counter>) -> Result<f64, Error> {
    let start = Instant::now();
    let (done, all_done) = mpsc::unbounded::<()>();
    let caller = actor.clone();
    node.spawn_beside(actor, move || async move {
        for n in 0..TELLS {
            caller.tell(Note(n)).expect("there is room");
            if n % BURST == BURST - 1 {
                caller.send(Add(0)).await.expect("the actor answers");
            }
        }
        drop(done);
    })?;
    all_done.collect::<Vec<()>>().await;
    Ok(rate(TELLS, start))
}

/// The same from the main arbiter, to an actor on another thread.
async fn tell_across(actor: &ActorRef<Counter>) -> f64 {
    let start = Instant::now();
    for n in 0..TELLS {
        actor.tell(Note(n)).expect("there is room");
        if n % BURST == BURST - 1 {
            actor.send(Add(0)).await.expect("the actor answers");
        }
    }
    rate(TELLS, start)
}

fn rate(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
