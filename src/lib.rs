//! archipelago: ordinary actix actors as a distributed system.

pub mod config;
