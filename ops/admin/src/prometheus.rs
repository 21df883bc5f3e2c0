//! The metrics of the process as text for Prometheus.
//!
//! A process has one recorder. [`install_metrics`] makes it ours, once, and a thread of its own sees to it that what histograms were
//! told does not pile up between scrapes. What is counted and what it says is described by the library
//! ([`describe_metrics`]); nothing of that is decided here.
//!
//! Invariant: whoever has installed another recorder keeps it.

use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use archipelago_runtime::{MESSAGE_BOUNDS, describe_metrics};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::gate;
use crate::host;
use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::Answer;

/// The metrics cannot be shown to Prometheus. Nothing was installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The process counts into another recorder, which cannot be replaced. Leave out one of the two.
    #[error("the process counts into another recorder of metrics already")]
    Taken,
    /// The machine gave no thread.
    #[error("no thread can be started that looks after the metrics")]
    NoThread {
        /// Why.
        source: io::Error,
    },
}

/// What was installed.
struct Installed {
    handle: PrometheusHandle,
    /// The thread ends with it.
    _upkeep: SyncSender<()>,
}

/// That of this process.
static INSTALLED: Mutex<Option<Installed>> = Mutex::new(None);

/// Makes the process count into a recorder that `/metrics` of the admin API shows. Call it before the first node starts: what was
/// counted earlier is lost. Nothing happens if it was called before.
///
/// # Errors
///
/// [`MetricsError`]; the process counts as it did before.
pub fn install_metrics() -> Result<(), MetricsError> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if installed.is_some() {
        return Ok(());
    }
    let recorder = recorder();
    let handle = recorder.handle();
    let upkeep = handle.clone();
    // It ends at once if the recorder cannot be installed.
    let _upkeep = host::every(UPKEEP, "metrics-upkeep", move || upkeep.run_upkeep())
        .map_err(|source| MetricsError::NoThread { source })?;
    metrics::set_global_recorder(recorder).map_err(|_| MetricsError::Taken)?;
    describe_metrics();
    *installed = Some(Installed { handle, _upkeep });
    Ok(())
}

fn recorder() -> PrometheusRecorder {
    let bounds = MESSAGE_BOUNDS.map(|bound| bound.as_secs_f64());
    let builder = PrometheusBuilder::new();
    let builder = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &bounds);
    builder.expect("there are bounds").build_recorder()
}

/// The metrics as they are now. It has a rate of its own: whoever asks too much of the API does not blind those who watch the node.
pub(crate) async fn scrape(admin: web::Data<Admin>, request: HttpRequest) -> Answer {
    gate::may_scrape(&admin.node, &admin.state, &request)?;
    let handle = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = handle.as_ref().map(|installed| installed.handle.clone()).ok_or_else(no_recorder)?;
    let no_store = (header::CACHE_CONTROL, "no-store");
    Ok(HttpResponse::Ok().content_type(TEXT).insert_header(no_store).body(handle.render()))
}

fn no_recorder() -> Refusal {
    let message = "the process does not count for Prometheus: set admin.metrics, or call install_metrics before the \
                   first node starts; it fails if the process counts into another recorder";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "no_recorder", message)
}

/// What the exporter writes.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How often histograms take in what they were told.
const UPKEEP: Duration = Duration::from_secs(5);
