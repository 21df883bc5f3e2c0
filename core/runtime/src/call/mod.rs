//! One call: the future the caller waits on, what it inherits and passes on.

mod bridge;
mod future;
mod near;
mod options;
mod scope;

pub use bridge::TraceBridge;
pub use future::Call;
pub(crate) use future::{Answer, AnswerSender, answer_channel};
pub(crate) use near::{Attendance, Delivery, NearSender, boxed, near_channel};
pub use options::CallOptions;
pub(crate) use scope::{CallScope, Entered, begin, enter, inherited, inherited_by_tell, within};
pub use scope::{InCall, current_trace, in_call, remaining};
