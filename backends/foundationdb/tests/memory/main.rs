//! The backend on the engine in memory, which keeps FoundationDB's rules and breaks what FoundationDB may break.
#![allow(clippy::unwrap_used)]

mod away;
mod broken;
mod chaos;
mod limits;
mod rules;
mod start;
mod support;
mod unknown;
mod watching;
mod worlds;
