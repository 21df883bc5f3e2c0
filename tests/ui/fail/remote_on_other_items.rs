//! `#[remote]` goes on types, and not together with the long form.

use archipelago::prelude::*;

#[remote(i64)]
fn deposit() {}

#[remote(i64)]
#[derive(Message)]
#[rtype(result = "i64")]
struct Deposit(i64);

fn main() {}
