//! What happens at the start: servers that are away, too old, or not to be trusted, and streams that will not do.

use std::time::{Duration, Instant};

use crate::rig::{self, connect, owner, put, with_server, with_server_told, write};
use archipelago_directory::{CasAnswer, Expect, Read, Seen, Store, StoreError, Version};
use archipelago_nats::{NatsConfig, NatsStore, StartError, raise_base};
use archipelago_test_servers::nats;

async fn refused(config: NatsConfig) -> StartError {
    let started = Instant::now();
    let limit = config.connect_timeout + Duration::from_secs(1);
    let error = NatsStore::connect(config).await.expect_err("must not start");
    assert!(started.elapsed() < limit, "{:?}: {error}", started.elapsed());
    error
}

fn nowhere(url: &str) -> NatsConfig {
    let mut config = NatsConfig::default();
    config.urls = vec![url.to_owned().try_into().unwrap()];
    config.connect_timeout = Duration::from_millis(700);
    config
}

#[test]
fn an_unreachable_server_is_named_together_with_the_cause() {
    rig::block_on(async {
        // Nobody listens on the first; the second takes the connection and never says a word.
        let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mute = format!("nats://{}", mute.local_addr().unwrap());
        for (url, cause) in [("nats://127.0.0.1:1", "refused"), (mute.as_str(), "time")] {
            let error = refused(nowhere(url)).await;
            assert!(matches!(error, StartError::Unreachable { .. }), "{error:?}");
            let said = error.to_string();
            assert!(said.contains(url) && said.contains(cause), "{said}");
        }
    });
}

#[test]
fn a_paused_server_does_not_hang_the_start() {
    with_server(async |server| {
        server.pause();
        let mut config = rig::config(&server);
        config.connect_timeout = Duration::from_millis(700);
        let error = refused(config).await;
        assert!(matches!(error, StartError::Unreachable { .. }), "{error:?}");
    });
}

#[test]
fn a_server_without_message_ttls_is_refused() {
    let Some(program) = nats::old_program() else { return };
    let server = nats::start(program, |_| String::new());
    rig::block_on(async {
        let error = refused(rig::config(&server)).await;
        assert!(matches!(&error, StartError::TooOld { found, .. } if found.starts_with("2.9")), "{error:?}");
        assert!(error.to_string().contains("2.11"), "{error}");
    });
}

#[test]
fn more_replicas_than_servers_are_refused_with_advice() {
    with_server(async |server| {
        let mut config = rig::config(&server);
        config.replicas = 3.try_into().unwrap();
        let error = refused(config).await;
        assert!(matches!(error, StartError::Refused { code: 10_074, .. }), "{error:?}");
        assert!(error.to_string().contains("replicas = 1"), "{error}");
    });
}

#[test]
fn a_stream_is_only_created_if_that_is_wanted() {
    with_server(async |server| {
        let mut config = rig::config(&server);
        config.create_stream = false;
        assert!(matches!(refused(config.clone()).await, StartError::NoStream { .. }));
        rig::store(&server).await;
        connect(config).await;
    });
}

#[test]
fn a_stream_that_would_break_promises_is_refused() {
    with_server(async |server| {
        rig::store(&server).await;
        let mut config = rig::config(&server);
        config.prefix = "other".to_owned().try_into().unwrap();
        let error = refused(config).await;
        assert!(matches!(error, StartError::Unsuitable { .. }), "{error:?}");
    });
}

#[test]
fn wrong_credentials_are_refused_and_right_ones_serve() {
    with_server_told(
        |_| "authorization { user: me, password: secret }".into(),
        async |server| {
            let file = server.place().folder().join("password");
            let mut config = rig::config(&server);
            assert!(matches!(refused(config.clone()).await, StartError::Unauthorized { .. }));
            std::fs::write(&file, "wrong\n").unwrap();
            (config.user, config.password_file) = (Some("me".into()), Some(file.clone()));
            let error = refused(config.clone()).await;
            assert!(matches!(error, StartError::Unauthorized { .. }), "{error:?}");
            assert!(!format!("{error:?} {error}").contains("wrong"), "{error:?}");
            std::fs::write(&file, "secret\n").unwrap();
            write(&*connect(config).await, &owner("k"), Expect::Absent, put("a", "x")).await;
        },
    );
}

#[test]
fn a_token_serves_as_well() {
    with_server_told(
        |_| "authorization { token: s3cret }".into(),
        async |server| {
            let file = server.place().folder().join("token");
            std::fs::write(&file, "s3cret").unwrap();
            let mut config = rig::config(&server);
            config.token_file = Some(file);
            write(&*connect(config).await, &owner("k"), Expect::Absent, put("a", "x")).await;
        },
    );
}

/// Nodes of an earlier stream may still hold keys by leases that the new one has never heard of.
#[test]
fn a_new_stream_grants_nothing_until_old_leases_have_run_out() {
    with_server(async |server| {
        let mut config = rig::config(&server);
        config.settle = Duration::from_millis(1_500);
        let store = connect(config.clone()).await;
        let early = store.cas(&owner("k"), Expect::Absent, put("a", "x"), None).await;
        assert!(matches!(early, Err(StoreError::Unavailable { .. })), "{early:?}");
        let session = archipelago_directory::lease_id(archipelago_protocol::identity::NodeId::new(1));
        write(&*store, &session, Expect::Absent, put("a", "x")).await;
        let late = connect(config).await;
        tokio::time::sleep(Duration::from_millis(1_600)).await;
        write(&*store, &owner("k"), Expect::Absent, put("a", "x")).await;
        write(&*late, &owner("l"), Expect::Absent, put("a", "x")).await;
    });
}

/// A stream that was deleted and made anew never gives a version again.
#[test]
fn versions_of_a_stream_made_anew_are_greater() {
    with_server(async |server| {
        let store = rig::store(&server).await;
        let before = write(&*store, &owner("k"), Expect::Absent, put("a", "x")).await;
        let client = async_nats::connect(nats::url(&server)).await.unwrap();
        async_nats::jetstream::new(client).delete_stream("archipelago").await.unwrap();
        let anew = rig::store(&server).await;
        assert!(write(&*anew, &owner("k"), Expect::Absent, put("a", "x")).await > before);
        let seen = Seen { version: before, tag: None };
        let late = store.cas(&owner("k"), Expect::At(seen), put("b", "late"), None).await;
        assert!(matches!(late, Ok(CasAnswer::Conflict(Some(_)))), "{late:?}");
    });
}

/// A stream restored from a backup is noticed, stops all who notice it and all who start, until its base is raised.
#[test]
fn a_stream_that_went_back_is_refused_until_its_base_is_raised() {
    with_server(async |mut server| {
        let folder = nats::store_folder(&server);
        let backup = server.place().folder().join("backup");
        let store = rig::store(&server).await;
        write(&*store, &owner("kept"), Expect::Absent, put("a", "x")).await;
        server.kill();
        copy(&folder, &backup);
        server.restart();
        rig::until("back", || async { store.get(&owner("kept"), Read::Linearizable).await.ok() }).await;
        let mut highest = Version(0);
        for n in 0..20 {
            highest = write(&*store, &owner(&format!("k{n}")), Expect::Absent, put("a", "x")).await;
        }
        server.kill();
        std::fs::remove_dir_all(&folder).unwrap();
        copy(&backup, &folder);
        server.restart();
        rig::until("back", || async { store.get(&owner("kept"), Read::Linearizable).await.ok() }).await;
        let again = store.cas(&owner("new"), Expect::Absent, put("a", "x"), None).await;
        assert!(matches!(again, Err(StoreError::Fatal { .. })), "{again:?}");
        assert!(matches!(store.get(&owner("kept"), Read::Any).await, Err(StoreError::Fatal { .. })));
        let error = refused(rig::config(&server)).await;
        assert!(matches!(error, StartError::SetBack { highest: seen, .. } if seen == highest.0), "{error:?}");
        raise_base(&rig::config(&server)).await.unwrap();
        let store = rig::store(&server).await;
        let kept = store.get(&owner("kept"), Read::Linearizable).await.unwrap().unwrap();
        assert!(kept.version > highest, "a record that was kept has a version never given before");
        assert!(write(&*store, &owner("kept"), kept.expect(), put("b", "y")).await > kept.version);
    });
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
