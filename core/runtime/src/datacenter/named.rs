//! Named actors wherever they are registered.

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::Discovered;
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::time::Millis;

use super::ask::{names_of, unreachable};
use super::searches::{FarPlace, Sought, search};
use crate::env::within;
use crate::message::NamedActor;
use crate::named::NamedRef;
use crate::node::Node;
use crate::remote::{Subject, WhereIs, Whereabouts, where_is};

impl Node {
    /// Finds the actor that is registered at `path` on any node: of this datacenter first, then of the others. The ref goes
    /// straight to the node where it was found. All of it takes no longer than `discovery.timeout`.
    ///
    /// # Errors
    ///
    /// - [`CallError::NoSuchActor`]: every datacenter has answered, and nobody has it.
    /// - [`CallError::Unreachable`]: nobody who answered has it, and not all answered.
    /// - [`CallError::InvalidId`]: no actor can have this path.
    pub async fn discover_named<A: NamedActor>(&self, path: &str) -> Result<NamedRef<A>, CallError> {
        let invalid =
            |error: &dyn std::fmt::Display| CallError::InvalidId { reason: error.to_string().into() };
        let path = ActorPath::local(self.namespace().as_str(), path).map_err(|error| invalid(&error))?;
        let found = self.find_path(&path).await?;
        self.resolve(&found).map_err(|error| invalid(&error))
    }

    async fn find_path(&self, path: &ActorPath) -> Result<ActorPath, CallError> {
        let node = self.shared();
        let limit = node.settings().discovery.timeout.min(node.settings().call_timeout);
        let until = node.env().now() + limit;
        let has_others = node.datacenters().has_others();
        let subject = Subject::Named(path.clone());
        let here = WhereIs { subject, place: false, live: false, relayed: false };
        // Half of the time is left to the others, if there are any.
        let share = if has_others { Millis(limit.0 / 2) } else { limit };
        let all_heard = match within(node.env(), share, where_is(node, &here)).await {
            Some(answer) => match answer? {
                Whereabouts::Named(Some(found)) => return Ok(found),
                _ => true,
            },
            None => false,
        };
        let nobody = || {
            if all_heard {
                CallError::NoSuchActor { path: path.path().into() }
            } else {
                unreachable("not every node of this datacenter has answered")
            }
        };
        if !has_others {
            return Err(nobody());
        }
        match search(node, Sought::Named(path.clone()), until).await? {
            Discovered::Found { place: FarPlace::Named(found), .. } => Ok(found),
            Discovered::Found { .. } | Discovered::NotFound => Err(nobody()),
            Discovered::Unreachable { silent, undecided } => {
                Err(unreachable(&names_of(silent.iter().chain(&undecided))))
            }
            Discovered::Stale => Err(unreachable("the map of datacenters is out of date")),
            Discovered::Full => Err(unreachable("too many searches are under way")),
        }
    }
}
