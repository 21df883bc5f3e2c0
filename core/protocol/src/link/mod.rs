//! What two nodes say to each other over a connection: frames, and the rules of one lane.

mod decode;
mod encode;
mod frame;
mod frame_error;
mod inbound;
mod large;
mod large_head;
mod outbox;
mod scan;
mod ttl;
mod window;

pub use frame::{Asked, Frame, Head, Hint, KeyText, ReturnReason, Returned, ShardRef, Told};
pub use frame_error::{FrameError, FramePart};
pub use inbound::{InboundCalls, ProtocolFault};
pub use large::{Came, LargeArrivals, LargeFault};
pub use large_head::LargeHead;
pub use outbox::{
    Drained, Dropped, EndedCall, Expired, LaneBound, Outbox, OutboxSettings, Overflow, Refused, Unsent,
};
pub use scan::{LEN_BYTES, next_frame, write_frame};
pub use window::{Window, WindowSettings};
