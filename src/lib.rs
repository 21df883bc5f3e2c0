//! archipelago: ordinary actix actors as a distributed system.
