//! The first words on a connection.

use std::future::poll_fn;
use std::sync::Arc;

use archipelago_protocol::contract::{
    CloseCode, CloseReason, Connection, RecvStream, SendStream, TransportError,
};
use archipelago_protocol::peer::{Handshake, Hello, Refusal, Welcome, negotiate};
use bytes::{Bytes, BytesMut};

use super::drive::Ending;
use crate::env::{Environment, within};
use crate::node::NodeShared;

/// A connection whose handshake has come so far that both sides know each other.
pub(super) struct Met {
    pub(super) connection: Connection,
    /// The other side.
    pub(super) hello: Hello,
    /// What came together with the handshake.
    pub(super) rest: BytesMut,
    /// The other side has dialled, and waits to be let in.
    pub(super) owes_welcome: bool,
}

/// Why two nodes did not get to talk.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeetError {
    /// The connection could not be made or did not last.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// One of the two does not want the other.
    #[error("{0}")]
    Refused(Refusal),
    /// It took too long.
    #[error("the handshake took too long")]
    TooSlow,
}

/// Introduces us on a connection that we have dialled, and waits to be let in.
pub(super) async fn introduce(
    env: &Arc<dyn Environment>,
    limit: archipelago_protocol::time::Millis,
    mut connection: Connection,
    ours: &Hello,
) -> Result<Met, MeetError> {
    let talk = async {
        say(&mut connection, &Handshake::Hello(ours.clone())).await?;
        let mut rest = BytesMut::new();
        match hear(&mut connection, &mut rest).await? {
            Handshake::Welcome(welcome) => match welcome.check(ours) {
                Ok(_version) => Ok((welcome.hello, rest)),
                Err(refusal) => Err(MeetError::Refused(refusal)),
            },
            Handshake::Refusal(refusal) => Err(MeetError::Refused(refusal)),
            Handshake::Hello(_) => Err(MeetError::Refused(out_of_turn())),
        }
    };
    let met = within(env, limit, talk).await.unwrap_or(Err(MeetError::TooSlow));
    finish(connection, met)
}

/// Lets go of a connection that we have dialled if whoever is there is not who it says.
pub(super) fn believed(node: &NodeShared, met: Met) -> Result<Met, MeetError> {
    match node.believe(&met.hello, &met.connection.peer) {
        Ok(()) => Ok(met),
        Err(refusal) => {
            close(&met.connection, &refusal);
            Err(MeetError::Refused(refusal))
        }
    }
}

/// Listens who has dialled us. The answer is still to be given.
pub(super) async fn listen(
    env: &Arc<dyn Environment>,
    limit: archipelago_protocol::time::Millis,
    mut connection: Connection,
) -> Result<Met, MeetError> {
    let talk = async {
        let mut rest = BytesMut::new();
        match hear(&mut connection, &mut rest).await? {
            Handshake::Hello(hello) => Ok((hello, rest)),
            _ => Err(MeetError::Refused(out_of_turn())),
        }
    };
    let heard = within(env, limit, talk).await.unwrap_or(Err(MeetError::TooSlow));
    if let Err(MeetError::Refused(refusal)) = &heard {
        // It may not read.
        within(env, limit, tell(&mut connection, refusal)).await;
    }
    finish(connection, heard)
}

/// Lets the other side in.
pub(super) async fn welcome(met: &mut Met, ours: Hello) -> Result<(), MeetError> {
    match negotiate(&ours, &met.hello) {
        Ok(version) => {
            say(&mut met.connection, &Handshake::Welcome(Welcome { version, hello: ours })).await?;
            Ok(())
        }
        Err(refusal) => {
            tell(&mut met.connection, &refusal).await;
            close(&met.connection, &refusal);
            Err(MeetError::Refused(refusal))
        }
    }
}

/// The two directions of a lane.
pub(super) type Ends = (Box<dyn SendStream>, Box<dyn RecvStream>);

/// Lets the other side in, if it still waits for that: with `ours`.
pub(super) async fn let_in(mut ends: Ends, ours: Option<Hello>, theirs: &Hello) -> Result<Ends, Ending> {
    let Some(ours) = ours else { return Ok(ends) };
    let lost = |reason: String| Ending::Transport(TransportError::Lost { reason });
    let version = negotiate(&ours, theirs).map_err(|refusal| lost(refusal.to_string()))?;
    let welcome = Handshake::Welcome(Welcome { version, hello: ours });
    let mut bytes = welcome.encode().map_err(|error| lost(error.to_string()))?;
    poll_fn(|cx| ends.0.poll_send(cx, &mut bytes)).await.map_err(Ending::Transport)?;
    Ok(ends)
}

/// Sends the other side away.
pub(super) async fn turn_away(mut met: Met, refusal: &Refusal) {
    tell(&mut met.connection, refusal).await;
    close(&met.connection, refusal);
}

async fn tell(connection: &mut Connection, refusal: &Refusal) {
    if let Err(error) = say(connection, &Handshake::Refusal(refusal.clone())).await {
        tracing::debug!(%error, "a refusal could not be delivered");
    }
}

fn close(connection: &Connection, refusal: &Refusal) {
    connection.streams.close(CloseReason::new(CloseCode::Mismatch, refusal.text.clone()));
}

fn finish(connection: Connection, met: Result<(Hello, BytesMut), MeetError>) -> Result<Met, MeetError> {
    match met {
        Ok((hello, rest)) => Ok(Met { connection, hello, rest, owes_welcome: false }),
        Err(error) => {
            connection.streams.close(CloseReason::new(CloseCode::Mismatch, error.to_string()));
            Err(error)
        }
    }
}

async fn say(connection: &mut Connection, words: &Handshake) -> Result<(), MeetError> {
    let mut bytes: Bytes = words.encode().map_err(|error| MeetError::Refused(Refusal::from(&error)))?;
    poll_fn(|cx| connection.outgoing.poll_send(cx, &mut bytes)).await?;
    Ok(())
}

async fn hear(connection: &mut Connection, rest: &mut BytesMut) -> Result<Handshake, MeetError> {
    loop {
        if let Some(words) =
            Handshake::take(rest).map_err(|error| MeetError::Refused(Refusal::from(&error)))?
        {
            return Ok(words);
        }
        if poll_fn(|cx| connection.incoming.poll_recv(cx, rest)).await? == 0 {
            let reason = "the connection ended during the handshake".to_owned();
            return Err(TransportError::Lost { reason }.into());
        }
    }
}

fn out_of_turn() -> Refusal {
    Refusal::new(archipelago_protocol::peer::RefusalReason::Malformed, "the handshake came out of turn")
}
