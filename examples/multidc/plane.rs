//! A control plane with a switch, so that it can be seen to go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipelago::datacenter::{
    ControlPlane, ControlPlaneError, DataCenterInfo, DataCenterRecord, DataCenterState, DataCenterWatch,
    Epoch, Listing, Revision,
};
use async_trait::async_trait;

/// The control plane `inner`, as long as it is switched on.
pub(crate) struct Switched {
    inner: Arc<dyn ControlPlane>,
    off: AtomicBool,
}

impl Switched {
    pub(crate) fn new(inner: Arc<dyn ControlPlane>) -> Arc<Self> {
        Arc::new(Self { inner, off: AtomicBool::new(false) })
    }

    pub(crate) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Release);
    }

    fn answers(&self) -> Result<&Arc<dyn ControlPlane>, ControlPlaneError> {
        if self.off.load(Ordering::Acquire) {
            let source = "switched off".into();
            return Err(ControlPlaneError::Unavailable { backend: "embedded", source });
        }
        Ok(&self.inner)
    }
}

/// What any other provider would do, Consul or PostgreSQL for instance: the nodes know nothing but this trait.
///
/// Proves: R375
#[async_trait]
impl ControlPlane for Switched {
    async fn register(
        &self,
        info: &DataCenterInfo,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        self.answers()?.register(info, epoch, wall_ms).await
    }

    async fn heartbeat(
        &self,
        seen: &DataCenterRecord,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        self.answers()?.heartbeat(seen, epoch, wall_ms).await
    }

    async fn set_state(
        &self,
        seen: &DataCenterRecord,
        state: DataCenterState,
        epoch: Epoch,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        self.answers()?.set_state(seen, state, epoch).await
    }

    async fn list_active(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError> {
        self.answers()?.list_active().await
    }

    async fn list_all(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError> {
        self.answers()?.list_all().await
    }

    async fn watch(&self, from: Option<Revision>) -> Result<DataCenterWatch, ControlPlaneError> {
        self.answers()?.watch(from).await
    }
}
