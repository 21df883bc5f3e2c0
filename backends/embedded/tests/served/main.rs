//! A store served to another process: the same rules as in one process, and what can go wrong in between.

#![allow(clippy::unwrap_used)]

mod hostile;
mod instances;
mod listing;
mod lossy;
mod quiet;
mod rig;
mod rules;
mod watching;
