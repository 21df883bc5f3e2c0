//! Two processes: one hosts counters, the other calls them.
//!
//! ```text
//! cargo run --example pair -- host 127.0.0.1:4710
//! cargo run --example pair -- call 127.0.0.1:4710
//! ```
//!
//! Or two members of a cluster, which share the counters among themselves. They are told by variables where they listen and whose
//! store they use; README has the commands:
//!
//! ```text
//! ARCHIPELAGO_BACKEND__EMBEDDED__SERVE=true .. cargo run --example pair -- member
//! ARCHIPELAGO_BACKEND__EMBEDDED__JOIN=.. cargo run --example pair -- member
//! ```
//!
//! All but the caller run until Ctrl-C, or, with `--until-stdin-closes`, until their standard input ends.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

use std::error::Error;
use std::process::ExitCode;

use archipelago::Builder;
use archipelago::prelude::*;

/// Adds to the counter and answers with its value.
#[remote(u64)]
struct Add(u64);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add))]
struct Counter(u64);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> u64 {
        self.0 += amount;
        self.0
    }
}

/// What both have in common. The processes share no store, so both are told where the counters live; the node that
/// listens there hosts them.
fn node(bind: &str, counters: &str) -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        // Plain TCP: fit for loopback, where nobody else can listen or pretend to be a node.
        .set("transport.insecure", "true")
        .set("transport.bind", bind)
        .set("cluster.placed.Counter", counters)
}

async fn host(address: &str, until_stdin_closes: bool) -> Result<(), Box<dyn Error>> {
    let node = node(address, address).actor::<Counter>().start().await?;
    println!("hosting counters at {address} over plain TCP, not encrypted: for loopback only");
    serve(node, until_stdin_closes).await
}

async fn member(until_stdin_closes: bool) -> Result<(), Box<dyn Error>> {
    let node = Node::builder().actor::<Counter>().start().await?;
    for fruit in ["apples", "pears", "plums"] {
        println!("{fruit} + 1 = {}", node.actor::<Counter>(fruit).send(Add(1)).await?);
    }
    println!("a member at {}", node.address());
    serve(node, until_stdin_closes).await
}

async fn serve(node: Node, until_stdin_closes: bool) -> Result<(), Box<dyn Error>> {
    if until_stdin_closes {
        actix_web::web::block(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
        node.stop().await?;
    } else {
        node.run().await?;
    }
    Ok(())
}

async fn call(address: &str) -> Result<(), Box<dyn Error>> {
    // Port 0: nobody needs to know where this node listens, so the system may choose.
    let node = node("127.0.0.1:0", address).remote_actor::<Counter>().start().await?;
    let apples = node.actor::<Counter>("apples");
    for amount in [1, 2, 3] {
        println!("apples + {amount} = {}", apples.send(Add(amount)).await?);
    }
    // A tell is not answered; it arrives before what is sent after it.
    apples.tell(Add(10))?;
    println!("apples = {}", apples.send(Add(0)).await?);
    println!("pears = {}", node.actor::<Counter>("pears").send(Add(0)).await?);
    node.stop().await?;
    Ok(())
}

#[actix::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["host", address] => host(address, false).await,
        ["host", address, "--until-stdin-closes"] => host(address, true).await,
        ["call", address] => call(address).await,
        ["member"] => member(false).await,
        ["member", "--until-stdin-closes"] => member(true).await,
        _ => Err("usage: pair host <address> [--until-stdin-closes] | pair call <address> | pair member [--until-stdin-closes]".into()),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}
