//! The FoundationDB backend of archipelago.
