//! The NATS JetStream backend of archipelago.
