//! Ends the actors of a range, so that it can be given up.

use std::sync::Arc;

use archipelago_protocol::handoff::HostEvent;
use archipelago_protocol::ranges::KeyRange;
use archipelago_protocol::time::Millis;
use tokio::sync::oneshot;

use crate::arbiter::ArbiterLocal;
use crate::env::within;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::remote::Shard;

/// Ends the actors of a range, with their hooks run; `true` once none is left, `false` if that is not wanted any more.
///
/// The range must have been closed: an arbiter that has no actor of it gets none then.
pub(super) async fn empty(
    node: &Arc<NodeShared>,
    kind: u32,
    range: &KeyRange,
    is_wanted: impl Fn() -> bool,
) -> bool {
    if broken(Mutant::RangeGivenUpFull) {
        return is_wanted();
    }
    for arbiter in node.data_arbiters() {
        while end_some(node, arbiter, kind, range.clone()).await != Some(0) {
            if !is_wanted() {
                return false;
            }
            node.env().sleep(LOOK_EVERY).await;
        }
    }
    is_wanted()
}

/// Begins to end the next few; how many are left, if the arbiter says so.
async fn end_some(node: &NodeShared, arbiter: u16, kind: u32, range: KeyRange) -> Option<usize> {
    let (left, answer) = oneshot::channel();
    let asked = node.enter_work(arbiter, move |on| {
        let in_range = |shard: Shard| on.is_in_range(shard, &range);
        let (leaving, served) = on.hosting().of_kind(kind, in_range);
        for shard in served.iter().copied().take(AT_A_TIME.saturating_sub(leaving)) {
            on.host(shard, HostEvent::Release { move_id: on.node().env().random() });
        }
        // Whoever asked may have given up.
        let _ = left.send(leaving + served.len());
    });
    asked.ok()?;
    within(node.env(), ANSWER_WITHIN, answer).await?.ok()
}

impl ArbiterLocal {
    /// Whether a part is an actor whose key lies in a range.
    fn is_in_range(&self, shard: Shard, range: &KeyRange) -> bool {
        let actor = self.any_kind(shard.kind).and_then(|kind| kind.shards().name(shard.number));
        // One that nobody knows the name of is ended as well: it cannot be told that it is not in the range.
        actor.is_none_or(|actor| range.contains(actor.key().as_str()))
    }
}

/// How many actors of an arbiter end at the same time.
const AT_A_TIME: usize = 256;

/// Between two looks at what is left.
const LOOK_EVERY: Millis = Millis(5);

/// How long an arbiter may take to say what is left.
const ANSWER_WITHIN: Millis = Millis(1_000);
