//! The listener's side: tables as the leader of the cluster tells them.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{RoutingTableError, TableVersion};
use archipelago_protocol::identity::{Kind, NodeAddress};
use archipelago_protocol::message::Codec;
use archipelago_protocol::ranges::{KnownTable, TableNews, TableSource};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::stream;

use super::board::HOLD;
use super::words::{Newer, News, codec, encode, news};
use crate::env::within;
use crate::node::{Node, NodeShared};
use crate::remote::ask_for_tables;

impl Node {
    /// The tables of range-partitioned kinds as the leader of the cluster pushes them: for nodes that are not to watch the
    /// store themselves, and for light clients, which cannot.
    pub fn pushed_tables(&self) -> Arc<dyn TableSource> {
        Arc::new(PushedTables { node: self.clone() })
    }
}

/// Asks the leader, whoever that is.
struct PushedTables {
    node: Node,
}

#[async_trait]
impl TableSource for PushedTables {
    async fn watch_tables(&self, kind: &Kind) -> Result<TableNews, RoutingTableError> {
        let listener =
            Listener { node: self.node.clone(), kind: kind.clone(), told: TableVersion(0), at: None };
        Ok(Box::pin(stream::unfold(listener, |mut listener| async move {
            let table = listener.next().await?;
            Some((Ok(table), listener))
        })))
    }
}

/// One watch.
struct Listener {
    node: Node,
    kind: Kind,
    told: TableVersion,
    /// Where the leader was last.
    at: Option<NodeAddress>,
}

impl Listener {
    /// The next table that is newer than all before; `None` once the node stops.
    async fn next(&mut self) -> Option<KnownTable> {
        loop {
            let node = Arc::clone(self.node.shared());
            if node.is_stopping() {
                return None;
            }
            match self.ask(&node).await {
                Ok(News::Table(bytes)) => match KnownTable::decode(&bytes) {
                    Ok(table) if table.version > self.told => {
                        self.told = table.version;
                        return Some(table);
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(kind = %self.kind, %error, "the leader told no table"),
                },
                Ok(News::NoneYet) => continue,
                Ok(News::Elsewhere(Some(address))) if self.at.as_ref() != Some(&address) => {
                    self.at = Some(address);
                    continue;
                }
                Ok(News::Elsewhere(_)) => self.at = None,
                Err(error) => {
                    tracing::debug!(kind = %self.kind, %error, "nobody tells tables now");
                    self.at = None;
                }
            }
            node.env().sleep(PAUSE).await;
        }
    }

    async fn ask(&self, node: &Arc<NodeShared>) -> Result<News, CallError> {
        let newer = Newer { kind: self.kind.clone(), than: self.told.0 };
        let view = node.members().view();
        if !node.is_client() && view.leader == Some(node.id()) {
            return news(node, &newer).await;
        }
        let leader = view.leader.and_then(|leader| view.members.get(&leader));
        let at = self.at.clone().or_else(|| leader.map(|leader| leader.info.address.clone()));
        let limit = HOLD + PAUSE;
        let asked = async {
            let peer = match (at, node.contacts()) {
                (Some(address), _) => node.remoting().meet(address).await.map_err(no_route)?,
                (None, Some(contacts)) => contacts.any(node).await?,
                (None, None) => return Err(no_route("nobody is known to lead".to_owned())),
            };
            ask_for_tables(node, peer, encode(&newer)?, limit).await
        };
        let answer = within(node.env(), limit, asked).await.ok_or(CallError::Timeout { started: true })??;
        Codec::Postcard.decode(&answer).map_err(codec)
    }
}

fn no_route(reason: String) -> CallError {
    CallError::NoRoute { reason: reason.into() }
}

/// Before the leader is looked for again.
const PAUSE: Millis = Millis(500);
