//! Runs one rule on one testbed, with a time limit that nothing escapes.
#![expect(
    clippy::disallowed_methods,
    reason = "a rule that never yields can only be given up by another thread"
)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use futures_core::future::LocalBoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::rules;
use crate::testbed::Testbed;
use crate::time::in_time;

/// A rule: panics if the transport breaks it.
pub type Rule = for<'a> fn(&'a dyn Testbed) -> LocalBoxFuture<'a, ()>;

/// Which clock a transport lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The one on the wall.
    Real,
    /// Tokio's paused clock: it jumps to the next timer when nothing is left to do.
    Virtual,
}

/// Every rule, by name.
pub const RULES: &[(&str, Rule)] = &[
    ("lane_keeps_order", |bed| Box::pin(rules::lane_keeps_order(bed))),
    ("at_most_once", |bed| Box::pin(rules::at_most_once(bed))),
    ("peer_is_proven", |bed| Box::pin(rules::peer_is_proven(bed))),
    ("dials_again", |bed| Box::pin(rules::dials_again(bed))),
    ("close_says_why", |bed| Box::pin(rules::close_says_why(bed))),
    ("full_means_wait", |bed| Box::pin(rules::full_means_wait(bed))),
    ("silence_is_noticed", |bed| Box::pin(rules::silence_is_noticed(bed))),
    ("streams_stand_beside", |bed| Box::pin(rules::streams_stand_beside(bed))),
    ("garbage_is_refused", |bed| Box::pin(rules::garbage_is_refused(bed))),
    ("slow_dialers_block_nobody", |bed| Box::pin(rules::slow_dialers_block_nobody(bed))),
    ("cancel_safe", |bed| Box::pin(rules::cancel_safe(bed))),
    ("messages_of_every_size", |bed| Box::pin(rules::messages_of_every_size(bed))),
    ("large_stream", |bed| Box::pin(rules::large_stream(bed))),
];

/// How long a rule may take.
pub const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Tries the rule of this name on the testbed that `bed` makes.
///
/// # Panics
///
/// If the rule is broken or takes too long.
pub fn run<B: Testbed>(clock: Clock, rule: &'static str, bed: impl FnOnce() -> B + Send + 'static) {
    if let Err(why) = outcome(clock, rule, bed) {
        panic!("{rule}: {why}");
    }
}

/// Tries the rule of this name on the testbed that `bed` makes, and says how it was broken.
///
/// # Errors
///
/// What the rule said when it was broken, or that it took too long.
///
/// # Panics
///
/// If there is no rule of this name.
pub fn outcome<B: Testbed>(
    clock: Clock,
    rule: &'static str,
    bed: impl FnOnce() -> B + Send + 'static,
) -> Result<(), String> {
    let (_, check) = *RULES.iter().find(|(name, _)| *name == rule).expect("a rule of this name");
    let (tell, told) = mpsc::channel();
    // Not joined: if the rule spins, its thread is left behind.
    std::thread::spawn(move || {
        let end = catch_unwind(AssertUnwindSafe(|| check_on_this_thread(clock, check, bed)));
        // Nobody listens any more if the time was up.
        let _ = tell.send(end.unwrap_or_else(|panic| Err(text_of(&*panic))));
    });
    told.recv_timeout(TIME_LIMIT + GRACE).unwrap_or_else(|_| Err("never came to an end".to_owned()))
}

fn check_on_this_thread<B: Testbed>(
    clock: Clock,
    check: Rule,
    bed: impl FnOnce() -> B,
) -> Result<(), String> {
    let runtime = runtime(clock);
    LocalSet::new().block_on(&runtime, async {
        let bed = bed();
        in_time(TIME_LIMIT, check(&bed)).await.ok_or_else(|| format!("not done within {TIME_LIMIT:?}"))
    })
}

fn runtime(clock: Clock) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(clock == Clock::Virtual);
    builder.build().expect("a runtime")
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked without a word").to_owned()
}

/// Beyond the time limit inside, for a rule that does not yield.
const GRACE: Duration = Duration::from_secs(10);
