//! A reply travels back, so it must be encodable.

use archipelago::prelude::*;

struct Statement;

#[remote(Statement)]
struct ReadStatement;

fn main() {}
