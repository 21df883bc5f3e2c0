//! How kinds are divided: one record per kind, written once and never changed.

use archipelago_protocol::contract::DirectoryError;
use archipelago_protocol::identity::Kind;
use archipelago_protocol::placement::KindLayout;

use crate::directory::StoreDirectory;
use crate::leases::unasked_guard;
use crate::record::{Expect, Write};
use crate::store::{CasAnswer, Read};
use crate::value::{decode, encode, kind_id};

impl StoreDirectory {
    /// The layout of `kind` that stands, which is `layout` if there was none. An unanswered write may be repeated: it
    /// finds what it, or somebody else, has written.
    pub(crate) async fn settle(&self, kind: &Kind, layout: KindLayout) -> Result<KindLayout, DirectoryError> {
        let id = kind_id(kind);
        // Nearly always it is there already, and reading costs less than a write that loses.
        if let Some(record) = self.get(&id, Read::Linearizable).await? {
            return decode(&record);
        }
        let put = Write::Put { tag: None, value: encode(&layout)?, ttl: None };
        match self.cas(&id, Expect::Absent, put, None).await? {
            CasAnswer::Applied(_) => Ok(layout),
            CasAnswer::Conflict(Some(record)) => decode(&record),
            CasAnswer::Conflict(None) => {
                Err(DirectoryError::Invalid { what: "the layout of a kind was deleted", source: None })
            }
            CasAnswer::GuardFailed => Err(unasked_guard()),
        }
    }
}
