//! The rules of the transport contract as tests that run on every transport.
//!
//! The author of a transport writes a [`Testbed`] and hands an expression that makes one to the macro:
//!
//! ```text
//! archipelago_transport_conformance::transport_conformance!(TcpTestbed::new());
//! ```
//!
//! That makes one `#[test]` per rule of [`Transport`](archipelago_protocol::contract::Transport), each named like its
//! rule. Each runs on a thread of its own, in a current-thread runtime
//! with a `LocalSet`, and has a time limit: a rule that hangs fails with its name. The expression is evaluated once per
//! rule, inside that runtime. A transport that lives on tokio's clock alone says
//! `transport_conformance!(Clock::Virtual, MemoryTestbed::new())` and waits for nothing.
//!
//! [`TcpCable`], [`UdpCable`] and [`TcpMute`] are ready for transports on loopback. A rule that a transport cannot have is
//! declared by its testbed and turns into its opposite; no rule is skipped.
//!
//! This crate is for tests, so it panics where a library would answer an error.

mod cable;
mod io;
mod mute;
mod party;
mod pattern;
pub mod rules;
mod runner;
mod testbed;
mod time;

pub use cable::{TcpCable, UdpCable};
pub use io::{finish, recv_exact, recv_some, recv_until, recv_until_end, send_all};
pub use mute::TcpMute;
pub use party::{Party, accept_good, connect};
pub use pattern::{Pattern, uneven};
pub use runner::{Clock, RULES, Rule, TIME_LIMIT, outcome, run};
pub use testbed::{Cable, Cut, Mute, Testbed};
pub use time::{stays_pending, within};

/// Makes one test per rule of the transport contract, each named like its rule.
///
/// Takes an expression that makes a [`Testbed`], and before it a [`Clock`] if it is not the real one.
#[macro_export]
macro_rules! transport_conformance {
    ($bed:expr) => {
        $crate::transport_conformance!($crate::Clock::Real, $bed);
    };
    ($clock:expr, $bed:expr) => {
        $crate::__transport_rules! { $clock, $bed;
            lane_keeps_order, at_most_once, peer_is_proven, dials_again, close_says_why, full_means_wait,
            silence_is_noticed, streams_stand_beside, garbage_is_refused, slow_dialers_block_nobody, cancel_safe,
            messages_of_every_size, large_stream,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __transport_rules {
    ($clock:expr, $bed:expr; $($rule:ident),+ $(,)?) => {
        mod transport_conformance {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $rule() {
                    $crate::run($clock, stringify!($rule), || $bed);
                }
            )+
        }
    };
}
