//! A process that counts into another recorder already. A program of its own, because the recorder is that of the process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

#[path = "http/support.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod support;

use archipelago_admin::{MetricsError, install_metrics};
use support::{builder, code, get, node};

#[actix::test]
async fn whoever_has_installed_another_recorder_keeps_it() {
    metrics::set_global_recorder(metrics::NoopRecorder).unwrap();
    for _ in 0..2 {
        let refused = install_metrics();
        assert!(matches!(refused, Err(MetricsError::Taken)), "{refused:?}");
    }
    let error =
        builder(&Default::default(), &[("admin.metrics", "true")]).start().await.unwrap_err().to_string();
    assert!(error.contains("admin.metrics") && error.contains("another recorder"), "{error}");
    let node = node().await;
    assert_eq!(code(&get(&node, "/metrics").await), (503, "no_recorder"));
    node.stop().await.unwrap();
}
