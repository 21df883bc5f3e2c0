//! What is read from where, and what is said about each kind of mistake.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ConfigError, Idle, Loader, Settings};

mod backends;
mod conflicts;
#[cfg(all(feature = "quic", feature = "tcp"))]
mod network;

/// A directory of its own for one test, removed when the test is over.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("archipelago-config-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.0.join(name), text).unwrap();
        self
    }

    fn loader(&self) -> Loader {
        Loader::new().directory(&self.0).environment(NO_VARIABLES)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

const NO_VARIABLES: [(&str, &str); 0] = [];

/// What is said about one file of this content, without the directory.
fn said_about(test: &str, text: &str) -> String {
    let directory = Directory::new(test).with("archipelago.toml", text);
    shown(&directory.0, &directory.loader().load().unwrap_err())
}

fn said_about_variable(name: &str, value: &str) -> String {
    let loader = Loader::new().directory("/nowhere").environment([(name, value)]);
    loader.load().unwrap_err().to_string()
}

fn shown(directory: &Path, error: &ConfigError) -> String {
    error.to_string().replace(&format!("{}/", directory.display()), "")
}

// ---- what holds ----

/// Proves: R437, C21
#[test]
fn without_files_and_variables_the_defaults_hold() {
    let settings = Directory::new("defaults").loader().load().unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.namespace.as_str(), "default");
    assert_eq!(settings.calls.timeout, Duration::from_secs(5));
    assert_eq!(settings.calls.inbox.get(), 1024);
    assert_eq!(settings.node.stop_budget, Duration::from_secs(30));
    assert_eq!(settings.actors.idle_after, Idle::After(Duration::from_secs(10 * 60)));
}

#[test]
fn each_layer_wins_over_the_weaker_ones() {
    let directory = Directory::new("layers")
        .with("archipelago.toml", "namespace = 'file'\n[calls]\ntimeout = '1s'\ninbox = 1\npending = 1\n")
        .with("archipelago.prod.toml", "[calls]\ntimeout = '2s'\ninbox = 2\npending = 2\n");
    let settings = directory
        .loader()
        .profile("prod")
        .environment([("ARCHIPELAGO_CALLS__INBOX", "3"), ("ARCHIPELAGO_CALLS__PENDING", "3")])
        .set("calls.pending", 4)
        .load()
        .unwrap();
    assert_eq!(settings.namespace.as_str(), "file");
    assert_eq!(settings.calls.timeout, Duration::from_secs(2));
    assert_eq!(settings.calls.inbox.get(), 3);
    assert_eq!(settings.calls.pending.get(), 4);
    assert_eq!(settings.calls.ingress.get(), 65_536, "what nobody set stays at its default");
}

/// Proves: R435, R436, R438
#[test]
fn namespace_call_timeout_and_lease_are_settings() {
    let text = "namespace = 'shop'\ncalls.timeout = '250ms'\nsession = { ttl = '10s', heartbeat = '3s', rejoin = false }\n";
    let settings = Directory::new("named").with("archipelago.toml", text).loader().load().unwrap();
    assert_eq!(settings.namespace.as_str(), "shop");
    assert_eq!(settings.calls.timeout, Duration::from_millis(250));
    assert_eq!(settings.session.ttl(), Duration::from_secs(10));
    assert_eq!(settings.session.heartbeat(), Duration::from_secs(3));
    assert!(!settings.session.rejoins() && Settings::default().session.rejoins());
}

/// Proves: R437, C21
#[test]
fn idle_time_can_be_set_for_all_kinds_and_for_one() {
    let text = "[actors]\nidle_after = 'never'\n[actors.kinds.Account]\nidle_after = '5min'\n";
    let directory = Directory::new("idle").with("archipelago.toml", text);
    let variable = ("ARCHIPELAGO_ACTORS__KINDS__Cart__IDLE_AFTER", "1h");
    let call = r#"actors.kinds."bank.Teller".idle_after"#;
    let actors = directory.loader().environment([variable]).set(call, "2h").load().unwrap().actors;
    assert_eq!(actors.idle_after_of("Anything"), Idle::Never);
    assert_eq!(actors.idle_after_of("Account"), Idle::After(Duration::from_secs(300)));
    assert_eq!(actors.idle_after_of("Cart"), Idle::After(Duration::from_secs(3600)));
    assert_eq!(actors.idle_after_of("bank.Teller"), Idle::After(Duration::from_secs(7200)));
}

#[test]
fn environment_names_file_and_profile_and_builder_calls_win_over_it() {
    let directory = Directory::new("named-files")
        .with("a.toml", "namespace = 'a'")
        .with("a.dev.toml", "node.name = 'a-dev'")
        .with("b.toml", "namespace = 'b'")
        .with("b.prod.toml", "node.name = 'b-prod'");
    let file = directory.path("a.toml");
    let loader = directory
        .loader()
        .environment([("ARCHIPELAGO_CONFIG", file.as_str()), ("ARCHIPELAGO_PROFILE", "dev")]);
    let settings = loader.clone().load().unwrap();
    assert_eq!((settings.namespace.as_str(), settings.node.name.as_str()), ("a", "a-dev"));
    let settings = loader.file(directory.path("b.toml")).profile("prod").load().unwrap();
    assert_eq!((settings.namespace.as_str(), settings.node.name.as_str()), ("b", "b-prod"));
}

#[test]
fn text_from_the_environment_may_be_digits() {
    let variables = [
        ("ARCHIPELAGO__NAMESPACE", "007"),
        ("ARCHIPELAGO_NODE__NAME", "true"),
        ("ARCHIPELAGO_NODE__ROLES", "web, 1"),
        ("ARCHIPELAGO_NODE__DATA_ARBITERS", "2"),
    ];
    let settings = Directory::new("digits").loader().environment(variables).load().unwrap();
    assert_eq!(settings.namespace.as_str(), "007");
    assert_eq!(settings.node.name, "true");
    assert_eq!(settings.node.roles, ["1", "web"].map(str::to_owned).into());
    assert_eq!(settings.node.data_arbiters.map(|number| number.get()), Some(2));
}

#[test]
fn variables_without_a_double_underscore_are_not_configuration() {
    let variables = [
        ("ARCHIPELAGO_TEST_REQUIRE", "etcd"),
        ("ARCHIPELAGO_TEST__REQUIRE", "etcd"),
        ("ARCHIPELAGO_PROFILE", ""),
        ("ARCHIPELAGO_PORT_80_TCP", "tcp://10.0.0.1:80"),
    ];
    let settings = Directory::new("foreign").loader().environment(variables).load().unwrap();
    assert_eq!(settings, Settings::default());
}

// ---- what is refused, and in which words ----

#[test]
fn unknown_key_is_refused_with_file_line_and_key() {
    assert_eq!(
        said_about("unknown-key", "[calls]\ntimeout = '1s'\ntimeuot = '1s'\n"),
        "archipelago.toml:3: calls.timeuot: unknown key; known here are inbox, ingress, interleaved, pending, timeout"
    );
}

#[test]
fn unknown_section_is_refused_with_file_line_and_key() {
    assert_eq!(
        said_about("unknown-section", "\n[call]\ntimeout = '1s'\n"),
        "archipelago.toml:2: call: unknown key; \
         known here are actors, admin, backend, calls, cluster, control_plane, datacenter, events, fence, lanes, \
         membership, namespace, node, session, sharding, transport"
    );
}

#[test]
fn wrong_type_is_refused_with_file_line_key_and_variable() {
    assert_eq!(
        said_about("wrong-type", "# queues\n[calls]\ninbox = \"many\"\n"),
        "archipelago.toml:3: calls.inbox = \"many\": expected a whole number from 1 to 4294967295 \
         (environment variable ARCHIPELAGO_CALLS__INBOX)"
    );
    assert_eq!(
        said_about("number-for-text", "namespace = 7"),
        "archipelago.toml:1: namespace = 7: expected 1 to 64 letters, digits, dots, dashes and underscores \
         (environment variable ARCHIPELAGO__NAMESPACE)"
    );
}

#[test]
fn namespace_outside_its_alphabet_is_refused() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO__NAMESPACE", "a/b"),
        "environment variable ARCHIPELAGO__NAMESPACE: namespace = \"a/b\": \
         expected 1 to 64 letters, digits, dots, dashes and underscores"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_NODE__NAME", ""),
        "environment variable ARCHIPELAGO_NODE__NAME: node.name = \"\": expected text that is not empty"
    );
}

#[test]
fn value_in_place_of_a_section_and_section_in_place_of_a_value_are_refused() {
    assert_eq!(
        said_about("value", "calls = 5"),
        "archipelago.toml:1: calls: expected a section, not a value"
    );
    assert_eq!(
        said_about("section", "[calls.timeout]\nseconds = 5"),
        "archipelago.toml:1: calls.timeout = [calls.timeout]: \
         expected a duration such as \"500ms\", \"5s\" or \"10min\" \
         (environment variable ARCHIPELAGO_CALLS__TIMEOUT)"
    );
}

#[test]
fn bad_duration_is_refused_with_file_line_key_and_variable() {
    assert_eq!(
        said_about("duration", "[calls]\ntimeout = \"fast\"\n"),
        "archipelago.toml:2: calls.timeout = \"fast\": \
         expected a duration such as \"500ms\", \"5s\" or \"10min\" \
         (environment variable ARCHIPELAGO_CALLS__TIMEOUT)"
    );
    assert_eq!(
        said_about("idle-duration", "[actors.kinds.Account]\nidle_after = 300\n"),
        "archipelago.toml:2: actors.kinds.Account.idle_after = 300: \
         expected a duration such as \"500ms\", \"5s\" or \"10min\", or \"never\" \
         (environment variable ARCHIPELAGO_ACTORS__KINDS__Account__IDLE_AFTER)"
    );
}

#[test]
fn unknown_policy_for_datacenters_is_refused_with_file_line_key_and_variable() {
    assert_eq!(
        said_about("datacenter-placement", "[datacenter]\nname = 'east'\nplacement = 'closest'\n"),
        "archipelago.toml:3: datacenter.placement = 'closest': expected \"by-key\", \"nearest\" or \"region\" \
         (environment variable ARCHIPELAGO_DATACENTER__PLACEMENT)"
    );
}

#[test]
fn bad_value_of_a_variable_is_refused_with_variable_and_key() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO_CALLS__INBOX", "0"),
        "environment variable ARCHIPELAGO_CALLS__INBOX: calls.inbox = \"0\": \
         expected a whole number from 1 to 4294967295"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_CALLS__TIMEOUT", "5"),
        "environment variable ARCHIPELAGO_CALLS__TIMEOUT: calls.timeout = \"5\": \
         expected a duration such as \"500ms\", \"5s\" or \"10min\""
    );
}

#[test]
fn variable_for_a_key_that_does_not_exist_is_refused() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO_SESSION__TTTL", "5s"),
        "environment variable ARCHIPELAGO_SESSION__TTTL: session.tttl: unknown key; \
         known here are heartbeat, rejoin, ttl"
    );
}

#[test]
fn bad_builder_call_is_refused_with_the_call() {
    let load = |key: &str, value: &str| {
        let loader = Loader::new().directory("/nowhere").environment(NO_VARIABLES);
        loader.set(key, value).load().unwrap_err().to_string()
    };
    assert_eq!(
        load("events.subscriber_queue", "-1"),
        "builder call set(\"events.subscriber_queue\", \"-1\"): events.subscriber_queue = \"-1\": \
         expected a whole number from 1 to 4294967295 \
         (environment variable ARCHIPELAGO_EVENTS__SUBSCRIBER_QUEUE)"
    );
    assert_eq!(load("a b", "1"), "builder call set(\"a b\", \"1\"): a b: unknown key");
}

#[test]
fn named_file_that_is_missing_is_refused_with_who_named_it() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO_CONFIG", "/nowhere/shop.toml"),
        "environment variable ARCHIPELAGO_CONFIG: the file /nowhere/shop.toml does not exist"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_PROFILE", "prod"),
        "environment variable ARCHIPELAGO_PROFILE: the file /nowhere/archipelago.prod.toml does not exist"
    );
    let by_call = Loader::new().environment(NO_VARIABLES).file("/nowhere/shop.toml").load();
    assert_eq!(
        by_call.unwrap_err().to_string(),
        "builder call file(\"/nowhere/shop.toml\"): the file /nowhere/shop.toml does not exist"
    );
}

#[test]
fn profile_that_is_no_plain_name_is_refused() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO_PROFILE", "../prod"),
        "environment variable ARCHIPELAGO_PROFILE: \
         \"../prod\" is not a profile name of letters, digits, dashes and underscores"
    );
}

#[test]
fn file_that_is_not_toml_is_refused_with_its_line() {
    let said = said_about("syntax", "namespace = 'a'\n[calls\n");
    assert!(said.starts_with("archipelago.toml:2: not valid TOML: "), "{said}");
}

#[test]
fn lease_shorter_than_three_heartbeats_is_refused() {
    assert_eq!(
        said_about("lease", "[session]\nheartbeat = '2s'\nttl = '5s'\n"),
        "archipelago.toml:3: session.ttl: \
         a ttl of 5s is shorter than 3 heartbeats of 2s: at least 6s is needed \
         (environment variable ARCHIPELAGO_SESSION__TTL)"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_SESSION__HEARTBEAT", "2001ms"),
        "environment variable ARCHIPELAGO_SESSION__HEARTBEAT: session.heartbeat: \
         a ttl of 6s is shorter than 3 heartbeats of 2s 1ms: at least 6s 3ms is needed"
    );
}

#[test]
fn unknown_backend_is_refused_with_the_known_ones_and_their_features() {
    assert_eq!(
        said_about("backend", "[backend]\nkind = \"redis\"\n"),
        "archipelago.toml:2: backend.kind = \"redis\": expected a backend; \
         known are \"embedded\" (built in), \"etcd\" (cargo feature `etcd`), \
         \"nats\" (cargo feature `nats`), \"foundationdb\" (cargo feature `foundationdb`) \
         (environment variable ARCHIPELAGO_BACKEND__KIND)"
    );
}

#[test]
fn all_mistakes_of_all_layers_are_reported_at_once() {
    let directory = Directory::new("all")
        .with("archipelago.toml", "[calls]\ntimeout = 5\ntimeuot = '1s'\n[nodes]\n")
        .with("archipelago.dev.toml", "[session]\nttl = ''\n");
    let loader = directory.loader().profile("dev").environment([("ARCHIPELAGO_CALLS__INBOX", "x")]);
    let error = loader.set("backend.kind", "redis").load().unwrap_err();
    let origins: Vec<String> = error.problems().iter().map(|problem| problem.origin.to_string()).collect();
    assert_eq!(
        origins,
        [
            directory.path("archipelago.toml:2"),
            directory.path("archipelago.toml:3"),
            directory.path("archipelago.toml:4"),
            directory.path("archipelago.dev.toml:2"),
            "environment variable ARCHIPELAGO_CALLS__INBOX".to_owned(),
            "builder call set(\"backend.kind\", \"redis\")".to_owned(),
        ]
    );
    assert!(error.to_string().starts_with("6 problems in the configuration\n  "));
}
