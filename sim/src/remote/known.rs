//! What the runtime or the network is known to get wrong. Each entry takes one check or one family back until it is mended; none of
//! them hides anything else.

/// After a node has begun a new life, in some three of a hundred runs a message that waited for the life before starts after
/// ones that were sent later. So order is judged only where no node was restarted.
pub(crate) const RESTARTED_NODES_LOSE_ORDER: bool = true;

/// A large message that comes to the wrong node is not returned: it does not fit into a frame. So there are none where
/// look-ups are wrong.
pub(crate) const LARGE_IS_NOT_RETURNED: bool = true;

/// The call of a large message is swept only if another call is pending on some lane; and a message that comes back counts
/// its time to live anew, from its return on. So calls may end somewhat later.
pub(crate) const SOME_CALLS_END_LATE: bool = false;

/// After a node has begun a new life others may not find it for long, or for ever. A route to the life before is not looked
/// up again while no connection to it can be made; it refuses everything once that node is forgotten; and a dead node that
/// was met at the same address hides the new one. So healing is judged only where no node was restarted.
pub(crate) const RESTARTED_NODES_ARE_LOST: bool = true;

/// The loss of one lane to a node moves the routes over its other lanes as well, past what waits in those. So every node has
/// one data arbiter.
pub(crate) const LOST_LANES_TAKE_OTHERS_ALONG: bool = false;

/// A connection that is to break while its way is cut does not, and loses everything from then on: a bug of the network in
/// memory. So there is only one of both.
pub(crate) const BREAKS_ARE_HELD_UP: bool = true;
