//! The tables of range-partitioned kinds, pushed by one node to all others and to light clients.
//!
//! Only the leader of the cluster watches the store, once per kind however many listen. Whoever wants a table asks the leader
//! for one that is newer than the one it has, and the leader answers as soon as there is one. So a listener has one question
//! out at a time: one that is slow misses tables, never the newest, and nothing piles up for it.

mod board;
mod pushed;
mod words;

pub(crate) use board::TableBoard;
pub(crate) use words::answer;
#[cfg(feature = "corpus")]
pub(crate) use words::readers;
