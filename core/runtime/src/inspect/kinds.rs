//! The kinds that a node knows.

use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::time::Millis;

use super::{Gathered, look_at_all};
use crate::datacenter::Reach;
use crate::node::{KindShared, Node};

/// A kind of actors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindView {
    /// Its name.
    pub name: String,
    /// Whether this node may own actors of it.
    pub hosted: bool,
    /// Whether the cluster has one actor of it.
    pub singleton: bool,
    /// Whether its actors keep a state between activations.
    pub persistent: bool,
    /// How its actors are divided.
    pub layout: KindLayout,
    /// When an idle actor of it goes; none for never.
    pub idle_after: Option<Millis>,
    /// In which datacenters its actors may live: `local`, `discover` or `home`.
    pub reach: &'static str,
    /// The messages that it handles.
    pub messages: Vec<&'static str>,
    /// How many of its actors are active on this node.
    pub active: usize,
}

impl Node {
    /// The kinds that this node knows, with what is active here. Of arbiters that are silent nothing is counted.
    pub async fn kinds(&self) -> Gathered<KindView> {
        let node = self.shared();
        let counted = look_at_all(node, |local| {
            local.all_kinds().enumerate().map(|(index, kind)| (index, kind.active())).collect()
        });
        let Gathered { items, silent } = counted.await;
        let mut views: Vec<KindView> = node.kinds().iter().map(|kind| view_of(kind)).collect();
        for (index, active) in items {
            if let Some(view) = views.get_mut(index) {
                view.active += active;
            }
        }
        Gathered { items: views, silent }
    }
}

fn view_of(kind: &KindShared) -> KindView {
    KindView {
        name: kind.name().to_owned(),
        hosted: kind.is_hosted(),
        singleton: kind.is_singleton(),
        persistent: kind.spec().persistent(),
        layout: kind.layout(),
        idle_after: Some(kind.idle_after()).filter(|idle| *idle < Millis::MAX),
        reach: match kind.reach() {
            Reach::Local => "local",
            Reach::Discover => "discover",
            Reach::Home(_) => "home",
        },
        messages: kind.spec().messages().into_iter().map(|message| message.name).collect(),
        active: 0,
    }
}
