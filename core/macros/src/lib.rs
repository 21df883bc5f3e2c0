//! The attribute and derive macros of archipelago.
