//! The start: waiting for a database that answers, and finding out whether it still counts upwards.

use archipelago_directory::{Read, Space, StoreError};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use crate::code::Code;
use crate::config::FoundationDbConfig;
use crate::doubt::GivenUp;
use crate::engine::{Isolation, Transaction};
use crate::keys::{Keys, version_of};
use crate::read::Look;
use crate::store::{FoundationDbError, Shared};

/// Asks until the database answers or the time is up.
pub(crate) async fn check(shared: &Shared, config: &FoundationDbConfig) -> Result<(), FoundationDbError> {
    let within = Millis::from_duration(config.connect_timeout);
    let mut cause = "no answer".to_owned();
    let deadline = shared.timer.sleep(within);
    let reached = {
        let asking = ask(shared, &mut cause);
        pin_mut!(asking);
        match select(asking, deadline).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(((), _)) => None,
        }
    };
    let unreachable = || FoundationDbError::Unreachable { place: config.place(), within, cause };
    let newest = reached.unwrap_or_else(|| Err(unreachable()))?;
    if newest.stands > newest.cluster {
        let Newest { stands, cluster } = newest;
        return Err(FoundationDbError::VersionsWentBack { stands, cluster });
    }
    Ok(())
}

async fn ask(shared: &Shared, cause: &mut String) -> Result<Newest, FoundationDbError> {
    loop {
        match shared.read(Read::Linearizable, &NewestOf(&shared.keys)).await {
            Ok(newest) => return Ok(newest),
            Err(StoreError::Fatal { source }) => {
                let code = source.downcast_ref().copied().unwrap_or(Code(0));
                return Err(FoundationDbError::Refused { code, message: source.to_string() });
            }
            Err(StoreError::Unavailable { source } | StoreError::Unknown { source }) => {
                *cause = source.to_string()
            }
            Err(error) => *cause = error.to_string(),
        }
        shared.timer.sleep(PAUSE).await;
    }
}

/// The newest version that was written in any space, and that of the database.
struct Newest {
    stands: u64,
    cluster: u64,
}

struct NewestOf<'a>(&'a Keys);

#[async_trait]
impl Look for NewestOf<'_> {
    type Seen = Newest;

    async fn look(&self, transaction: &dyn Transaction) -> Result<Newest, GivenUp> {
        let mut stands = 0;
        for space in Space::ALL {
            let last = transaction.get(&self.0.last(space), Isolation::Snapshot).await?;
            stands = stands.max(last.and_then(|stamp| version_of(&stamp)).unwrap_or_default());
        }
        Ok(Newest { stands, cluster: transaction.read_version().await? })
    }
}

/// Between two questions.
const PAUSE: Millis = Millis(100);
