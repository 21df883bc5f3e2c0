//! The compare-and-swap: sent with what it replaces, and after a refusal judged by what stands there.
//!
//! A refusal is certain: nothing was stored. So whatever fails after one is `Unavailable`, and the write may be sent again
//! with another expectation. What may have been stored ends the matter at once as `Unknown`.

use std::time::Duration;

use archipelago_directory::{CasAnswer, Expect, RecordId, StoreError, Write};
use archipelago_protocol::contract::BoxError;
use bytes::Bytes;

use crate::clock::Deadline;
use crate::error::ApiError;
use crate::message::{Before, Expiry, Replaces, Stored, headers, ttl_seconds};
use crate::store::Inner;

pub(crate) async fn cas(
    inner: &Inner,
    id: &RecordId,
    expect: &Expect,
    write: Write,
) -> Result<CasAnswer, StoreError> {
    let subject = inner.subjects.record(id)?;
    let ttl = match &write {
        // The server raises a time to live to that of its own delete markers.
        Write::Put { ttl, .. } => ttl.map(|ttl| ttl_seconds(ttl).max(inner.remembered.as_secs())),
        Write::Delete => None,
    };
    Attempt { inner, id, expect, subject, write, ttl }.run(inner.link.deadline()).await
}

struct Attempt<'a> {
    inner: &'a Inner,
    id: &'a RecordId,
    expect: &'a Expect,
    subject: String,
    write: Write,
    /// After how many seconds the record should go by itself.
    ttl: Option<u64>,
}

/// What to do after a refusal.
enum Next {
    Answer(CasAnswer),
    /// Send it again, to replace this.
    Send(Replaces),
    /// What was read is older than the refusal, or the write that is in the way is not decided yet.
    LookAgain,
}

impl Attempt<'_> {
    async fn run(&self, deadline: Deadline) -> Result<CasAnswer, StoreError> {
        let mut replaces = self.first_guess();
        let mut refusal = None;
        for round in 0..ROUNDS {
            if let Some(replaces) = replaces {
                match self.send(replaces, deadline).await? {
                    Ok(seq) => {
                        self.remember(seq, replaces).await;
                        return Ok(CasAnswer::Applied(self.inner.version(seq)));
                    }
                    Err(refused) => refusal = Some(refused),
                }
            }
            let found = self.inner.read_leader(&self.subject, deadline).await;
            let found = found.map_err(|error| StoreError::Unavailable { source: error.into_source() })?;
            match self.judge(found, refusal.as_ref(), replaces) {
                Next::Answer(answer) => return Ok(answer),
                Next::Send(other) => replaces = Some(other),
                Next::LookAgain => deadline.pause(FIRST_PAUSE * 2u32.pow(round)).await,
            }
        }
        Err(StoreError::Unavailable { source: undecided(refusal) })
    }

    /// What to replace without having looked; `None` if the expectation cannot be met by anything.
    fn first_guess(&self) -> Option<Replaces> {
        let marker = self.inner.gone().marker(&self.subject);
        match self.expect {
            Expect::Absent => {
                Some(marker.map_or(Replaces::NOTHING, |seq| Replaces::told(seq, Before::Fresh)))
            }
            Expect::At(seen) => {
                let seq =
                    self.inner.sequence(seen.version.0).filter(|seq| *seq > 0 && marker != Some(*seq))?;
                let before = self.inner.lasting().before(&self.subject, seq, self.inner.remembered / 2);
                Some(Replaces::told(seq, before))
            }
        }
    }

    /// Sends the write. The inner error is a refusal because something else stands there.
    async fn send(&self, replaces: Replaces, deadline: Deadline) -> Result<Result<u64, Refusal>, StoreError> {
        let headers = headers(&self.subject, replaces, &self.write, Expiry::of(self.ttl, replaces.before));
        let payload = match &self.write {
            Write::Put { value, .. } => value.clone(),
            Write::Delete => Bytes::new(),
        };
        match self.inner.store_message(&self.subject, Some(headers), payload, deadline).await? {
            Ok(seq) => Ok(Ok(seq)),
            Err(error) => Refusal::sort(error).map(Err),
        }
    }

    fn judge(&self, found: Option<Stored>, refusal: Option<&Refusal>, sent: Option<Replaces>) -> Next {
        let seq = found.as_ref().map_or(0, |stored| stored.seq);
        if refusal.and_then(|refusal| refusal.stands).is_some_and(|stands| seq < stands) {
            return Next::LookAgain;
        }
        let replaces = found.as_ref().map_or(Replaces::NOTHING, Stored::replaces);
        let stands = found.as_ref().is_some_and(Stored::is_record);
        let expected = match self.expect {
            Expect::Absent => !stands,
            Expect::At(seen) => stands && self.inner.version(seq) == seen.version,
        };
        match expected {
            false => {
                Next::Answer(CasAnswer::Conflict(found.and_then(|stored| self.inner.record(self.id, stored))))
            }
            true if sent.is_some_and(|sent| sent.seq == seq) => Next::LookAgain,
            true => Next::Send(replaces),
        }
    }

    async fn remember(&self, seq: u64, replaced: Replaces) {
        let expiry = Expiry::of(self.ttl, replaced.before);
        self.inner.lasting().wrote(&self.subject, seq, self.ttl.is_some(), expiry);
        match self.write {
            Write::Put { .. } => self.inner.gone().forget(&self.subject),
            Write::Delete => {
                self.inner.gone().remember(self.subject.clone(), seq);
                self.inner.clear_up().await;
            }
        }
    }
}

/// Something else stands there.
struct Refusal {
    /// Its sequence, if the server said.
    stands: Option<u64>,
    error: ApiError,
}

impl Refusal {
    /// Tells a refused comparison from every other reason not to store, and those from what may have been stored.
    fn sort(error: ApiError) -> Result<Self, StoreError> {
        match error.err_code {
            WRONG_LAST_SEQUENCE => {
                let stands = error.description.rsplit(' ').next().and_then(|text| text.parse().ok());
                Ok(Self { stands, error })
            }
            WRITE_IN_FLIGHT => Ok(Self { stands: None, error }),
            code if NOT_NOW.contains(&code) => Err(StoreError::Unavailable { source: Box::new(error) }),
            code if NEVER.contains(&code) => Err(StoreError::Fatal { source: Box::new(error) }),
            _ => Err(StoreError::Unknown { source: Box::new(error) }),
        }
    }
}

fn undecided(refusal: Option<Refusal>) -> BoxError {
    match refusal {
        Some(Refusal { error, .. }) => Box::new(error),
        None => "what stands there could not be found out".into(),
    }
}

/// Another message stands there.
const WRONG_LAST_SEQUENCE: u64 = 10_071;
/// A write to the same subject is not decided yet among the replicas.
const WRITE_IN_FLIGHT: u64 = 10_164;
/// No leader, not the leader, out of room or of memory, too much at once: said before anything is stored.
const NOT_NOW: [u64; 7] = [10_002, 10_008, 10_009, 10_023, 10_028, 10_047, 10_167];
/// Too large, the wrong stream, JetStream or message TTLs switched off, a TTL that is none.
const NEVER: [u64; 6] = [10_039, 10_054, 10_060, 10_076, 10_165, 10_166];

const ROUNDS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(err_code: u64, description: &str) -> Result<Refusal, StoreError> {
        Refusal::sort(ApiError { err_code, description: description.into() })
    }

    #[test]
    fn only_certain_refusals_are_called_so() {
        assert_eq!(
            sorted(10_071, "wrong last sequence: 17").map(|refusal| refusal.stands).unwrap(),
            Some(17)
        );
        assert_eq!(sorted(10_164, "wrong last sequence").map(|refusal| refusal.stands).unwrap(), None);
        assert!(matches!(sorted(10_008, "no leader"), Err(StoreError::Unavailable { .. })));
        assert!(matches!(sorted(10_054, "too large"), Err(StoreError::Fatal { .. })));
        for code in [10_077, 99_999, 0] {
            assert!(matches!(sorted(code, "?"), Err(StoreError::Unknown { .. })), "{code}");
        }
    }
}
