//! Who serves a shard: finding its owner, or finding it one.

mod seek;
mod tenancy;

pub(crate) use seek::{Found, address_of, meet, place_here, seek};
pub(crate) use tenancy::Tenancies;
