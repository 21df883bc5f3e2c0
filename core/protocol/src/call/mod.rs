//! Calls that wait for an answer: the table of pending calls, and how a call can end.

mod error;
mod table;

pub use error::{CallError, ForeignNamespace, Outcome, Queue, Text, UnknownMessage};
pub use table::{CallTable, Ended, Full, Start};
