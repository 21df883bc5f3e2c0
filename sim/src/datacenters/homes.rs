//! The home records of each datacenter: those of placed actors stand from the beginning, and now and then nobody can read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipelago_protocol::contract::{DirectoryError, HomeStamp, Homes, SettledHome};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::ActorId;
use async_trait::async_trait;

use super::dweller::{PLACED, name_of};
use super::plan::{Plan, id_of};

/// The records of all datacenters. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Registers {
    away: Arc<AtomicBool>,
}

/// Those of one datacenter.
pub(crate) struct Register {
    plan: Plan,
    away: Arc<AtomicBool>,
}

impl Registers {
    pub(crate) fn of_one(&self, plan: &Plan) -> Register {
        Register { plan: plan.clone(), away: Arc::clone(&self.away) }
    }

    /// Whether nobody can read any of them.
    pub(crate) fn are_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }
}

#[async_trait]
impl Homes for Register {
    async fn home_of(&self, actor: &ActorId) -> Result<Option<DataCenterId>, DirectoryError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(DirectoryError::Unavailable { backend: "simulated", source: "it is away".into() });
        }
        let placed = actor.kind().as_str() == name_of(PLACED);
        let key = actor.key().as_str().parse().unwrap_or(0);
        Ok(placed.then(|| id_of(self.plan.place_of(key))))
    }

    async fn settle_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<SettledHome, DirectoryError> {
        let home = self.home_of(actor).await?.unwrap_or_else(|| home.clone());
        Ok(SettledHome { home, made: None })
    }

    async fn forget_home(&self, _: &ActorId, _: HomeStamp) -> Result<bool, DirectoryError> {
        Ok(false)
    }
}
