//! What can be seen of a node's connections in its metrics. One test, because the recorder is that of the process.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and looks again and again"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use archipelago_embedded::EmbeddedStore;
use archipelago_process_tests::{
    CONTROL, Echo, Forward, Host, Mirror, Note, Orders, Papers, Road, Scribe, Sleep, Stranger, greet, hello,
    node, settings,
};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::link::Frame;
use archipelago_protocol::peer::Handshake;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{CallOptions, Node};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The last value of every metric.
#[derive(Clone, Default)]
struct Meters {
    counters: Arc<Mutex<HashMap<Key, Arc<AtomicU64>>>>,
    gauges: Arc<Mutex<HashMap<Key, Arc<AtomicU64>>>>,
}

impl Recorder for Meters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(key.clone()).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(key.clone()).or_default()))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

impl Meters {
    fn install() -> Self {
        let meters = Self::default();
        metrics::set_global_recorder(meters.clone()).map_err(|error| error.to_string()).unwrap();
        meters
    }

    /// The sum over all labels; none if nothing of this name was ever said.
    fn read(&self, name: &str) -> Option<f64> {
        let sum = |of: &Mutex<HashMap<Key, Arc<AtomicU64>>>, shown: fn(u64) -> f64| {
            let of = of.lock().unwrap();
            let named = of.iter().filter(|(key, _)| key.name() == name);
            named.map(|(_, value)| shown(value.load(Ordering::Relaxed))).reduce(|one, other| one + other)
        };
        sum(&self.counters, |count| count as f64).or_else(|| sum(&self.gauges, f64::from_bits))
    }

    async fn until(&self, name: &str, holds: impl Fn(f64) -> bool) {
        let since = Instant::now();
        let mut seen = self.read(name);
        while !seen.is_some_and(&holds) {
            assert!(since.elapsed() < Duration::from_secs(30), "{name} is {seen:?}");
            actix::clock::sleep(Duration::from_millis(2)).await;
            seen = self.read(name);
        }
    }
}

/// The scribes are at `host`; nobody has the mirrors.
async fn caller(host: NodeAddress) -> Node {
    let mut settings = settings();
    settings.remote.placed = BTreeMap::from([("Scribe".to_owned(), host)]);
    // Long enough to be seen waiting.
    settings.remote.tell_ttl = Millis(2_000);
    let node = node(&Arc::new(EmbeddedStore::default())).settings(settings);
    node.remote_actor::<Scribe>().remote_actor::<Mirror>().start().await.unwrap()
}

fn within(seconds: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(seconds))
}

#[actix::test]
async fn connections_and_what_waits_for_them_can_be_seen() {
    let meters = Meters::install();
    let orders = Orders { road: Road::Tcp, papers: Papers::new(), namespace: "default".to_owned() };
    let mut host = Host::start(env!("CARGO_BIN_EXE_archipelago-test-host"), &orders);
    let node = caller(host.address.clone()).await;
    let scribe = node.actor::<Scribe>("a");
    scribe.send_with(Echo(vec![1]), within(10)).await.unwrap();
    meters.until("archipelago_connections", |connections| connections >= 1.0).await;

    let to = scribe.message_ref::<Note>();
    let nowhere = node.actor::<Mirror>("m").send_with(Forward { to, note: 1 }, within(20));
    meters.until("archipelago_parked_messages", |parked| parked >= 1.0).await;
    drop(nowhere);
    meters.until("archipelago_parked_messages", |parked| parked == 0.0).await;

    let slow = scribe.send_with(Sleep(60_000), within(60));
    meters.until("archipelago_lane_calls", |calls| calls >= 1.0).await;
    host.kill();
    assert!(slow.await.is_err());
    meters.until("archipelago_lane_calls", |calls| calls == 0.0).await;
    meters.until("archipelago_connections", |connections| connections == 0.0).await;

    // Nobody is there any more to take it.
    scribe.tell(Note(2)).unwrap();
    meters.until("archipelago_lane_bytes", |bytes| bytes > 0.0).await;
    meters.until("archipelago_remote_dead_letters_total", |letters| letters >= 1.0).await;
    meters.until("archipelago_lane_bytes", |bytes| bytes == 0.0).await;
    strangers(&meters, node.address().port()).await;
    node.stop().await.unwrap();
}

/// One that is refused, and one that is let in and breaks the protocol.
async fn strangers(meters: &Meters, port: u16) {
    let refused = std::thread::spawn(move || greet(port, hello(7, "another", 0, CONTROL), 4_096).1);
    meters.until("archipelago_peers_refused_total", |refused| refused == 1.0).await;
    assert!(matches!(refused.join().unwrap(), Handshake::Refusal(_)));
    // Dials that failed meanwhile have changed nothing: this one connection is seen.
    let (came, mut met) = futures_channel::oneshot::channel();
    std::thread::spawn(move || came.send(Stranger::meet(port, 1)).ok());
    meters.until("archipelago_connections", |connections| connections >= 1.0).await;
    let mut stranger = loop {
        match met.try_recv().unwrap() {
            Some(stranger) => break stranger,
            None => actix::clock::sleep(Duration::from_millis(2)).await,
        }
    };
    let broken = std::thread::spawn(move || {
        stranger.say(&Frame::LargeHere { transfer: 1, call: None });
        stranger.stream(1, 3, &[99, 0, 0]);
        stranger.last_words()
    });
    meters.until("archipelago_protocol_errors_total", |errors| errors == 1.0).await;
    meters.until("archipelago_connections", |connections| connections == 0.0).await;
    assert!(broken.join().unwrap().is_some(), "the peer is told why");
}
