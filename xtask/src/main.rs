//! The project's own commands: test, soak, requirements, bench, sim.
fn main() {}
