//! What the runtime or the network is known to get wrong. Each entry takes one check or one family back until it is mended; none of
//! them hides anything else.

/// After a node has begun a new life, in some three of a hundred runs a message that waited for the life before starts after
/// ones that were sent later. So order is judged only where no node was restarted.
pub(crate) const RESTARTED_NODES_LOSE_ORDER: bool = true;

/// After a node has begun a new life others may not find it for long, or for ever. A route to the life before is not looked
/// up again while no connection to it can be made; it refuses everything once that node is forgotten; and a dead node that
/// was met at the same address hides the new one. So healing is judged only where no node was restarted.
pub(crate) const RESTARTED_NODES_ARE_LOST: bool = true;
