//! Holds a node to the way in which its cluster divides each kind.

use archipelago_protocol::contract::DirectoryError;
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;

use super::{KindShared, NodeShared, StartError};
use crate::env::within;

/// Compares the layout of every kind that the node knows with the one that the directory has, and writes it down where it
/// has none.
///
/// # Errors
///
/// - [`StartError::Layout`]: the cluster divides a kind differently.
/// - [`StartError::Directory`]: the directory did not say it for as long as a session lasts.
pub(super) async fn settle(node: &NodeShared) -> Result<(), StartError> {
    let until = node.env().now() + node.settings().session_ttl;
    for kind in node.kinds() {
        settle_kind(node, kind, until).await?;
    }
    Ok(())
}

async fn settle_kind(node: &NodeShared, kind: &KindShared, until: Millis) -> Result<(), StartError> {
    let ours = kind.layout();
    loop {
        let error = match attempt(node, kind).await {
            Some(Ok(theirs)) if theirs == ours => return Ok(()),
            Some(Ok(theirs)) => {
                return Err(StartError::Layout { kind: kind.name().to_owned(), ours, theirs });
            }
            Some(Err(error @ DirectoryError::Invalid { .. })) => return Err(error.into()),
            Some(Err(error)) => error,
            None => DirectoryError::Unknown { backend: "directory", source: "no answer in time".into() },
        };
        if node.env().now() >= until {
            return Err(error.into());
        }
        node.env().sleep(PAUSE).await;
    }
}

async fn attempt(node: &NodeShared, kind: &KindShared) -> Option<Result<KindLayout, DirectoryError>> {
    let limit = times::attempt_timeout(node.settings().session_ttl);
    within(node.env(), limit, node.directory().settle_layout(kind.kind(), kind.layout())).await
}

/// Before the directory is asked again.
const PAUSE: Millis = Millis(100);
