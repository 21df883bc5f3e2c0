//! Nodes with an admin API on a port of their own, and the program.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago::embedded::EmbeddedStore;
use archipelago::identity::ActorKey;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{ShardCount, Sharding};
use serde_json::Value;

pub(crate) const TOKEN: &str = "a-token-for-the-tests";
pub(crate) const GREET: &str = "archipelago-ctl.Greet";
pub(crate) const WELCOME: &str = "archipelago-ctl.Welcome";

/// Greets, and counts how often.
#[remote(u32)]
pub(crate) struct Greet;

/// Greets somebody by name, after a while.
#[remote(String, codec = "json")]
pub(crate) struct Welcome {
    pub(crate) name: String,
    pub(crate) after_ms: u64,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet, Welcome))]
pub(crate) struct Guest {
    greeted: u32,
}

impl Actor for Guest {
    type Context = Context<Self>;
}

impl Handler<Greet> for Guest {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        self.greeted += 1;
        self.greeted
    }
}

impl Handler<Welcome> for Guest {
    type Result = ResponseFuture<String>;

    fn handle(&mut self, Welcome { name, after_ms }: Welcome, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(after_ms)).await;
            name
        })
    }
}

/// Its kind is divided by ranges of keys.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
pub(crate) struct Shelf;

impl Actor for Shelf {
    type Context = Context<Self>;
}

impl Handler<Greet> for Shelf {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        1
    }
}

/// A node of this process, and where its API is.
pub(crate) struct Served {
    pub(crate) node: Node,
    pub(crate) api: String,
}

/// A node on a store, with some keys set.
pub(crate) async fn served(store: &Arc<EmbeddedStore>, name: &str, keys: &[(&str, &str)]) -> Served {
    let mut loader = archipelago::config::Loader::new()
        .directory(env!("CARGO_TARGET_TMPDIR"))
        .environment(std::iter::empty::<(String, String)>())
        .set("node.name", name)
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
        .set("admin.serve", "true")
        .set("admin.bind", "127.0.0.1:0")
        .set("admin.rate", "100000")
        .set("admin.token_file", token_file().display());
    for (key, value) in keys {
        loader = loader.set(*key, value);
    }
    let builder = Node::builder()
        .settings(loader.load().expect("the test's settings are valid"))
        .embedded_store(Arc::clone(store))
        .shard(Sharding::new(|_, _| Guest::default()).shards(ShardCount::new(16).unwrap()))
        .shard(Sharding::new(|_, _| Shelf).ranges([ActorKey::new("m").unwrap()]));
    let node = builder.start().await.unwrap();
    let api = format!("http://{}", archipelago_admin::served_at(&node).unwrap());
    Served { node, api }
}

/// A node alone.
pub(crate) async fn one() -> Served {
    served(&Arc::default(), "north", &[]).await
}

/// Two nodes that see each other; `keys` are for both.
pub(crate) async fn two(keys: &[(&str, &str)]) -> (Served, Served) {
    let store = Arc::default();
    let first = served(&store, "north", keys).await;
    let second = served(&store, "south", keys).await;
    see_each_other(&first, &second).await;
    (first, second)
}

pub(crate) async fn see_each_other(first: &Served, second: &Served) {
    let up = |served: &Served| {
        served.node.members().iter().filter(|member| member.status == MemberStatus::Up).count() == 2
    };
    eventually("both take part", || up(first) && up(second)).await;
}

/// Waits until `condition` holds; panics after thirty seconds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < until, "never happened: {what}");
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
}

/// The file that holds the token of the tests, which its owner alone can read.
pub(crate) fn token_file() -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("ctl-token");
    // Other tests may be reading it.
    let new = folder.join(format!("ctl-token-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::write(&new, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(new, &path).unwrap();
    path
}

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The answer for programs.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The words of the line in which `word` stands.
    pub(crate) fn line(&self, word: &str) -> Vec<&str> {
        let line = self.out.lines().find(|line| line.split_whitespace().any(|one| one == word));
        line.unwrap_or_else(|| panic!("no {word} in {self:?}")).split_whitespace().collect()
    }
}

/// The program, in an environment that says nothing to it.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_archipelago"));
    program.args(arguments).env_clear().stdin(Stdio::null());
    program
}

/// Runs it to its end, on this thread.
pub(crate) fn run_here(arguments: &[&str]) -> Ran {
    ran(program(arguments))
}

pub(crate) fn ran(mut program: Command) -> Ran {
    let output = program.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs it beside the nodes of this process, with the token.
pub(crate) async fn run(served: &Served, arguments: &[&str]) -> Ran {
    let token = token_file();
    let whole = ["--api", &served.api, "--token-file", token.to_str().unwrap()];
    run_beside(whole.iter().chain(arguments).map(|one| (*one).to_owned()).collect()).await
}

/// Runs it beside the nodes of this process.
pub(crate) async fn run_beside(arguments: Vec<String>) -> Ran {
    let work = move || run_here(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    actix_rt::task::spawn_blocking(work).await.unwrap()
}

/// Brings actors to life whose shards are all there are.
pub(crate) async fn greet_all(served: &Served) {
    for number in 0..64 {
        served.node.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
}
