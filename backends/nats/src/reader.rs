//! Reads messages of the stream in order: an ordered consumer that breaks instead of mending itself.
//!
//! The client's own ordered consumer starts again by itself after a break, at times from the beginning. [`Reader`] never
//! does: it checks that no message of its consumer is missing, that the server is heard from, and that the connection
//! stands, and ends at the first doubt. Whoever reads knows then how far it came.

use std::time::Duration;

use archipelago_protocol::contract::BoxError;
use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::{Deadline, Moment};
use crate::error::LinkError;
use crate::link::{Breaks, Link};
use crate::message::Stored;

/// Where a reader begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// With the newest message of every subject.
    Newest,
    /// With the first message at or after this sequence.
    Sequence(u64),
}

/// One message, and where it was.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) subject: String,
    pub(crate) stored: Stored,
    /// When the server stored it, by its own clock.
    pub(crate) at: Duration,
}

/// The messages of some subjects, in order.
pub(crate) struct Reader {
    link: Link,
    messages: Subscriber,
    breaks: Breaks,
    /// How many messages the consumer has delivered.
    delivered: u64,
    heard: Moment,
    pulse: Pulse,
}

/// How often the server is heard from at least, and how long it may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    pub(crate) every: Duration,
    pub(crate) silence: Duration,
}

impl Pulse {
    /// Deletes are remembered for `remembered`: a reader that was out of touch for a good part of it may have missed one.
    pub(crate) fn new(remembered: Duration) -> Self {
        let every = (remembered / 12).clamp(Duration::from_millis(500), Duration::from_secs(5));
        Self { every, silence: every * 3 }
    }
}

impl Reader {
    pub(crate) async fn open(
        link: &Link,
        stream: &str,
        subjects: &[String],
        from: From,
        pulse: Pulse,
        deadline: Deadline,
    ) -> Result<Self, LinkError> {
        let breaks = link.breaks();
        let (inbox, messages) = link.inbox(deadline).await?;
        let name = inbox.rsplit('.').next().unwrap_or(&inbox);
        let body = json!({ "stream_name": stream, "action": "create", "config": consumer(name, &inbox, subjects, from, pulse) });
        let created = link.api::<Value>(&format!("CONSUMER.CREATE.{stream}.{name}"), &body, deadline).await?;
        created.map_err(|error| LinkError::NotTaken(Box::new(error)))?;
        Ok(Self { link: link.clone(), messages, breaks, delivered: 0, heard: Moment::now(), pulse })
    }

    /// The next message. After an error there is nothing more to read.
    pub(crate) async fn next(&mut self) -> Result<Delivered, LinkError> {
        loop {
            let message = self.receive().await.map_err(LinkError::NotTaken)?;
            if message.status.is_none() {
                return self.take(message).map_err(LinkError::NotTaken);
            }
            self.on_status(message).await.map_err(LinkError::NotTaken)?;
        }
    }

    async fn receive(&mut self) -> Result<Message, BoxError> {
        let silence = Deadline::after(self.pulse.silence);
        let received = tokio::select! {
            biased;
            () = self.breaks.next() => return Err("the connection broke".into()),
            received = silence.limit(self.messages.next()) => received,
        };
        // Measured again on a clock that counts suspend: the process itself may have been away.
        let away = self.heard.elapsed() > self.pulse.silence;
        self.heard = Moment::now();
        match received {
            Some(Some(message)) if !away => Ok(message),
            Some(None) => Err("the subscription ended".into()),
            Some(Some(_)) | None => Err("the server was not heard from for too long".into()),
        }
    }

    fn take(&mut self, message: Message) -> Result<Delivered, BoxError> {
        let reply = message.reply.as_deref().unwrap_or_default();
        let place = Place::parse(reply).ok_or("a message does not say where it was")?;
        self.delivered += 1;
        if place.delivered != self.delivered {
            return Err("messages are missing".into());
        }
        let stored = Stored::new(place.seq, message.headers.as_ref(), message.payload);
        Ok(Delivered { subject: message.subject.to_string(), stored, at: place.at })
    }

    /// A sign of life, which also tells how much should have arrived; or the question whether we keep up.
    async fn on_status(&mut self, message: Message) -> Result<(), BoxError> {
        if message.status != Some(StatusCode::IDLE_HEARTBEAT) {
            return Err(format!("the server ended the reading: {:?}", message.description).into());
        }
        let header = |name: &str| message.headers.as_ref().and_then(|headers| headers.get(name)).cloned();
        let last = header("Nats-Last-Consumer").and_then(|value| value.as_str().parse::<u64>().ok());
        if last.is_some_and(|last| last != self.delivered) {
            return Err("messages are missing".into());
        }
        let stalled = header("Nats-Consumer-Stalled").map(|value| value.as_str().into());
        match message.reply.or(stalled) {
            Some(subject) => self.link.reply(subject).await,
            None => Ok(()),
        }
    }
}

fn consumer(name: &str, inbox: &str, subjects: &[String], from: From, pulse: Pulse) -> Value {
    let mut config = json!({
        "name": name,
        "deliver_subject": inbox,
        "filter_subjects": subjects,
        "ack_policy": "none",
        "max_deliver": 1,
        "replay_policy": "instant",
        "flow_control": true,
        "idle_heartbeat": nanos(pulse.every),
        "inactive_threshold": nanos(FORGOTTEN_AFTER),
        "mem_storage": true,
        "num_replicas": 1,
    });
    match from {
        From::Newest => config["deliver_policy"] = json!("last_per_subject"),
        From::Sequence(first) => {
            config["deliver_policy"] = json!("by_start_sequence");
            config["opt_start_seq"] = json!(first);
        }
    }
    config
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// What the reply subject of a delivered message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Place {
    seq: u64,
    delivered: u64,
    at: Duration,
}

impl Place {
    /// `$JS.ACK.{stream}.{consumer}.{times}.{seq}.{delivered}.{nanoseconds}.{pending}`, or with domain and account hash
    /// before the stream and perhaps something at the end.
    fn parse(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let tokens = match tokens.len() {
            7 => &tokens[..],
            9.. => &tokens[2..],
            _ => return None,
        };
        let at = Duration::from_nanos(tokens[5].parse().ok()?);
        Some(Self { seq: tokens[3].parse().ok()?, delivered: tokens[4].parse().ok()?, at })
    }
}

/// After how long without us the server removes the consumer.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_reply_subject_are_understood() {
        let place = Some(Place { seq: 42, delivered: 7, at: Duration::from_nanos(99) });
        assert_eq!(Place::parse("$JS.ACK.S.C.1.42.7.99.3"), place);
        assert_eq!(Place::parse("$JS.ACK.hub.hash.S.C.1.42.7.99.3"), place);
        assert_eq!(Place::parse("$JS.ACK._.hash.S.C.1.42.7.99.3.random"), place);
        for other in ["", "$JS.ACK.S.C.1.42.7.99", "$JS.FC.S.C.1.42.7.99.3", "$JS.ACK.S.C.1.x.7.99.3"] {
            assert_eq!(Place::parse(other), None, "{other}");
        }
    }
}
