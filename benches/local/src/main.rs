//! Benchmarks of the local road against plain actix.
fn main() {}
