//! Places that a sweep must have reached: a test that never meets its difficulty proves nothing.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static FIRED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes that a named place was reached in this run. The name must be one of [`POINTS`](crate::POINTS).
#[macro_export]
macro_rules! sometimes {
    ($name:literal) => {{
        const {
            assert!($crate::is_point($name), "the name is not listed in POINTS");
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

/// True if `name` is one of [`POINTS`].
#[doc(hidden)]
pub const fn is_point(name: &str) -> bool {
    let mut index = 0;
    while index < POINTS.len() {
        if equal(POINTS[index].as_bytes(), name.as_bytes()) {
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

/// Every place that a sweep must have reached.
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
