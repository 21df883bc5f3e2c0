//! Models of the protocols that safety rests on, searched breadth first by stateright.
//!
//! Where a decision lives in a machine of `core/protocol`, the model steps that very type and adds only what surrounds it:
//! a store that is late, loses answers or deletes records, nodes that pause, crash and come back, and time. What has no
//! machine (the published registry protocol) is modelled as it is worded. `docs/models.md` lists properties, sizes and
//! mutants.
//!
//! Every model has a `sometimes` property that shows that it came to where things get interesting, and mutants: the same
//! model with one rule broken, which a named property must notice.

#![cfg(test)]

mod calls;
mod check;
mod datacenters;
mod drift;
mod effects;
mod handoff;
mod monitors;
mod occ_claim;
mod offices;
mod ranges;
mod registry;
mod registry_extended;
mod roles;
mod sessions;
