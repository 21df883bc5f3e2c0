//! The memory network as the conformance suite wants it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use archipelago_memory::{Link, MemoryCable, MemoryNetwork, MuteClient, NetworkSettings, TokioTimer};
use archipelago_protocol::contract::{Endpoint, PeerIdentity};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use archipelago_transport_conformance::{Cable, Cut, Mute, Testbed};
use async_trait::async_trait;
use bytes::Bytes;

pub(crate) struct MemoryTestbed {
    pub(crate) network: MemoryNetwork,
    secured: bool,
    hosts: Cell<u64>,
}

impl MemoryTestbed {
    pub(crate) fn new(secured: bool) -> Self {
        let link = Link { duplicate_per_mille: 1_000, loss_per_mille: 10, ..Link::default() };
        let settings = NetworkSettings { secured, link, ..NetworkSettings::default() };
        let network = MemoryNetwork::new(settings, 7, Arc::new(TokioTimer::start()));
        Self { network, secured, hosts: Cell::new(0) }
    }

    async fn open(&self, realm: u64) -> Box<dyn Endpoint> {
        self.hosts.set(self.hosts.get() + 1);
        let name = format!("host-{}", self.hosts.get());
        let at = NodeAddress::new(&name, 0).expect("a good name");
        self.network.host_in_realm(&name, realm).open(&at).await.expect("opens")
    }
}

#[async_trait(?Send)]
impl Testbed for MemoryTestbed {
    async fn endpoint(&self) -> Box<dyn Endpoint> {
        self.open(0).await
    }

    async fn stranger(&self) -> Option<Box<dyn Endpoint>> {
        if self.secured { Some(self.open(1).await) } else { None }
    }

    fn secured(&self) -> bool {
        self.secured
    }

    fn identity(&self, of: &dyn Endpoint) -> PeerIdentity {
        if self.secured { self.network.identity(of.address().host()) } else { PeerIdentity::default() }
    }

    async fn cable(&self, to: &NodeAddress) -> Box<dyn Cable> {
        Box::new(TestCable(self.network.cable(to)))
    }

    async fn send_garbage(&self, to: &NodeAddress, _: Bytes) -> bool {
        self.network.send_garbage(to);
        true
    }

    async fn connect_and_say_nothing(&self, to: &NodeAddress) -> Box<dyn Mute> {
        Box::new(TestMute(self.network.connect_and_say_nothing(to).expect("somebody listens")))
    }

    fn silence_limit(&self) -> Duration {
        Millis(5_000).to_duration()
    }

    fn dial_limit(&self) -> Duration {
        Millis(3_000).to_duration()
    }

    fn window(&self) -> usize {
        256 << 10
    }
}

struct TestCable(MemoryCable);

impl Cable for TestCable {
    fn address(&self) -> &NodeAddress {
        self.0.address()
    }

    fn cut(&self, cut: Cut) {
        self.0.cut(cut.towards(), cut.back());
    }

    fn heal(&self) {
        self.0.heal();
    }

    fn inject(&self, bytes: Bytes) {
        self.0.inject(&bytes);
    }
}

struct TestMute(MuteClient);

#[async_trait(?Send)]
impl Mute for TestMute {
    async fn dropped(&mut self) {
        self.0.dropped().await;
    }
}
