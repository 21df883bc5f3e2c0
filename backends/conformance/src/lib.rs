//! The suites that every backend of archipelago passes: one named test per rule of Store and Directory.
