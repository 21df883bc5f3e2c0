//! Places that a sweep must have reached: a test that never meets its difficulty proves nothing.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static FIRED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes that a named place was reached in this run.
///
/// A test names the places that its seeds must come to in a constant list, and gives that list to
/// [`for_each_seed_reaching`](crate::for_each_seed_reaching). A name that is not in the list does not compile. Actors may note
/// places as well as scripts.
///
/// ```
/// use archipelago_sim::sometimes;
///
/// const PLACES: [&str; 2] = ["the guard slept", "the guard woke up"];
///
/// sometimes!(PLACES, "the guard slept");
/// ```
///
/// ```compile_fail
/// # const PLACES: [&str; 2] = ["the guard slept", "the guard woke up"];
/// archipelago_sim::sometimes!(PLACES, "the guard sleeps");
/// ```
///
/// Without a list the name must be one of the project's own workloads: of [`POINTS`](crate::POINTS),
/// [`REMOTE_POINTS`](crate::REMOTE_POINTS), [`CLUSTER_POINTS`](crate::CLUSTER_POINTS),
/// [`HANDOFF_POINTS`](crate::HANDOFF_POINTS) or [`DATACENTER_POINTS`](crate::DATACENTER_POINTS).
#[macro_export]
macro_rules! sometimes {
    ($name:literal) => {{
        const {
            assert!($crate::is_point($name), "the name is listed nowhere");
        }
        $crate::note_point($name);
    }};
    ($points:expr, $name:literal) => {{
        const {
            assert!($crate::is_listed(&$points, $name), "the name is not in the list");
        }
        $crate::note_point($name);
    }};
}

/// Notes that `name` was reached. Use [`sometimes!`].
#[doc(hidden)]
pub fn note_point(name: &'static str) {
    FIRED.with_borrow_mut(|fired| fired.insert(name));
}

/// Takes what was reached on this thread since the last time.
pub(crate) fn take_fired() -> BTreeSet<&'static str> {
    FIRED.take()
}

/// True if `name` is one of the project's own. Use [`sometimes!`].
#[doc(hidden)]
pub const fn is_point(name: &str) -> bool {
    is_listed(&POINTS, name)
        || is_listed(&REMOTE_POINTS, name)
        || is_listed(&CLUSTER_POINTS, name)
        || is_listed(&HANDOFF_POINTS, name)
        || is_listed(&DATACENTER_POINTS, name)
}

/// True if `name` is one of `points`. Use [`sometimes!`].
#[doc(hidden)]
pub const fn is_listed(points: &[&str], name: &str) -> bool {
    let mut index = 0;
    while index < points.len() {
        if equal(points[index].as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Every place that a sweep of one node must have reached.
pub const POINTS: [&str; 31] = [
    "activation failed",
    "activation panicked",
    "activation timed out",
    "actor passivated",
    "actor stopped itself",
    "call cancelled before it started",
    "call cancelled while it ran",
    "call cycle refused",
    "call table full",
    "deactivation requested",
    "detached handler outlived its actor",
    "detached handler panicked",
    "farewell given up",
    "handler panicked",
    "inbox full",
    "ingress full",
    "late write applied",
    "message sent during activation",
    "message sent during farewell",
    "nested call answered",
    "node crashed",
    "node paused",
    "node stopped under traffic",
    "session lost",
    "tell became a dead letter",
    "timeout after the handler started",
    "timeout before the handler started",
    "transfer refunded",
    "transfer settled",
    "zombie refused work",
    "zombie woke up",
];

/// Every place that a sweep of several nodes must have reached.
pub const REMOTE_POINTS: [&str; 17] = [
    "call cycle across nodes found",
    "cancel reached the receiver before start",
    "connection lost with calls in flight",
    "dial race resolved",
    "kind moved to another node",
    "lane full",
    "large message beside small ones",
    "large reply arrived",
    "message returned and resent",
    "nested call across nodes answered",
    "node crashed under remote traffic",
    "node rejoined under remote traffic",
    "ref in a message used",
    "remote dead letter",
    "session lost under remote traffic",
    "unsent calls survived a reconnect",
    "window full",
];

/// Every place that a sweep of a cluster must have reached.
pub const CLUSTER_POINTS: [&str; 29] = [
    "activation held up",
    "answer to a beat lost",
    "answer to a claim lost",
    "clock changed its rate",
    "coordinator crashed",
    "coordinator ordered a move",
    "dials failed under load",
    "group split off under load",
    "late write applied to a cluster",
    "live lease lost by the store",
    "known place followed to its change",
    "known place given up",
    "message returned by a leaving node",
    "node isolated under load",
    "node killed as it left",
    "node killed at its start",
    "node left under load",
    "node suspected and cleared",
    "node woke up after its session",
    "race for a shard lost",
    "session ended by a monitor",
    "session lost under load",
    "session revoked",
    "shard placed by request of another node",
    "shard taken over after a crash",
    "single actor given up",
    "store slow and then away",
    "watch broken",
    "ways slow under load",
];

/// Every place that a sweep with shards that move must have reached.
pub const HANDOFF_POINTS: [&str; 12] = [
    "coordinator crashed",
    "coordinator ordered a move",
    "node crashed while a shard of it moved",
    "node left under load",
    "order refused",
    "shard moved under load",
    "shard stayed",
    "shard stayed and was ordered again",
    "state held up on its way",
    "state taken along",
    "state taken back",
    "target crashed while a shard came",
];

/// Every place that a sweep of several datacenters must have reached.
pub const DATACENTER_POINTS: [&str; 6] = [
    "actor asked from another datacenter",
    "call refused because nobody could say",
    "datacenter cut off under load",
    "home records out of reach",
    "node of a datacenter crashed",
    "shard moved in a datacenter",
];
