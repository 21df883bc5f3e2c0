//! One call: the cell its answer is put in, the future the caller waits on, what it inherits and passes on.

mod cell;
mod future;
mod options;
mod scope;

pub(crate) use cell::{CallCell, Waiter};
pub use future::Call;
pub(crate) use future::Home;
pub use options::CallOptions;
pub(crate) use scope::{CallScope, Entered, enter, inherited, inherited_by_tell, within};
pub use scope::{InCall, in_call, remaining};
