#![expect(clippy::disallowed_methods, reason = "what is tested is calls that change their thread")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

use super::*;
use crate::call::Call;

/// Notes that it was woken, and wakes a thread.
struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn bell() -> (Arc<Bell>, Waker) {
    let bell = Arc::new(Bell { rung: AtomicBool::new(false), thread: thread::current() });
    (Arc::clone(&bell), Waker::from(bell))
}

fn call() -> (NearSender, Call<u64>) {
    let (sender, answer) = near_channel();
    (sender, Call::near(answer))
}

fn poll(call: &mut Call<u64>, waker: &Waker) -> Poll<Answer<u64>> {
    Pin::new(call).poll(&mut Context::from_waker(waker))
}

/// Awaits a call on a thread of its own.
fn await_elsewhere(call: Call<u64>) -> thread::JoinHandle<Answer<u64>> {
    thread::spawn(move || {
        let (_, waker) = bell();
        let mut call = call;
        loop {
            if let Poll::Ready(answer) = poll(&mut call, &waker) {
                return answer;
            }
            thread::park_timeout(Duration::from_secs(10));
        }
    })
}

/// Runs the errands of this thread until `done`.
fn attend_until(attendance: &Attendance, mut done: impl FnMut() -> bool) {
    let (_, waker) = bell();
    attendance.set_main(&waker);
    for _ in 0..1_000 {
        attendance.run();
        if done() {
            return;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    panic!("nobody came");
}

fn reply(answer: u64) -> Delivery {
    let answer: Answer<u64> = Ok(answer);
    Delivery::Boxed(Box::new(answer))
}

#[test]
fn an_answer_wakes_its_caller_and_comes_once() {
    let (sender, mut call) = call();
    let (bell, waker) = bell();
    assert!(poll(&mut call, &waker).is_pending());
    assert!(!sender.is_closed());
    sender.send(reply(7));
    assert!(bell.rung.load(Ordering::SeqCst));
    assert_eq!(poll(&mut call, &waker), Poll::Ready(Ok(7)));
}

#[test]
fn only_the_last_waker_is_woken() {
    let (sender, mut call) = call();
    let ((first, first_waker), (last, last_waker)) = (bell(), bell());
    assert!(poll(&mut call, &first_waker).is_pending());
    assert!(poll(&mut call, &last_waker).is_pending());
    sender.send(reply(7));
    assert!(last.rung.load(Ordering::SeqCst) && !first.rung.load(Ordering::SeqCst));
}

#[test]
fn a_lost_job_ends_its_call() {
    let (sender, mut call) = call();
    drop(sender);
    assert_eq!(poll(&mut call, Waker::noop()), Poll::Ready(Err(CallError::Stopped)));
}

#[test]
fn a_late_answer_cannot_reach_the_call_that_took_the_place() {
    let (old_sender, old) = call();
    drop(old);
    assert!(old_sender.is_closed());
    let (sender, mut new) = call();
    assert_eq!(sender.entry.place(), old_sender.entry.place(), "the place is used again");
    old_sender.send(reply(1));
    assert!(poll(&mut new, Waker::noop()).is_pending());
    sender.send(reply(2));
    assert_eq!(poll(&mut new, Waker::noop()), Poll::Ready(Ok(2)));
}

#[test]
fn an_answer_may_hold_the_end_of_another_call() {
    let (outer_sender, outer) = call();
    let (inner_sender, inner) = call();
    outer_sender.send(Delivery::Boxed(Box::new(inner)));
    drop(outer);
    assert!(inner_sender.is_closed());
}

#[test]
fn a_call_that_moved_gets_an_answer_that_comes_later() {
    let attendance = Attendance::begin(Waker::noop());
    let (sender, mut call) = call();
    assert!(poll(&mut call, Waker::noop()).is_pending());
    let elsewhere = await_elsewhere(call);
    attend_until(&attendance, || HERE.with(|here| here.is_awaited_elsewhere(sender.entry)));
    assert!(!sender.is_closed());
    sender.send(reply(7));
    assert_eq!(elsewhere.join().unwrap(), Ok(7));
}

#[test]
fn a_call_that_moved_gets_an_answer_that_came_before() {
    let attendance = Attendance::begin(Waker::noop());
    let (sender, call) = call();
    sender.send(reply(7));
    let elsewhere = await_elsewhere(call);
    attend_until(&attendance, || elsewhere.is_finished());
    assert_eq!(elsewhere.join().unwrap(), Ok(7));
}

#[test]
fn a_call_dropped_on_another_thread_is_cancelled() {
    let attendance = Attendance::begin(Waker::noop());
    let (sender, call) = call();
    thread::spawn(move || drop(call)).join().unwrap();
    attend_until(&attendance, || sender.is_closed());
}

#[test]
fn a_call_that_moved_ends_when_nobody_attends_to_its_thread() {
    let (sender, call) = call();
    assert_eq!(await_elsewhere(call).join().unwrap(), Err(CallError::Stopped));
    drop(sender);
}
