//! Messages while the admin API is asked, as a part of what goes through while it is not.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use archipelago::prelude::*;
use futures_util::future::join_all;

use crate::actors::{Add, Counter, node};
use crate::client::{Answers, Client};
use crate::{Bar, BoxError, median};

/// The requests that the API answers in a second.
const RATE: u32 = 200;
/// What is asked by whoever asks far too much.
const FLOOD: u32 = 10 * RATE;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_secs(2);
const CALLERS: usize = 64;
const ACTORS: usize = 16;

/// What an operator's page asks for.
const PATHS: [&str; 8] = [
    "/v1/node",
    "/v1/members",
    "/v1/kinds",
    "/v1/messages",
    "/v1/lanes",
    "/v1/peers",
    "/v1/session",
    "/v1/actors?limit=100",
];

pub(crate) async fn under_requests() -> Result<Vec<Bar>, BoxError> {
    let (node, at) = node(RATE).await?;
    for _ in 0..2 {
        messages(&node).await?;
    }
    let (mut asked, mut flooded, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let quiet = messages(&node).await?;
        let (with, answers) = messages_under(&node, at, RATE).await?;
        println!("{quiet:>10.0}/s alone {with:>10.0}/s at {RATE} requests/s {answers:?}");
        asked.push(with / quiet);
        let (with, answers) = messages_under(&node, at, FLOOD).await?;
        println!("{quiet:>10.0}/s alone {with:>10.0}/s at {FLOOD} requests/s {answers:?}");
        flooded.push(with / quiet);
        refused.push(answers.too_many as f64 / (answers.too_many + answers.good).max(1) as f64);
    }
    node.stop().await?;
    Ok(vec![
        Bar::at_least("throughput_at_the_rate", median(&mut asked), 0.95),
        Bar::at_least("throughput_above_the_rate", median(&mut flooded), 0.8),
        Bar::at_least("refused_above_the_rate", median(&mut refused), 0.5),
    ])
}

async fn messages_under(node: &Node, at: SocketAddr, per_second: u32) -> Result<(f64, Answers), BoxError> {
    let client = Client::start(at, per_second, &PATHS);
    let messages = messages(node).await;
    let answers = client.stop()?;
    Ok((messages?, answers))
}

/// Calls that were answered in a second.
async fn messages(node: &Node) -> Result<f64, BoxError> {
    let start = Instant::now();
    let callers = (0..CALLERS).map(|caller| {
        let counter = node.actor::<Counter>(format!("counter-{}", caller % ACTORS));
        async move {
            let mut calls = 0_u64;
            while start.elapsed() < ROUND {
                counter.send(Add(1)).await?;
                calls += 1;
            }
            Ok::<u64, CallError>(calls)
        }
    });
    let mut calls = 0;
    for answered in join_all(callers).await {
        calls += answered?;
    }
    Ok(calls as f64 / start.elapsed().as_secs_f64())
}
