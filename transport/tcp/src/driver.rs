//! The task behind each connection: it reads and writes when nobody else does, and keeps watch over silence.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::end::End;
use crate::shared::Shared;
use crate::silence::{Silence, Verdict};

/// Drives a connection until it has ended and its socket is gone.
pub(crate) async fn drive(shared: Arc<Shared>, silence_limit: Duration) {
    let mut watch = Watch::new(silence_limit);
    let end = poll_fn(|cx| poll_drive(&shared, &mut watch, cx)).await;
    match end {
        End::ByUs(_) => {
            let _ = tokio::time::timeout(LINGER, poll_fn(|cx| poll_wind_down(&shared, cx))).await;
        }
        // The other side waits for nothing but our end.
        End::ByPeer(_) => drop(shared.lock().poll_shutdown()),
        End::Lost(_) => {}
    }
    shared.lock().drop_socket();
    shared.set_over();
}

/// The time, and what it says about the silence.
struct Watch {
    silence: Silence,
    limit: Duration,
    begin: Instant,
    ticks: Interval,
}

impl Watch {
    fn new(limit: Duration) -> Self {
        let silence = Silence::new(limit);
        let mut ticks = tokio::time::interval(silence.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { silence, limit, begin: Instant::now(), ticks }
    }

    /// Whether the time has come to look at the silence.
    fn poll_tick(&mut self, cx: &mut Context<'_>) -> bool {
        let mut ticked = false;
        while self.ticks.poll_tick(cx).is_ready() {
            ticked = true;
        }
        ticked
    }
}

/// Ready when the connection has ended.
fn poll_drive(shared: &Shared, watch: &mut Watch, cx: &mut Context<'_>) -> Poll<End> {
    let ticked = watch.poll_tick(cx);
    let mut conn = shared.lock();
    conn.bells.read.set_driver(cx.waker());
    conn.bells.write.set_driver(cx.waker());
    // Before the silence is judged: what has come may have waited while this process stood still.
    conn.pump(None);
    if conn.flush().is_ready() {
        conn.bells.write.wake_waiting();
    }
    if ticked {
        let heard = conn.take_heard();
        match watch.silence.handle(watch.begin.elapsed(), heard) {
            Verdict::Fine => {}
            Verdict::Ask => conn.ask(),
            Verdict::Gone => conn.lose(format!("nothing was heard from the peer for {:?}", watch.limit)),
        }
    }
    conn.end().map_or(Poll::Pending, |end| Poll::Ready(end.clone()))
}

fn poll_wind_down(shared: &Shared, cx: &mut Context<'_>) -> Poll<()> {
    let mut conn = shared.lock();
    conn.bells.read.set_driver(cx.waker());
    conn.bells.write.set_driver(cx.waker());
    conn.poll_wind_down()
}

/// How long a closed connection waits for the other side to take the rest.
const LINGER: Duration = Duration::from_secs(3);
