//! The start of a store: what it waits for, and what it refuses.

use std::sync::Arc;

use archipelago_backend_conformance::ManualTimer;
use archipelago_foundationdb::{FoundationDbConfig, FoundationDbError, FoundationDbStore, MemoryEngine};

use crate::support::{calm, create, run, settings, store};

async fn refused(
    engine: &MemoryEngine,
    config: &FoundationDbConfig,
    timer: &ManualTimer,
) -> FoundationDbError {
    let opened = FoundationDbStore::open(Arc::new(engine.clone()), config, Arc::new(timer.clone())).await;
    opened.err().expect("is refused")
}

#[test]
fn a_database_that_does_not_answer_is_unreachable_in_time_and_said_to_be_where_it_should() {
    run(|timer| async move {
        let file = std::env::temp_dir().join(format!("archipelago-fdb-{}.cluster", std::process::id()));
        std::fs::write(&file, "test:test@10.0.0.1:4500\n").unwrap();
        let config = FoundationDbConfig { cluster_file: Some(file.clone()), ..settings() };
        let opened = FoundationDbStore::open(Arc::new(Silent), &config, Arc::new(timer.clone())).await;
        std::fs::remove_file(&file).unwrap();
        let expected = format!(
            "no FoundationDB at 10.0.0.1:4500 (cluster file {}) within 5000ms: FoundationDB gave no answer within 2000ms",
            file.display()
        );
        assert_eq!(opened.err().expect("is refused").to_string(), expected);
    });
}

/// A database restored to a cluster that counts from a lower version would give versions that were given before.
#[test]
fn a_database_that_was_set_back_is_refused_until_it_is_raised() {
    run(|timer| async move {
        let engine = calm();
        let first = store(&engine, &timer).await;
        let version = create(&first, "k").await;
        engine.set_version(version.0 - 1);
        let error = refused(&engine, &settings(), &timer).await;
        assert!(
            matches!(error, FoundationDbError::VersionsWentBack { stands, .. } if stands == version.0),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("`advanceversion {}`", version.0)), "{error}");
        engine.set_version(version.0);
        let again = store(&engine, &timer).await;
        assert!(create(&again, "l").await > version);
    });
}

#[test]
fn settings_that_make_no_sense_are_refused_before_anything_is_asked() {
    run(|timer| async move {
        let config = FoundationDbConfig { prefix: String::new(), ..settings() };
        let error = refused(&calm(), &config, &timer).await;
        assert!(matches!(error, FoundationDbError::Config(_)), "{error}");
    });
}

/// Two clusters in one database see nothing of each other.
#[test]
fn prefixes_are_apart() {
    run(|timer| async move {
        let engine = calm();
        let one = store(&engine, &timer).await;
        let config = FoundationDbConfig { prefix: "archipelago2".into(), ..settings() };
        let other = crate::support::store_with(&engine, &timer, config).await;
        create(&one, "k").await;
        assert_eq!(crate::support::current(&other, "k").await, None);
        create(&other, "k").await;
    });
}

use silent::Silent;

mod silent {
    //! An engine, and its transactions, that never answer.

    use archipelago_directory::Read;
    use archipelago_foundationdb::{Code, Engine, Isolation, Page, Transaction, Uncommitted};
    use async_trait::async_trait;
    use bytes::Bytes;
    use futures_util::future::{BoxFuture, pending};

    pub(super) struct Silent;

    impl Engine for Silent {
        fn begin(&self, _read: Read) -> Result<Box<dyn Transaction>, Code> {
            Ok(Box::new(Silent))
        }
    }

    #[async_trait]
    impl Transaction for Silent {
        async fn read_version(&self) -> Result<u64, Code> {
            pending().await
        }

        async fn get(&self, _key: &[u8], _isolation: Isolation) -> Result<Option<Bytes>, Code> {
            pending().await
        }

        async fn range(&self, _: &[u8], _: &[u8], _: usize, _: Isolation) -> Result<Page, Code> {
            pending().await
        }

        fn set(&self, _key: &[u8], _value: &[u8]) {}
        fn clear(&self, _key: &[u8]) {}
        fn clear_range(&self, _begin: &[u8], _end: &[u8]) {}
        fn set_max(&self, _key: &[u8], _value: &[u8]) {}
        fn set_versionstamped_key(&self, _key: &[u8], _value: &[u8]) {}
        fn set_versionstamped_value(&self, _key: &[u8], _value: &[u8]) {}

        fn watch(&self, _key: &[u8]) -> BoxFuture<'static, Result<(), Code>> {
            Box::pin(pending())
        }

        async fn commit(self: Box<Self>) -> Result<Option<u64>, Uncommitted> {
            pending().await
        }

        async fn on_error(self: Box<Self>, _code: Code) -> Result<Box<dyn Transaction>, Code> {
            pending().await
        }
    }
}
