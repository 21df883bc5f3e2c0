//! Choosing a backend is configuration only: the same program runs on etcd and on NATS, and says plainly what is wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::PathBuf;

use archipelago::Error;
use archipelago::prelude::*;

/// A configuration file of one test, removed when the test is over.
struct File(PathBuf);

impl File {
    fn new(test: &str, text: &str) -> Self {
        let name = format!("backends-{}-{test}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        Self(path)
    }

    /// What is said about the file by a node that does not start, without the name of the folder.
    async fn refusal(&self) -> (Error, String) {
        let error = Node::builder().config_file(&self.0).start().await.expect_err("does not start");
        let said = error.to_string().replace(&self.0.display().to_string(), "node.toml");
        (error, said)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[actix::test]
async fn wrong_key_of_a_backend_is_refused_with_file_and_line() {
    let file = File::new("key", "[backend]\nkind = 'embedded'\n[backend.nats]\nreplica = 3\n");
    let (error, said) = file.refusal().await;
    assert!(matches!(error, Error::Config(_)));
    assert!(said.starts_with("node.toml:4: backend.nats.replica: unknown key; known here are "), "{said}");
}

#[cfg(not(feature = "etcd"))]
#[actix::test]
async fn backend_that_is_not_compiled_in_is_refused_with_its_feature() {
    let file = File::new("not-built", "[backend]\nkind = 'etcd'\n");
    let (error, said) = file.refusal().await;
    assert!(matches!(error, Error::Config(_)));
    assert!(said.contains("backend.kind: \"etcd\" needs archipelago's cargo feature `etcd`"), "{said}");
}

#[cfg(any(feature = "etcd", feature = "nats"))]
mod outside {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use archipelago::config::{BackendKind, Conflict, Fault};
    use archipelago::{Builder, CallOptions};

    use super::*;

    /// Answers where it runs, and the sum so far.
    #[remote(String)]
    struct Add(u64);

    #[derive(VirtualActor)]
    #[virtual_actor(handles(Add))]
    struct Counter {
        home: String,
        sum: u64,
    }

    impl Actor for Counter {
        type Context = Context<Self>;
    }

    impl Handler<Add> for Counter {
        type Result = String;

        fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> String {
            self.sum += amount;
            format!("{}: {}", self.home, self.sum)
        }
    }

    /// A node that is told by `file` which backend to use.
    fn node(file: &File, name: &str) -> Builder {
        let home = name.to_owned();
        Node::builder()
            .config_file(&file.0)
            .set("node.name", name)
            .set("node.data_arbiters", "1")
            .set("transport.kind", "tcp")
            .set("transport.insecure", "true")
            .set("transport.bind", "127.0.0.1:0")
            .actor_with(move |_, _| Counter { home: home.clone(), sum: 0 })
    }

    async fn add(node: &Node, amount: u64) -> String {
        let patient = CallOptions::new().timeout(Duration::from_secs(30));
        node.actor::<Counter>("a").send_with(Add(amount), patient).await.expect("is answered")
    }

    /// Two nodes on one store: an actor of one answers through the other, and a stop gives its kind back at once.
    pub(super) async fn one_actor_for_two_nodes(file: &File) {
        let one = node(file, "one").start().await.unwrap();
        assert_eq!(add(&one, 1).await, "one: 1");
        let two = node(file, "two").start().await.unwrap();
        assert_eq!(add(&two, 2).await, "one: 3");
        two.stop().await.unwrap();
        one.stop().await.unwrap();
        let since = now();
        let three = node(file, "three").start().await.unwrap();
        assert_eq!(add(&three, 5).await, "three: 5");
        let took = now() - since;
        assert!(took < TTL, "not given back, but run out: {took:?}");
        three.stop().await.unwrap();
    }

    /// The beats go on while the thread that started the node is blocked for longer than a session lasts.
    pub(super) async fn session_outlives_a_blocked_main_thread(file: &File) {
        let node = node(file, "one").start().await.unwrap();
        assert_eq!(add(&node, 1).await, "one: 1");
        block(TTL + Duration::from_secs(2));
        assert_eq!(add(&node, 2).await, "one: 3");
        node.stop().await.unwrap();
    }

    /// Nobody listens at the address that the file names.
    pub(super) async fn unreachable_store_is_an_error_in_time(
        file: &File,
        expected: BackendKind,
        address: &str,
    ) {
        let since = now();
        let (error, said) = file.refusal().await;
        let took = now() - since;
        assert!(matches!(&error, Error::Backend { kind, .. } if *kind == expected), "{error:?}");
        assert!(said.contains(address), "{said}");
        assert!(said.starts_with(&format!("the backend {expected} cannot be used: ")), "{said}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    pub(super) async fn embedded_store_beside_it_is_refused(file: &File, expected: BackendKind) {
        let builder = node(file, "one").embedded_store(std::sync::Arc::default());
        let Err(Error::Config(error)) = builder.start().await else { panic!("is refused") };
        let fault = &error.problems()[0].fault;
        assert!(matches!(fault, Fault::Conflict(Conflict::EmbeddedOnly { kind, .. }) if *kind == expected));
    }

    /// A port at which nobody listens, as far as that can be known.
    pub(super) fn closed_port() -> u16 {
        let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        bound.expect("loopback has free ports").port()
    }

    #[expect(clippy::disallowed_methods, reason = "measures real time")]
    fn now() -> Instant {
        Instant::now()
    }

    #[expect(clippy::disallowed_methods, reason = "a blocked thread is what the test is about")]
    fn block(length: Duration) {
        std::thread::sleep(length);
    }

    /// What the files of these tests say.
    const TTL: Duration = Duration::from_secs(6);
}

#[cfg(feature = "etcd")]
mod etcd {
    use archipelago::config::BackendKind;
    use archipelago_test_servers::etcd::EtcdServer;

    use super::*;

    fn file(test: &str, endpoint: &str) -> File {
        let text = format!(
            "[backend]\nkind = 'etcd'\n[backend.etcd]\nendpoints = ['{endpoint}']\nprefix = '/{test}'\n\
             connect_timeout = '2s'\n[session]\nttl = '6s'\n"
        );
        File::new(&format!("etcd-{test}"), &text)
    }

    /// Proves: R374
    #[actix::test]
    async fn actor_on_etcd_answers_through_another_node_and_moves_after_a_stop() {
        let Some(server) = EtcdServer::start() else { return };
        outside::one_actor_for_two_nodes(&file("two", &server.address())).await;
    }

    #[actix::test]
    async fn session_in_etcd_outlives_a_blocked_main_thread() {
        let Some(server) = EtcdServer::start() else { return };
        outside::session_outlives_a_blocked_main_thread(&file("blocked", &server.address())).await;
    }

    #[actix::test]
    async fn unreachable_etcd_is_an_error_in_time_with_address_and_cause() {
        let address = format!("http://127.0.0.1:{}", outside::closed_port());
        let file = file("unreachable", &address);
        outside::unreachable_store_is_an_error_in_time(&file, BackendKind::Etcd, &address).await;
        outside::embedded_store_beside_it_is_refused(&file, BackendKind::Etcd).await;
    }

    #[actix::test]
    async fn password_file_that_is_missing_is_refused_with_its_line() {
        let text =
            "[backend]\nkind = 'etcd'\n[backend.etcd]\nuser = 'me'\npassword_file = '/nowhere/password'\n";
        let (error, said) = File::new("etcd-password", text).refusal().await;
        assert!(matches!(error, Error::Config(_)), "{error:?}");
        let expected = "node.toml:5: backend.etcd.password_file: cannot read /nowhere/password: ";
        assert!(said.starts_with(expected), "{said}");
    }
}

#[cfg(feature = "nats")]
mod nats {
    use archipelago::config::BackendKind;
    use archipelago_test_servers::{ServerProcess, nats};

    use super::*;

    fn server() -> Option<ServerProcess> {
        nats::program().map(|program| nats::start(program, |_| String::new()))
    }

    fn file(test: &str, url: &str) -> File {
        let text = format!(
            "[backend]\nkind = 'nats'\n[backend.nats]\nurls = ['{url}']\nstream = '{test}'\nprefix = '{test}'\n\
             replicas = 1\nconnect_timeout = '2s'\nsettle = '6500ms'\n[session]\nttl = '6s'\n"
        );
        File::new(&format!("nats-{test}"), &text)
    }

    /// Proves: R373
    #[actix::test]
    async fn actor_on_nats_answers_through_another_node_and_moves_after_a_stop() {
        let Some(server) = server() else { return };
        outside::one_actor_for_two_nodes(&file("two", &nats::url(&server))).await;
    }

    #[actix::test]
    async fn session_in_nats_outlives_a_blocked_main_thread() {
        let Some(server) = server() else { return };
        outside::session_outlives_a_blocked_main_thread(&file("blocked", &nats::url(&server))).await;
    }

    #[actix::test]
    async fn unreachable_nats_is_an_error_in_time_with_address_and_cause() {
        let url = format!("nats://127.0.0.1:{}", outside::closed_port());
        let file = file("unreachable", &url);
        outside::unreachable_store_is_an_error_in_time(&file, BackendKind::Nats, &url).await;
        outside::embedded_store_beside_it_is_refused(&file, BackendKind::Nats).await;
    }

    #[actix::test]
    async fn files_that_are_missing_and_keys_that_contradict_are_refused_with_their_lines() {
        let text = "[backend]\nkind = 'nats'\n[backend.nats]\ntoken_file = '/nowhere/token'\n";
        let (error, said) = File::new("nats-token", text).refusal().await;
        assert!(matches!(error, Error::Config(_)), "{error:?}");
        let expected = "node.toml:4: backend.nats.token_file: cannot use the token file /nowhere/token: ";
        assert!(said.starts_with(expected), "{said}");
        let (_, said) = File::new("nats-user", &format!("{text}user = 'me'\n")).refusal().await;
        assert!(said.starts_with("node.toml:5: backend.nats: give `user` with `password_file`"), "{said}");
    }
}
