//! The stream that holds the records: made, checked, and refused if it would break a promise.
//!
//! Versions are sequences of the stream plus an offset, so they must never be given twice. A stream that is created begins
//! with the wall time in microseconds as its first sequence: above whatever an earlier stream of that name has reached,
//! unless it wrote more than once per microsecond all its life. One that was restored from a backup goes on below what
//! it had reached; a node that notices writes that down in the stream, and no node starts until an operator has raised
//! the offset with [`raise_base`].

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use async_nats::datetime::parse_rfc3339;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::{Deadline, wall_micros};
use crate::config::{NatsConfig, SHORTEST_HISTORY};
use crate::error::{ApiError, LinkError, StartError};
use crate::link::Link;
use crate::message::{Stored, StoredKind};
use crate::subject::Subjects;

/// What a store knows about its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// Added to a sequence, it gives the version.
    pub(crate) offset: u64,
    /// How long the stream still grants nothing, because it is new.
    pub(crate) quiet: Duration,
    /// How long the stream remembers what was deleted.
    pub(crate) remembered: Duration,
    /// The last sequence.
    pub(crate) last: u64,
}

/// Raises the versions of a stream above all that were ever given, after it was restored from a backup or made by
/// somebody else. Only with all nodes stopped; answers the version that the next write exceeds.
///
/// # Errors
///
/// As [`NatsStore::connect`](crate::NatsStore::connect), except that the stream need not be in order.
pub async fn raise_base(config: &NatsConfig) -> Result<u64, StartError> {
    let opened = Opened::connect(config).await?;
    let info = opened.info().await?.ok_or_else(|| opened.missing())?;
    let highest = opened.seen_before_set_back().await?.unwrap_or_default();
    let reached = info.offset().unwrap_or_default().saturating_add(info.state.last_seq);
    let target = wall_micros().max(highest).max(reached) + 1;
    let mut wanted = info.config.clone();
    wanted.metadata.insert(OFFSET.to_owned(), (target - info.state.last_seq).to_string());
    wanted.metadata.insert(RAISED.to_owned(), target.to_string());
    opened
        .ask("UPDATE", "to update", &json!(wanted))
        .await?
        .map_err(|error| opened.refused("to update", error))?;
    Ok(target)
}

/// Makes sure that there is a stream, and that it keeps what a store promises.
pub(crate) async fn open(config: &NatsConfig) -> Result<(Link, Base), StartError> {
    let opened = Opened::connect(config).await?;
    let info = match opened.info().await? {
        Some(info) => info,
        None => opened.create().await?,
    };
    let unsuitable = |why: String| StartError::Unsuitable { stream: config.stream.to_string(), why };
    check(&info.config, config).map_err(unsuitable)?;
    let offset = info.offset().ok_or_else(|| {
        unsuitable(
            "it was not made by archipelago, so its versions may have been given before: raise its base"
                .into(),
        )
    })?;
    if let Some(highest) = opened.seen_before_set_back().await?.filter(|highest| *highest > info.raised()) {
        return Err(StartError::SetBack { stream: config.stream.to_string(), highest });
    }
    let quiet = config.settle.saturating_sub(info.age());
    let remembered = info.config.subject_delete_marker_ttl.unwrap_or_default();
    Ok((opened.link, Base { offset, quiet, remembered, last: info.state.last_seq }))
}

/// Writes down that the stream has gone back, for all who start from now on.
pub(crate) async fn report_set_back(link: &Link, subjects: &Subjects, highest: u64) {
    let payload = highest.to_string().into();
    if let Err(error) = link.request(&subjects.set_back(), None, payload, link.deadline()).await {
        tracing::error!(error = %error.into_source(), "could not write down that the stream has gone back");
    }
}

struct Opened<'a> {
    link: Link,
    config: &'a NatsConfig,
    subjects: Subjects,
    deadline: Deadline,
}

impl<'a> Opened<'a> {
    async fn connect(config: &'a NatsConfig) -> Result<Self, StartError> {
        let deadline = Deadline::after(config.connect_timeout);
        let link = Link::connect(config).await?;
        let endpoints = config.endpoints();
        let (found, new_enough) = link.server_version();
        if !new_enough {
            return Err(StartError::TooOld { endpoints, found });
        }
        Ok(Self { link, config, subjects: Subjects::new(&config.prefix), deadline })
    }

    async fn info(&self) -> Result<Option<StreamInfo>, StartError> {
        match self.ask("INFO", "to show", &json!({})).await? {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.err_code == NOT_FOUND => Ok(None),
            Err(error) => Err(self.refused("to show", error)),
        }
    }

    async fn create(&self) -> Result<StreamInfo, StartError> {
        if !self.config.create_stream {
            return Err(self.missing());
        }
        let wanted = wanted(self.config, &self.subjects, wall_micros());
        match self.ask("CREATE", "to create", &json!(wanted)).await? {
            Ok(info) => Ok(info),
            // Another node was faster, with another first sequence.
            Err(error) if error.err_code == NAME_TAKEN => self.info().await?.ok_or_else(|| self.missing()),
            Err(error) => Err(self.refused("to create", error)),
        }
    }

    /// The highest version known to have been given before the stream went back, if it did.
    async fn seen_before_set_back(&self) -> Result<Option<u64>, StartError> {
        let stream = self.link.stream();
        let subject = self.subjects.set_back();
        let read = stream.get_last_raw_message_by_subject(&subject);
        let read =
            self.link.run(&subject, read, self.deadline).await.map_err(|error| self.no_answer(error))?;
        match read {
            Ok(message) => {
                let stored = Stored::new(message.sequence, Some(&message.headers), message.payload);
                let StoredKind::Put { value, .. } = stored.kind else { return Ok(None) };
                Ok(std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok()))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.no_answer(LinkError::NoAnswer(Box::new(error)))),
        }
    }

    async fn ask(
        &self,
        verb: &str,
        what: &'static str,
        body: &Value,
    ) -> Result<Result<StreamInfo, ApiError>, StartError> {
        let subject = format!("STREAM.{verb}.{}", self.config.stream);
        let answer = self.link.api(&subject, body, self.deadline).await;
        answer.map_err(|error| match error {
            LinkError::Refused(source) => {
                self.refused(what, ApiError { err_code: 0, description: source.to_string() })
            }
            other => self.no_answer(other),
        })
    }

    fn refused(&self, what: &'static str, error: ApiError) -> StartError {
        let ApiError { err_code, mut description } = error;
        if err_code == REPLICAS_UNSUPPORTED {
            description += "; `replicas = 1` is for a single server, and loses what its disk loses";
        }
        StartError::Refused { what, stream: self.config.stream.to_string(), description, code: err_code }
    }

    fn missing(&self) -> StartError {
        StartError::NoStream { stream: self.config.stream.to_string() }
    }

    fn no_answer(&self, error: LinkError) -> StartError {
        let endpoints = self.config.endpoints();
        if matches!(error, LinkError::NotTaken(_)) && !self.link.has_jetstream() {
            return StartError::NoJetStream { endpoints };
        }
        StartError::NoAnswer { endpoints, source: error.into_source() }
    }
}

/// Whether a read failed because there is nothing to read.
pub(crate) fn is_missing(error: &async_nats::jetstream::stream::LastRawMessageError) -> bool {
    matches!(error.kind(), async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound)
}

/// The part of the server's answer that matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    config: Config,
    created: String,
    ts: Option<String>,
    pub(crate) state: StreamState,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamState {
    pub(crate) last_seq: u64,
}

impl StreamInfo {
    fn offset(&self) -> Option<u64> {
        self.number(OFFSET)
    }

    /// The base that an operator has raised the stream to, if ever.
    fn raised(&self) -> u64 {
        self.number(RAISED).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.config.metadata.get(name)?.parse().ok()
    }

    /// How old the stream is, by its server's clock; zero if it does not say.
    fn age(&self) -> Duration {
        let time = |text: &str| parse_rfc3339(text).ok().map(SystemTime::from);
        let age = time(&self.created).zip(self.ts.as_deref().and_then(time));
        age.and_then(|(created, now)| now.duration_since(created).ok()).unwrap_or_default()
    }
}

fn wanted(config: &NatsConfig, subjects: &Subjects, first: u64) -> Config {
    Config {
        name: config.stream.to_string(),
        description: Some("records of an archipelago cluster: do not write here".to_owned()),
        subjects: vec![subjects.all()],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        num_replicas: usize::from(config.replicas.get()),
        discard: DiscardPolicy::New,
        max_messages: -1,
        max_bytes: -1,
        max_consumers: -1,
        max_messages_per_subject: HISTORY_PER_KEY,
        allow_rollup: true,
        allow_direct: true,
        allow_message_ttl: true,
        subject_delete_marker_ttl: Some(config.history.max(SHORTEST_HISTORY)),
        first_sequence: Some(first),
        metadata: HashMap::from([(OFFSET.to_owned(), "0".to_owned())]),
        ..Config::default()
    }
}

/// What would break a promise of the store. Limits that are wider than asked for are fine.
fn check(found: &Config, config: &NatsConfig) -> Result<(), String> {
    let replicas = usize::from(config.replicas.get());
    let broken = [
        (
            !found.allow_message_ttl,
            "it has no message TTLs (allow_msg_ttl): the server is too old, or they are off",
        ),
        (
            found.subject_delete_marker_ttl.is_none_or(|ttl| ttl < SHORTEST_HISTORY),
            "expired records leave no marker (subject_delete_marker_ttl)",
        ),
        (!found.allow_rollup || found.deny_purge, "it refuses roll-ups (allow_rollup_hdrs, deny_purge)"),
        (found.max_messages_per_subject < 2, "it keeps no history of a record (max_msgs_per_subject)"),
        (!found.max_age.is_zero(), "it forgets records by age (max_age)"),
        (found.retention != RetentionPolicy::Limits, "it does not keep what was read (retention)"),
        (found.discard != DiscardPolicy::New, "a full stream would forget records (discard)"),
        (found.storage != StorageType::File, "it is not kept on disk (storage)"),
        (found.no_ack || found.sealed, "it takes or answers no writes (no_ack, sealed)"),
        (found.subjects != [Subjects::new(&config.prefix).all()], "its subjects are not those of the prefix"),
    ];
    if let Some((_, why)) = broken.iter().find(|(is_broken, _)| *is_broken) {
        return Err((*why).to_owned());
    }
    if found.num_replicas < replicas {
        return Err(format!("it has {} replicas, and {replicas} are asked for", found.num_replicas));
    }
    Ok(())
}

/// How far a watch may be behind on one key before it must list again.
const HISTORY_PER_KEY: i64 = 8;
const OFFSET: &str = "archipelago.offset";
const RAISED: &str = "archipelago.raised";
const NOT_FOUND: u64 = 10_059;
const NAME_TAKEN: u64 = 10_058;
const REPLICAS_UNSUPPORTED: u64 = 10_074;

#[cfg(test)]
mod tests {
    use super::*;

    fn made(config: &NatsConfig) -> Config {
        wanted(config, &Subjects::new(&config.prefix), 7)
    }

    #[test]
    fn a_stream_as_we_make_it_is_suitable() {
        let config = NatsConfig::default();
        assert_eq!(check(&made(&config), &config), Ok(()));
    }

    #[test]
    fn a_stream_that_would_break_a_promise_is_refused() {
        let config = NatsConfig::default();
        let spoil: [fn(&mut Config); 9] = [
            |stream| stream.allow_message_ttl = false,
            |stream| stream.subject_delete_marker_ttl = None,
            |stream| stream.allow_rollup = false,
            |stream| stream.max_messages_per_subject = 1,
            |stream| stream.max_age = Duration::from_secs(1),
            |stream| stream.discard = DiscardPolicy::Old,
            |stream| stream.storage = StorageType::Memory,
            |stream| stream.subjects = vec!["other.>".into()],
            |stream| stream.num_replicas = 1,
        ];
        for spoil in spoil {
            let mut stream = made(&config);
            spoil(&mut stream);
            assert!(check(&stream, &config).is_err(), "{stream:?}");
        }
    }

    #[test]
    fn a_stream_is_as_old_as_its_server_says() {
        let info = |created: &str, now: Option<&str>| StreamInfo {
            config: made(&NatsConfig::default()),
            created: created.to_owned(),
            ts: now.map(Into::into),
            state: StreamState { last_seq: 1 },
        };
        let (early, late) = ("2026-01-31T23:59:59.5Z", "2026-02-01T00:00:01Z");
        assert_eq!(info(early, Some(late)).age(), Duration::from_millis(1_500));
        assert_eq!(info(late, Some(early)).age(), Duration::ZERO);
        assert_eq!(info(early, None).age(), Duration::ZERO);
    }
}
