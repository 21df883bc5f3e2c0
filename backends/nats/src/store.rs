//! The store: one subject per record, and a write that the server refuses unless it replaces what it names.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Version, Write,
};
use async_nats::HeaderMap;
use async_nats::jetstream::stream::DirectGetErrorKind;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use crate::clock::{Deadline, Moment};
use crate::config::NatsConfig;
use crate::error::{ApiError, LinkError, StartError, of_a_read};
use crate::gone::Gone;
use crate::lasting::Lasting;
use crate::link::{Link, decode};
use crate::message::{Stored, StoredKind};
use crate::recent::Recent;
use crate::stream::{Base, is_missing, open, report_set_back};
use crate::subject::Subjects;
use crate::{cas, list, watch};

/// A store in a JetStream stream. One per process; share it as an `Arc`.
#[derive(Debug)]
pub struct NatsStore {
    inner: Arc<Inner>,
}

impl NatsStore {
    /// Connects, and makes sure that the stream is there and in order. Must be called within a tokio runtime, which runs
    /// the client's tasks.
    ///
    /// # Errors
    ///
    /// [`StartError`], within `connect_timeout`.
    pub async fn connect(config: NatsConfig) -> Result<Self, StartError> {
        let (link, base) = open(&config).await?;
        Ok(Self { inner: Arc::new(Inner::new(config, link, base)) })
    }
}

#[async_trait]
impl Store for NatsStore {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn max_value(&self) -> usize {
        LONGEST_VALUE.min(self.inner.link.max_payload().saturating_sub(ROOM_FOR_HEADERS))
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        let inner = &self.inner;
        inner.check_base()?;
        let subject = inner.subjects.record(id)?;
        let found = match read {
            Read::Linearizable => inner.read_leader(&subject, inner.link.deadline()).await,
            Read::Any => inner.read_any(&subject, inner.link.deadline()).await,
        };
        let found = found.map_err(|error| of_a_read(error.into()))?;
        if let Some(stored) = &found {
            inner.note_read(&subject, stored);
        }
        Ok(found.and_then(|stored| inner.record(id, stored)))
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        _guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        self.inner.check_base()?;
        self.inner.check_settled(id.space)?;
        cas::cas(&self.inner, id, &expect, write).await
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.inner.check_base()?;
        list::list(&self.inner, space, tag).await.map_err(of_a_read)
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.inner.check_base()?;
        watch::watch(Arc::clone(&self.inner), space, after).await.map_err(of_a_read)
    }

    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let deletes = records.iter().map(|record| self.cas(&record.id, record.expect(), Write::Delete, None));
        let deletes: Vec<_> = deletes.collect();
        let mut answers = stream::iter(deletes).buffer_unordered(DELETES_AT_ONCE);
        let (mut deleted, mut failed) = (0, None);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => deleted += usize::from(matches!(answer, CasAnswer::Applied(_))),
                // One that may yet be applied must not be hidden by one that certainly was not.
                Err(error @ StoreError::Unknown { .. }) => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(deleted), Err)
    }
}

/// What the store, its listings and its watches share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: NatsConfig,
    pub(crate) link: Link,
    pub(crate) subjects: Subjects,
    /// How long the stream remembers what was deleted.
    pub(crate) remembered: Duration,
    offset: u64,
    /// The greatest sequence that any write of this store was answered with.
    highest: AtomicU64,
    /// The stream has gone back while we were watching.
    set_back: AtomicBool,
    /// Since when, and for how long, the stream grants nothing.
    quiet: (Moment, Duration),
    gone: Mutex<Gone>,
    lasting: Mutex<Lasting>,
    recent: Mutex<Recent>,
}

impl Inner {
    fn new(config: NatsConfig, link: Link, base: Base) -> Self {
        Self {
            subjects: Subjects::new(&config.prefix),
            remembered: base.remembered,
            offset: base.offset,
            highest: AtomicU64::new(base.last),
            set_back: AtomicBool::new(false),
            quiet: (Moment::now(), base.quiet),
            gone: Mutex::default(),
            lasting: Mutex::default(),
            recent: Mutex::new(Recent::new(base.remembered / 2)),
            link,
            config,
        }
    }

    pub(crate) const fn version(&self, seq: u64) -> Version {
        Version(seq.saturating_add(self.offset))
    }

    pub(crate) const fn position(&self, seq: u64) -> Position {
        Position(seq.saturating_add(self.offset))
    }

    /// The sequence of a version or position; `None` if it is of another stream.
    pub(crate) const fn sequence(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.offset)
    }

    pub(crate) fn record(&self, id: &RecordId, stored: Stored) -> Option<Record> {
        let version = self.version(stored.seq);
        stored.record(id, version)
    }

    pub(crate) fn gone(&self) -> MutexGuard<'_, Gone> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lasting(&self) -> MutexGuard<'_, Lasting> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps in mind when a message that was read goes by itself.
    pub(crate) fn note_read(&self, subject: &str, stored: &Stored) {
        if let Some(ttl) = stored.ttl {
            self.lasting().read(subject, stored.seq, ttl);
        }
    }

    pub(crate) fn is_recent(&self, seq: u64) -> bool {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).covers(seq)
    }

    /// Stores a message, if the server finds what its headers name. The inner error is the server's refusal: certainly
    /// nothing was stored.
    pub(crate) async fn store_message(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
        deadline: Deadline,
    ) -> Result<Result<u64, ApiError>, StoreError> {
        let (sent, before) = (Moment::now(), self.highest.load(Ordering::Acquire));
        let answer = self.link.request(subject, headers, payload, deadline).await?;
        match decode::<Stowed>(&answer.payload)? {
            Err(error) => Ok(Err(error)),
            Ok(Stowed { seq, .. }) if seq <= before => Err(self.on_set_back(before).await),
            Ok(Stowed { seq, stream }) => {
                if stream != self.config.stream.as_str() {
                    let source = format!("{subject} belongs to the stream {stream}").into();
                    return Err(StoreError::Fatal { source });
                }
                self.highest.fetch_max(seq, Ordering::AcqRel);
                self.recent.lock().unwrap_or_else(PoisonError::into_inner).note(sent, seq);
                Ok(Ok(seq))
            }
        }
    }

    /// The newest message of a subject, as the stream's leader knows it.
    pub(crate) async fn read_leader(
        &self,
        subject: &str,
        deadline: Deadline,
    ) -> Result<Option<Stored>, LinkError> {
        let read = self.link.stream().get_last_raw_message_by_subject(subject);
        let asked = format!("$JS.API.STREAM.MSG.GET.{}", self.config.stream);
        match self.link.run(&asked, read, deadline).await? {
            Ok(message) => Ok(Some(Stored::new(message.sequence, Some(&message.headers), message.payload))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(LinkError::NoAnswer(Box::new(error))),
        }
    }

    /// The newest message of a subject, as any replica knows it.
    async fn read_any(&self, subject: &str, deadline: Deadline) -> Result<Option<Stored>, LinkError> {
        let read = self.link.stream().direct_get_last_for_subject(subject);
        let asked = format!("$JS.API.DIRECT.GET.{}.{subject}", self.config.stream);
        match self.link.run(&asked, read, deadline).await? {
            Ok(message) => Ok(Some(Stored::new(message.sequence, Some(&message.headers), message.payload))),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(LinkError::NoAnswer(Box::new(error))),
        }
    }

    /// Whether the stream still has the message of this sequence.
    pub(crate) async fn is_kept(&self, seq: u64) -> Result<bool, StoreError> {
        let read = self.link.stream().get_raw_message(seq);
        let asked = format!("$JS.API.STREAM.MSG.GET.{}", self.config.stream);
        match self.link.run(&asked, read, self.link.deadline()).await? {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(StoreError::Unknown { source: Box::new(error) }),
        }
    }

    /// A write was answered with a sequence that had been given before: the stream was restored or replaced.
    async fn on_set_back(&self, highest: u64) -> StoreError {
        let version = self.version(highest).0;
        if !self.set_back.swap(true, Ordering::AcqRel) {
            tracing::error!(stream = %self.config.stream, version, "the stream has gone back");
            report_set_back(&self.link, &self.subjects, version).await;
        }
        self.set_back_error()
    }

    fn check_base(&self) -> Result<(), StoreError> {
        if self.set_back.load(Ordering::Acquire) { Err(self.set_back_error()) } else { Ok(()) }
    }

    fn set_back_error(&self) -> StoreError {
        let highest = self.version(self.highest.load(Ordering::Acquire)).0;
        let source = StartError::SetBack { stream: self.config.stream.to_string(), highest };
        StoreError::Fatal { source: Box::new(source) }
    }

    /// A new stream does not know what an earlier one granted, so it grants nothing until that has run out. Sessions are
    /// opened all the while: they grant nothing by themselves.
    fn check_settled(&self, space: Space) -> Result<(), StoreError> {
        let (since, length) = self.quiet;
        let left = length.saturating_sub(since.elapsed());
        if left.is_zero() || GRANT_NOTHING.contains(&space) {
            return Ok(());
        }
        let source = format!(
            "the stream {} is new and grants nothing for another {left:?}: nodes may still hold what an earlier one granted",
            self.config.stream
        );
        Err(StoreError::Unavailable { source: source.into() })
    }

    /// Clears up what has been deleted for so long that no watch needs it any more.
    pub(crate) async fn clear_up(&self) {
        let keep = self.remembered;
        let due = self.gone().take_older_than(keep);
        for (subject, seq) in due {
            let headers = crate::message::collect_headers(&subject, seq, keep);
            self.link.fire(subject, headers, self.link.deadline()).await;
        }
    }
}

/// The server's word that a message is stored.
#[derive(Deserialize)]
struct Stowed {
    stream: String,
    seq: u64,
}

impl Stored {
    /// Whether a record stands there.
    pub(crate) const fn is_record(&self) -> bool {
        matches!(self.kind, StoredKind::Put { .. })
    }
}

/// Records that grant nothing: how a kind is divided is agreed on before anybody can own any of it.
const GRANT_NOTHING: [Space; 3] = [Space::LEASES, Space::NODES, Space::KINDS];
/// Read back in base64, it still fits into what servers send by default.
const LONGEST_VALUE: usize = 768 << 10;
/// Subjects and tags may be long.
const ROOM_FOR_HEADERS: usize = 16 << 10;
const DELETES_AT_ONCE: usize = 64;
