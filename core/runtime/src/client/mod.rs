//! Light clients: nodes that belong to no cluster and talk to one.
//!
//! A client hosts nothing, has no session and knows no store, only the addresses of a few nodes. It sends like every node,
//! over lanes and routes of its own, straight to the node that serves an actor; which one that is, it asks one of its
//! contacts instead of the directory. Members let it in up to a bound and forget it with its last connection.

mod contacts;
mod locator;
mod no_directory;
mod stay;
mod words;

pub(crate) use contacts::ContactList;
pub(crate) use locator::ContactLocator;
pub(crate) use no_directory::NoDirectory;
pub(crate) use stay::{adopt_layouts, stay};
pub(crate) use words::answer;
#[cfg(feature = "corpus")]
pub(crate) use words::readers;
