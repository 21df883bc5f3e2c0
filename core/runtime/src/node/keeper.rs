//! Brings a node back after it has lost its session, under a new id.
//!
//! The keeper runs beside the arbiters of the node, not on them: it waits until a life of the node is over and nothing of
//! it runs any more, then it starts the next. If a handler blocks its thread, that never comes true and the node stays
//! down: two lives of a node never run at once.

use std::pin::pin;
use std::sync::Arc;

use archipelago_protocol::peer::Backoff;
use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};

use super::spec::{Life, Spec};
use super::{Lives, NodeShared, StartError};
use crate::env::{ArbiterMain, ArbiterRole, Departure, Stay, within};
use crate::events::Event;
use crate::session::SessionState;

/// Starts the keeper of a node whose first life has begun.
pub(super) fn start(spec: Spec, first: Life) -> Result<(), StartError> {
    let (stay, departure) = Stay::begin();
    let (env, lives) = (Arc::clone(&spec.env), Arc::clone(first.node.lives()));
    let keeper = Keeper { lives: Arc::clone(&lives), spec, life: first, backoff: Backoff::default() };
    let main = ArbiterMain::among_others(move || Box::pin(keeper.keep()));
    env.start_arbiter(ArbiterRole::Keeper, main.holding(stay))?;
    lives.kept_until(departure);
    Ok(())
}

struct Keeper {
    spec: Spec,
    lives: Arc<Lives>,
    life: Life,
    backoff: Backoff,
}

/// How a life of the node ended.
enum End {
    Closed,
    Lost(String),
}

impl Keeper {
    /// Keeps the node up until it is stopped, or loses its session and may not come back.
    async fn keep(mut self) {
        loop {
            let began = self.spec.env.now();
            let End::Lost(reason) = end_of(&self.life.node).await else { return };
            if !self.spec.settings.session_rejoin || self.lives.is_stopping() {
                return self.lives.lost_for_good(reason);
            }
            if self.spec.env.now().since(began) >= Backoff::LONGEST {
                self.backoff.reset();
            }
            if !self.bring_back().await {
                return self.lives.lost_for_good(reason);
            }
        }
    }

    /// Tries until the node is back; false if it is to stop instead.
    async fn bring_back(&mut self) -> bool {
        let mut departure = self.life.departure.clone();
        while self.unless_stopped(self.gone(&departure)).await.is_some() {
            let pause = self.backoff.next(self.spec.env.random());
            tracing::info!(node = %self.life.node.id(), %pause, "the node rejoins after a pause");
            if self.unless_stopped(self.spec.env.sleep(pause)).await.is_none() {
                break;
            }
            let next = self.spec.life(&self.lives, self.life.node.remoting().ports());
            departure = next.departure.clone();
            if self.begin(next).await {
                return true;
            }
        }
        // What was begun is to end before the keeper does.
        within(&self.spec.env, STUCK_AFTER, departure.complete()).await;
        false
    }

    /// Waits until nothing of a life runs any more.
    async fn gone(&self, departure: &Departure) {
        if within(&self.spec.env, STUCK_AFTER, departure.complete()).await.is_none() {
            let node = self.life.node.id();
            tracing::error!(%node, "an arbiter does not end: the node cannot rejoin while a handler blocks it");
            departure.complete().await;
        }
    }

    /// Begins the next life; false if that failed or the node is to stop.
    async fn begin(&mut self, mut next: Life) -> bool {
        let before = self.life.node.id();
        let begun = match self.unless_stopped(next.begin()).await {
            Some(Ok(unfinished)) => unfinished,
            Some(Err(error)) => {
                tracing::warn!(node = %before, %error, "the node could not rejoin yet");
                return false;
            }
            None => return false,
        };
        if !self.lives.hand_over(&self.life.node, &next.node) {
            return false;
        }
        begun.finish();
        let now = next.node.id();
        tracing::info!(%before, %now, "the node has rejoined");
        self.spec.events.publish(Event::Rejoined { before, now });
        self.life = next;
        true
    }

    /// Waits for `work`; `None` if the node is to stop.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), pin!(self.lives.stop_wanted())).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }
}

async fn end_of(node: &NodeShared) -> End {
    match node.session().follow().find(SessionState::if_over).await {
        Some(SessionState::Lost(reason)) => End::Lost(reason),
        _ => End::Closed,
    }
}

/// How long the arbiters of a life that is over may take to end before somebody is told.
const STUCK_AFTER: Millis = Millis(5_000);
