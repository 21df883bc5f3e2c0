//! How far messages to virtual actors go.

use std::sync::Arc;

use archipelago_protocol::datacenter::HomeByKey;
use serde::{Deserialize, Serialize};

use super::leaf::{Leaf, Shape};

/// In which datacenters the actors of a kind may live, if there is more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// In the sender's own: no other is asked.
    Local,
    /// Wherever they are found; else in the sender's own.
    Discover,
    /// In the one that follows from the key, the same for every sender.
    Home,
}

impl From<Reach> for archipelago_runtime::Reach {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::Local => Self::Local,
            Reach::Discover => Self::Discover,
            Reach::Home => Self::Home(Arc::new(HomeByKey)),
        }
    }
}

impl Leaf for Reach {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""local", "discover" or "home""#.to_owned()
    }
}
