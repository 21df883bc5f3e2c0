//! Real etcd and NATS servers, started and hurt by tests.
