//! What can be seen of a node from outside: metrics and traces.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use archipelago::prelude::*;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use support::{Log, Panic, Probe, SayDetached, builder, eventually, say};

/// The recorder of this process; tests may share it, so they only look at what grows.
fn snapshotter() -> &'static Snapshotter {
    static SNAPSHOTTER: OnceLock<Snapshotter> = OnceLock::new();
    SNAPSHOTTER.get_or_init(|| {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().unwrap();
        snapshotter
    })
}

/// Every metric as `name{label=value}` with its value.
fn metrics() -> Vec<(String, f64)> {
    let all = snapshotter().snapshot().into_vec();
    let read = |(key, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let labels: Vec<String> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        (format!("{}{{{}}}", key.key().name(), labels.join(",")), value)
    };
    all.into_iter().map(read).collect()
}

async fn probe_node(log: &Log) -> Node {
    let log = log.clone();
    builder().actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

/// Proves: R486
#[actix::test]
async fn queues_and_lives_are_counted_and_no_actor_is_a_label() {
    snapshotter();
    let log = Log::default();
    let node = probe_node(&log).await;
    let secret = node.actor::<Probe>("secret-key");
    let slow = secret.send(SayDetached { what: "slow".to_owned(), ms: 1_300 });
    eventually("the handler starts", || log.count("begin slow") == 1).await;
    for _ in 0..7 {
        secret.tell(say("waits")).unwrap();
    }
    let mut deepest = 0.0_f64;
    for _ in 0..150 {
        let depth = metrics().into_iter().find(|(name, _)| name == "archipelago_open_jobs{arbiter=0}");
        deepest = deepest.max(depth.map_or(0.0, |(_, depth)| depth));
        actix::clock::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(deepest >= 8.0, "eight jobs were open, {deepest} were shown");
    slow.await.unwrap();
    assert!(secret.send(Panic).await.is_err());
    node.stop().await.unwrap();
    let names: Vec<String> = metrics().into_iter().map(|(name, _)| name).collect();
    for wanted in [
        "archipelago_messages_total{kind=Probe}",
        "archipelago_activations_total{kind=Probe}",
        "archipelago_deactivations_total{kind=Probe,reason=panicked}",
        "archipelago_active_actors{kind=Probe}",
        "archipelago_pending_calls{arbiter=0}",
        "archipelago_ingress_entries{arbiter=0}",
        "archipelago_late_replies_total{arbiter=0}",
        "archipelago_running_jobs{arbiter=0}",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{wanted} is missing in {names:?}");
    }
    assert!(names.iter().all(|name| name.starts_with("archipelago_")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("secret-key")), "{names:?}");
}

fn value(wanted: &str) -> Option<f64> {
    metrics().into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
}

#[actix::test]
async fn the_session_is_shown_and_what_should_never_happen_is_shown_as_zero() {
    snapshotter();
    let node = probe_node(&Log::default()).await;
    assert_eq!(value("archipelago_duplicate_activations_total{}"), Some(0.0));
    assert_eq!(value("archipelago_stuck_arbiters_total{}"), Some(0.0));
    let remaining = || value("archipelago_session_remaining_seconds{}").unwrap_or(-1.0);
    eventually("the session is shown", || remaining() > 1.0).await;
    assert!(remaining() < 5.3, "no longer than it may serve: {}", remaining());
    node.stop().await.unwrap();
    eventually("a session that is over has nothing left", || remaining() == 0.0).await;
}

/// What a histogram was told; a look takes it out.
fn seconds(wanted: &str) -> Vec<f64> {
    let all = snapshotter().snapshot().into_vec().into_iter();
    let told =
        all.filter(|(key, ..)| key.key().name() == wanted).filter_map(|(_, _, _, value)| match value {
            DebugValue::Histogram(values) => Some(values),
            _ => None,
        });
    told.flatten().map(|value| value.into_inner()).collect()
}

/// Other tests of this process may take values out, so it is tried until some are seen.
#[actix::test]
async fn it_is_measured_how_long_activations_and_handlers_take() {
    snapshotter();
    let node = probe_node(&Log::default()).await;
    let (mut handled, mut activated) = (Vec::new(), Vec::new());
    for round in 0..100 {
        let slow = node.actor::<Probe>(format!("slow-{round}"));
        // One message of 64 is measured, and it is not known which.
        let calls = (0..64).map(|n| slow.send(SayDetached { what: n.to_string(), ms: 3 }));
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        handled.extend(seconds("archipelago_handle_seconds").into_iter().filter(|took| *took >= 0.003));
        node.actor::<Probe>(format!("quick-{round}")).send(say("hello")).await.unwrap();
        // `on_activate` of a probe sleeps for 2 ms.
        activated.extend(seconds("archipelago_activation_seconds").into_iter().filter(|took| *took >= 0.002));
        if !handled.is_empty() && !activated.is_empty() {
            break;
        }
    }
    assert!(!handled.is_empty() && handled.iter().all(|took| *took < 60.0), "{handled:?}");
    assert!(!activated.is_empty() && activated.iter().all(|took| *took < 60.0), "{activated:?}");
    node.stop().await.unwrap();
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Proves: R24, R487
#[actix::test]
async fn actor_ids_are_readable_in_traces() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _on = tracing::subscriber::set_default(subscriber);
    let node = probe_node(&Log::default()).await;
    node.actor::<Probe>("alice").send(say("hello")).await.unwrap();
    node.stop().await.unwrap();
    let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    let line =
        text.lines().find(|line| line.contains("handle{")).unwrap_or_else(|| panic!("no span in {text}"));
    assert!(line.contains("actor=default::Probe/alice") && line.contains("archipelago.Say"), "{line}");
}
