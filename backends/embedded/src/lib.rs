//! The embedded backend of archipelago: a linearizable store in memory, shared by the nodes of one process.
