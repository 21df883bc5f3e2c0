//! Identities, wire format, contracts and every decision of archipelago as pure machines.
