//! In which datacenters the actors of a kind may live.

use std::sync::Arc;

use archipelago_protocol::datacenter::ChooseDataCenter;

use crate::message::VirtualActor;
use crate::node::NodeBuilder;

/// In which datacenters the actors of a virtual kind may live, if there is more than one.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Reach {
    /// In the sender's own: nobody else is ever asked.
    Local,
    /// Wherever they are found. One that is active nowhere, and was placed nowhere, comes to life in the sender's own
    /// datacenter. The default.
    #[default]
    Discover,
    /// In the one that a policy names for the key, the same for every sender.
    Home(Arc<dyn ChooseDataCenter>),
}

impl NodeBuilder {
    /// Says in which datacenters actors of type `A` may live.
    #[must_use]
    pub fn reach<A: VirtualActor>(mut self, reach: Reach) -> Self {
        self.settings_mut().reach_by_kind.insert(A::KIND.to_owned(), reach);
        self
    }
}
