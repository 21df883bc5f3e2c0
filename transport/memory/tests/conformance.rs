//! The rules of every transport, on the memory network: without security, and with it.

#[allow(dead_code)]
mod testbed;

mod plain {
    use super::testbed::MemoryTestbed;
    archipelago_transport_conformance::transport_conformance!(
        archipelago_transport_conformance::Clock::Virtual,
        MemoryTestbed::new(false)
    );
}

mod secured {
    use super::testbed::MemoryTestbed;
    archipelago_transport_conformance::transport_conformance!(
        archipelago_transport_conformance::Clock::Virtual,
        MemoryTestbed::new(true)
    );
}
