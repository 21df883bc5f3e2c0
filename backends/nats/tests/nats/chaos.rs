//! A server that is paused, killed and restarted while many clients use it, and that syncs every write.

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::linearizability::{Chaos, ChaosRun, Summary};
use archipelago_directory::Store;
use archipelago_test_servers::hurt::{Hurting, blows, hurt};

use crate::rig::{self, RealTimer, connect};

/// Proves: R208, R212, R220, R221
#[test]
fn a_server_hurt_under_load_loses_nothing_acknowledged_and_grants_nothing_twice() {
    rig::with_durable_server(async |mut server| {
        let mut config = rig::config(&server);
        config.request_timeout = PATIENCE;
        let stores: Vec<Arc<dyn Store>> = vec![connect(config.clone()).await, connect(config).await];
        let chaos = ChaosRun::prepare(Chaos::default(), stores, RealTimer::start()).await;
        let hurting = Hurting::begin(move || {
            hurt(&mut server, &blows(PATIENCE, ROUNDS));
            server
        });
        chaos.run(hurting.over()).await;
        let _server = hurting.end();
        let summary = chaos.check().await.unwrap_or_else(|error| panic!("{error}"));
        eprintln!("{summary:?}");
        let Summary { keys, answered, refused, unknown, acknowledged } = summary;
        let enough = keys > 30 && answered > 300 && refused > 5 && unknown > 5 && acknowledged > 100;
        assert!(enough, "an idle run proves nothing: {summary:?}");
    });
}

const PATIENCE: Duration = Duration::from_millis(500);
const ROUNDS: u32 = 20;
