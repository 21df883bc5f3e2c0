//! The connection to the servers: every request has a deadline, and every failure is sorted by what it can have done.
//!
//! The client reconnects by itself and keeps what was handed to it meanwhile, for ever: a request handed over while there
//! is no connection would be carried out long after its caller has gone. So [`Link`] hands nothing over without a
//! connection, and says `NotTaken`. What is handed over at the very moment of a break can still arrive later; that is
//! `NoAnswer`, and every write names what it replaces.

use std::future::Future;
use std::time::Duration;

use archipelago_protocol::contract::BoxError;
use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::jetstream::stream::Stream;
use async_nats::{Client, HeaderMap, Message, Request, Subscriber};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock::Deadline;
use crate::config::NatsConfig;
use crate::error::{ApiError, LinkError, StartError};

mod connect;
mod events;

pub(crate) use events::Breaks;
use events::Events;

/// The connection of one store.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    client: Client,
    events: Events,
    stream: Stream<()>,
    request_timeout: Duration,
}

impl Link {
    pub(crate) async fn connect(config: &NatsConfig) -> Result<Self, StartError> {
        let events = Events::default();
        let client = connect::connect(config, &events).await?;
        let mut context = async_nats::jetstream::new(client.clone());
        context.set_timeout(config.request_timeout);
        let stream = context.get_stream_no_info(config.stream.as_str()).await;
        let stream = stream.map_err(|source| StartError::NoAnswer {
            endpoints: config.endpoints(),
            source: Box::new(source),
        })?;
        Ok(Self { client, events, stream, request_timeout: config.request_timeout })
    }

    /// When a request that begins now must have ended.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.request_timeout)
    }

    /// The version of the server that is connected now.
    pub(crate) fn server_version(&self) -> (String, bool) {
        (self.client.server_info().version, self.client.is_server_compatible(2, 11, 0))
    }

    /// The longest message that the server takes, headers included.
    pub(crate) fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    pub(crate) fn has_jetstream(&self) -> bool {
        self.client.server_info().jetstream
    }

    /// The stream, as the client reads from it.
    pub(crate) const fn stream(&self) -> &Stream<()> {
        &self.stream
    }

    pub(crate) fn breaks(&self) -> Breaks {
        self.events.breaks()
    }

    /// Sends `payload` to `subject` and waits for the answer.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
        deadline: Deadline,
    ) -> Result<Message, LinkError> {
        let mut request = Request::new().payload(payload).timeout(None);
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        let answer = self.client.send_request(subject.to_owned(), request);
        self.run(subject, answer, deadline).await?.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => LinkError::NotTaken(Box::new(error)),
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                LinkError::Refused(Box::new(error))
            }
            _ => LinkError::NoAnswer(Box::new(error)),
        })
    }

    /// Asks the server's JSON interface.
    pub(crate) async fn api<T: DeserializeOwned>(
        &self,
        subject: &str,
        body: &serde_json::Value,
        deadline: Deadline,
    ) -> Result<Result<T, ApiError>, LinkError> {
        let body = Bytes::from(body.to_string());
        let answer = self.request(&format!("$JS.API.{subject}"), None, body, deadline).await?;
        decode(&answer.payload)
    }

    /// Runs one exchange with the server, from the moment there is a connection until the deadline.
    pub(crate) async fn run<F: Future>(
        &self,
        subject: &str,
        exchange: F,
        deadline: Deadline,
    ) -> Result<F::Output, LinkError> {
        self.connected(deadline).await?;
        let denied = self.events.denied(subject);
        let ended = deadline.limit(async {
            tokio::select! {
                biased;
                output = exchange => Ok(output),
                () = denied => Err(LinkError::Refused(format!("no right to use {subject}").into())),
            }
        });
        ended.await.unwrap_or_else(|| Err(LinkError::NoAnswer("no answer before the deadline".into())))
    }

    /// Sends without waiting for anything; nobody learns what becomes of it.
    pub(crate) async fn fire(&self, subject: String, headers: HeaderMap, deadline: Deadline) {
        if self.is_connected() {
            let sent = self.client.publish_with_headers(subject, headers, Bytes::new());
            drop(deadline.limit(sent).await);
        }
    }

    /// Answers a server that asks whether a subscriber still keeps up.
    pub(crate) async fn reply(&self, subject: async_nats::Subject) -> Result<(), BoxError> {
        let sent = self.deadline().limit(self.client.publish(subject, Bytes::new())).await;
        Ok(sent.ok_or("the client is stuck")??)
    }

    /// A subject of its own, and what arrives there.
    pub(crate) async fn inbox(&self, deadline: Deadline) -> Result<(String, Subscriber), LinkError> {
        let inbox = self.client.new_inbox();
        let subscribed = self.run(&inbox, self.client.subscribe(inbox.clone()), deadline).await?;
        let subscriber = subscribed.map_err(|error| LinkError::NotTaken(Box::new(error)))?;
        Ok((inbox, subscriber))
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    async fn connected(&self, deadline: Deadline) -> Result<(), LinkError> {
        while !self.is_connected() {
            if deadline.has_passed() {
                return Err(LinkError::NotTaken("not connected to any server".into()));
            }
            deadline.pause(LOOK_AGAIN).await;
        }
        Ok(())
    }
}

/// The answer of the server's JSON interface.
pub(crate) fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<Result<T, ApiError>, LinkError> {
    let parsed = serde_json::from_slice(payload).and_then(|Failed { error }| match error {
        Some(error) => Ok(Err(error)),
        None => serde_json::from_slice(payload).map(Ok),
    });
    parsed.map_err(|error| LinkError::NoAnswer(Box::new(error)))
}

#[derive(Deserialize)]
struct Failed {
    error: Option<ApiError>,
}

/// How soon a waiting request notices that the connection is back.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
