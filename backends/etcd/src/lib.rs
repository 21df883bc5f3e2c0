//! The etcd backend of archipelago.
