//! How a dial finds its way: there, an answer, and back, with another try while nobody answers.

use std::sync::Arc;

use archipelago_protocol::contract::{Connection, TransportError};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;

use crate::connection::Half;
use crate::mutants::Mutant;
use crate::state::{Host, Knock, State};
use crate::wait::Shared;

/// Connects the endpoint `from` to the one at `to`.
///
/// Dropping the future drops the end of a connection that may have been made, and thereby closes it.
pub(crate) async fn dial(
    shared: &Arc<Shared>,
    from: u64,
    to: &NodeAddress,
) -> Result<Connection, TransportError> {
    let way = shared.with(|state, _| begin(state, from, to)).ok_or(TransportError::Ended)?;
    let deadline = shared.timer.now() + shared.with(|state, _| state.settings.dial_limit);
    loop {
        pause(shared, deadline, shared.with(|state, _| state.delay(&way.0, &way.1))).await;
        let knock = shared.with(|state, now| match state.listeners.contains_key(&from) {
            true => Ok(state.knock(from, to, now)),
            false => Err(TransportError::Ended),
        })?;
        let back = shared.with(|state, _| state.delay(&way.1, &way.0));
        match knock {
            Knock::Connected(id) => {
                let half = Half::new(shared, id, 0);
                shared.with(|state, _| begrudge(state, &way));
                pause(shared, deadline, back).await;
                wait_for_the_answer(shared, id, to, deadline).await?;
                shared.with(|state, _| forgive(state, &way));
                return Ok(half.connection());
            }
            Knock::Nobody => {
                pause(shared, deadline, back).await;
                return Err(unavailable(to, "nobody listens there"));
            }
            Knock::Refused(reason) => {
                pause(shared, deadline, back).await;
                return Err(TransportError::Refused { reason });
            }
            Knock::Silence if shared.timer.now() >= deadline => {
                return Err(unavailable(to, "nobody answers"));
            }
            Knock::Silence => pause(shared, deadline, KNOCK_AGAIN).await,
        }
    }
}

/// From where to where, if the endpoint is still there.
fn begin(state: &mut State, from: u64, to: &NodeAddress) -> Option<(Host, Host)> {
    state.stats.dials += 1;
    let host = Arc::clone(&state.listeners.get(&from)?.host);
    Some((host, state.resolve(to).host().into()))
}

/// With a mutant, a dial that does not come to its end leaves something behind.
fn begrudge(state: &mut State, way: &(Host, Host)) {
    if state.broken(Mutant::DialBlocks) {
        state.grudges.insert(way.clone());
    }
}

/// A dial that came to its end leaves nothing behind.
fn forgive(state: &mut State, way: &(Host, Host)) {
    if !state.broken(Mutant::DialsOnce) {
        state.grudges.remove(way);
    }
}

/// The answer to a dial is held up as long as nothing passes back.
async fn wait_for_the_answer(
    shared: &Shared,
    id: u64,
    to: &NodeAddress,
    deadline: Millis,
) -> Result<(), TransportError> {
    loop {
        let open = shared.with(|state, _| {
            let conn = state.conns.get(&id).filter(|conn| conn.sides[0].ended.is_none());
            conn.map(|conn| state.passes(conn, 1))
        });
        match open {
            Some(true) => return Ok(()),
            None => return Err(unavailable(to, "the connection was reset while it was made")),
            Some(false) if shared.timer.now() >= deadline => {
                return Err(unavailable(to, "no answer came back"));
            }
            Some(false) => pause(shared, deadline, KNOCK_AGAIN).await,
        }
    }
}

/// Waits, but not beyond the deadline.
async fn pause(shared: &Shared, deadline: Millis, length: Millis) {
    let left = deadline.since(shared.timer.now());
    shared.timer.sleep(length.min(left)).await;
}

fn unavailable(to: &NodeAddress, reason: &str) -> TransportError {
    TransportError::Unavailable { address: to.clone(), reason: reason.to_owned() }
}

const KNOCK_AGAIN: Millis = Millis(100);
