//! A generic message would have one name for many types.

use archipelago::prelude::*;

#[remote(i64)]
struct Put<T> {
    value: T,
}

#[derive(RemoteMessage)]
struct Borrowed<'a>(&'a str);

fn main() {}
