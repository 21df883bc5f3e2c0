//! All members of etcd as one: who is asked, for how long, and who is asked next.
//!
//! A request goes to the member that answered last. If it certainly was not taken there, it goes to the next, until all
//! were asked or the time is up. Invariant: every request ends by its deadline, and none is sent a second time unless the
//! first certainly was not applied.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipelago_directory::Timer;
use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use crate::endpoint::{Connection, Endpoint};
use crate::failure::Failure;

/// The members, and who is asked first.
pub(crate) struct Wires {
    pub(crate) endpoints: Vec<Endpoint>,
    preferred: AtomicUsize,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) request_timeout: Millis,
}

impl Wires {
    /// `endpoints` has at least one member.
    pub(crate) fn new(endpoints: Vec<Endpoint>, timer: Arc<dyn Timer>, request_timeout: Millis) -> Self {
        Self { endpoints, preferred: AtomicUsize::new(0), timer, request_timeout }
    }

    /// When what begins now must have ended.
    pub(crate) fn deadline(&self) -> Millis {
        self.timer.now() + self.request_timeout
    }

    /// Carries out `request` within the request timeout.
    pub(crate) async fn call<T, F>(&self, request: impl Fn(Connection) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
        T: Send,
    {
        self.call_until(self.deadline(), request).await
    }

    /// Carries out `request` before `until`.
    pub(crate) async fn call_until<T, F>(
        &self,
        until: Millis,
        request: impl Fn(Connection) -> F + Send,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
        T: Send,
    {
        let asked = AtomicUsize::new(self.preferred.load(Ordering::Relaxed));
        let deadline = self.timer.sleep(until - self.timer.now());
        let attempts = self.ask_in_turn(request, &asked);
        pin_mut!(attempts);
        match select(attempts, deadline).await {
            Either::Left((result, _)) => result,
            Either::Right(((), _)) => {
                let endpoint = self.endpoint(asked.load(Ordering::Relaxed)).address.clone();
                Err(Failure::TooLate { endpoint, within: self.request_timeout })
            }
        }
    }

    /// Asks every member once, each for at most `patience`, until one answers; else why each did not.
    pub(crate) async fn ask_everybody<T, F>(
        &self,
        patience: Millis,
        request: impl Fn(Connection) -> F + Send,
    ) -> Result<T, Vec<Failure>>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
        T: Send,
    {
        let mut failures = Vec::new();
        for n in 0..self.endpoints.len() {
            let deadline = self.timer.sleep(patience);
            let attempt = self.ask(n, &request);
            pin_mut!(attempt);
            match select(attempt, deadline).await {
                Either::Left((Ok(result), _)) => return Ok(result),
                Either::Left((Err(failure), _)) => failures.push(failure),
                Either::Right(((), _)) => {
                    let endpoint = self.endpoint(n).address.clone();
                    failures.push(Failure::TooLate { endpoint, within: patience });
                }
            }
        }
        Err(failures)
    }

    async fn ask_in_turn<T, F>(
        &self,
        request: impl Fn(Connection) -> F + Send,
        asked: &AtomicUsize,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
        T: Send,
    {
        let first = asked.load(Ordering::Relaxed);
        let mut tries = 0;
        loop {
            let n = first + tries;
            asked.store(n, Ordering::Relaxed);
            tries += 1;
            match self.ask(n, &request).await {
                Err(failure) if failure.may_go_elsewhere() && tries < self.endpoints.len() => {
                    tracing::debug!(%failure, "next member of etcd is asked");
                }
                result => return result,
            }
        }
    }

    async fn ask<T, F>(&self, n: usize, request: impl Fn(Connection) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let endpoint = self.endpoint(n);
        let sort = |error: &etcd_client::Error| Failure::sort(&endpoint.address, error);
        let connection = endpoint.connection().map_err(|error| sort(&error))?;
        let waiting =
            Waiting { wires: self, n, number: connection.number, since: self.timer.now(), over: false };
        let logged_in = connection.log_in().await;
        let result = match logged_in {
            Ok(()) => request(connection).await.map_err(|error| sort(&error)),
            Err(error) => Err(not_yet_sent(sort(&error))),
        };
        waiting.answered(&result);
        result
    }

    fn endpoint(&self, n: usize) -> &Endpoint {
        &self.endpoints[n % self.endpoints.len()]
    }
}

/// A login that failed left the request itself unsent, whatever became of the login.
fn not_yet_sent(failure: Failure) -> Failure {
    match failure {
        Failure::Broken { endpoint, cause } => Failure::NotSent { endpoint, cause },
        failure => failure,
    }
}

/// Waits for an answer. If it is dropped without one, by our deadline or by the caller's own, and had waited for long,
/// the connection may be dead without anybody having noticed.
struct Waiting<'a> {
    wires: &'a Wires,
    n: usize,
    number: u64,
    since: Millis,
    over: bool,
}

impl Waiting<'_> {
    fn answered<T>(mut self, result: &Result<T, Failure>) {
        match result {
            Ok(_) => self.wires.preferred.store(self.n % self.wires.endpoints.len(), Ordering::Relaxed),
            Err(Failure::LoginAgain { .. }) => self.wires.endpoint(self.n).doubt(self.number),
            Err(Failure::NotSent { .. } | Failure::Refused { .. } | Failure::Broken { .. }) => {
                self.prefer_next()
            }
            Err(_) => {}
        }
        self.over = true;
    }

    /// Unless somebody else has found a better one already.
    fn prefer_next(&self) {
        let count = self.wires.endpoints.len();
        let (this, next) = (self.n % count, (self.n + 1) % count);
        let _ = self.wires.preferred.compare_exchange(this, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over && self.wires.timer.now() - self.since >= DOUBT_AFTER.min(self.wires.request_timeout) {
            tracing::debug!(endpoint = self.wires.endpoint(self.n).address, "connection to etcd given up");
            self.wires.endpoint(self.n).doubt(self.number);
            self.prefer_next();
        }
    }
}

/// Silence of this length is no ordinary delay.
const DOUBT_AFTER: Millis = Millis(500);
