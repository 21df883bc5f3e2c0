//! The deterministic simulator of archipelago: whole nodes with real actors under virtual time.
