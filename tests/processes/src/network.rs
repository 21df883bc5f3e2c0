//! A network of hosts on this machine, made of network namespaces, whose cables a test can pull.
//!
//! Each host has two cables to the hub: one to its peers and one to the store. When one is pulled in the hub, the host keeps its
//! addresses and routes: what it sends vanishes, and no connection is told. Everything needs `ip` and the right to make namespaces; all of it is gone when the
//! processes that hold the namespaces end, which they do with the test, however that ends.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archipelago_test_servers::program;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Which cable of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// To the other hosts, and to the hub.
    Peers,
    /// To the store in the hub.
    Store,
}

/// A hub and its hosts.
pub struct Network {
    hub: Namespace,
    hosts: Vec<Namespace>,
}

impl Network {
    /// So many hosts, and this thread in the hub, with all threads and processes that it starts. None if that is not
    /// possible here, which has been said.
    ///
    /// # Panics
    ///
    /// If it is not possible, and this is CI.
    pub fn enter(hosts: usize) -> Option<Self> {
        match Self::make(hosts) {
            Ok(network) => {
                network.hub.enter();
                Some(network)
            }
            Err(why) => {
                let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
                assert!(!in_ci, "partitions are required in CI, but there are no network namespaces: {why}");
                program::skip("network", &format!("no network namespaces: {why}; needs root and iproute2"));
                None
            }
        }
    }

    /// Where the store listens.
    pub fn store() -> IpAddr {
        Ipv4Addr::new(10, 77, 2, 1).into()
    }

    /// Where nodes in the hub listen; higher than all hosts, also as text.
    pub fn hub_address() -> IpAddr {
        Ipv4Addr::new(10, 77, 1, 9).into()
    }

    /// Where the nodes on a host listen.
    pub fn address(host: usize) -> IpAddr {
        Ipv4Addr::new(10, 77, 1, number(host)).into()
    }

    /// Does `work` on a host; a process that it starts stays there.
    pub fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].within(work)
    }

    /// Pulls a cable of a host.
    ///
    /// # Panics
    ///
    /// If that cannot be.
    pub fn cut(&self, host: usize, cable: Cable) {
        self.turn(host, cable, "down");
    }

    /// Puts it back.
    ///
    /// # Panics
    ///
    /// If that cannot be.
    pub fn heal(&self, host: usize, cable: Cable) {
        self.turn(host, cable, "up");
    }

    fn turn(&self, host: usize, cable: Cable, state: &str) {
        let done = self.hub.ip(&format!("link set {} {state}", port(host, cable)));
        done.unwrap_or_else(|why| panic!("{why}"));
    }

    fn make(hosts: usize) -> Result<Self, String> {
        let hub = Namespace::new()?;
        for (bridge, address) in [("peers", Self::hub_address()), ("store", Self::store())] {
            hub.ip(&format!("link add {bridge} type bridge"))?;
            hub.ip(&format!("address add {address}/24 dev {bridge}"))?;
            hub.ip(&format!("link set {bridge} up"))?;
        }
        let mut network = Self { hub, hosts: Vec::new() };
        for host in 0..hosts {
            let namespace = Namespace::new()?;
            for cable in [Cable::Peers, Cable::Store] {
                network.lay(&namespace, host, cable)?;
            }
            network.hosts.push(namespace);
        }
        Ok(network)
    }

    fn lay(&self, to: &Namespace, host: usize, cable: Cable) -> Result<(), String> {
        let (port, net, bridge) = (port(host, cable), net(cable), bridge(cable));
        let holder = to.holder.id();
        self.hub.ip(&format!("link add {port} type veth peer name {bridge} netns {holder}"))?;
        self.hub.ip(&format!("link set {port} master {bridge}"))?;
        self.hub.ip(&format!("link set {port} up"))?;
        to.ip(&format!("address add 10.77.{net}.{}/24 dev {bridge}", number(host)))?;
        to.ip(&format!("link set {bridge} up"))
    }
}

fn number(host: usize) -> u8 {
    u8::try_from(host + 2).expect("few hosts")
}

fn port(host: usize, cable: Cable) -> String {
    format!("{}{host}", bridge(cable))
}

const fn bridge(cable: Cable) -> &'static str {
    match cable {
        Cable::Peers => "peers",
        Cable::Store => "store",
    }
}

const fn net(cable: Cable) -> u8 {
    match cable {
        Cable::Peers => 1,
        Cable::Store => 2,
    }
}

/// A network namespace, held by a process that ends when its input does.
struct Namespace {
    holder: Child,
}

impl Namespace {
    fn new() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let holder = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let mut namespace = Self { holder };
        namespace.wait()?;
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Waits until the holder has left our namespace.
    fn wait(&mut self) -> Result<(), String> {
        let ours = std::fs::read_link("/proc/thread-self/ns/net").map_err(|error| error.to_string())?;
        let until = Instant::now() + Duration::from_secs(5);
        while std::fs::read_link(self.path()).is_ok_and(|theirs| theirs == ours) {
            if Instant::now() > until {
                return Err("unshare does not get on".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        match self.holder.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("unshare --net: {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// Moves this thread there.
    fn enter(&self) {
        let namespace = File::open(self.path()).expect("the holder lives");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("whoever made a namespace may enter it");
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let there = || {
            self.enter();
            work()
        };
        let done = std::thread::scope(|scope| scope.spawn(there).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn ip(&self, words: &str) -> Result<(), String> {
        let run = || Command::new("ip").args(words.split(' ')).stdin(Stdio::null()).output();
        let output = self.within(run).map_err(|error| format!("ip: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", said.trim())) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(network: &Network, host: usize, address: IpAddr) -> bool {
        let connect =
            || std::net::TcpStream::connect_timeout(&(address, 7).into(), Duration::from_millis(300));
        // Nobody listens there: whoever says so was reached.
        network.on(host, connect).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// A cable that was just plugged in needs a moment.
    fn carries_all(network: &Network, addresses: &[IpAddr]) {
        let until = Instant::now() + Duration::from_secs(10);
        while !addresses.iter().all(|address| reaches(network, 0, *address)) {
            assert!(Instant::now() < until, "a cable that is plugged in carries");
        }
    }

    #[test]
    fn a_cable_that_is_cut_carries_nothing_and_the_other_one_does() {
        let Some(network) = Network::enter(2) else { return };
        let peers = [Network::address(1), Network::hub_address()];
        for cut in [Cable::Peers, Cable::Store] {
            carries_all(&network, &[peers[0], peers[1], Network::store()]);
            network.cut(0, cut);
            assert_eq!(peers.map(|peer| reaches(&network, 0, peer)), [cut != Cable::Peers; 2]);
            assert_eq!(reaches(&network, 0, Network::store()), cut != Cable::Store);
            assert!(reaches(&network, 1, Network::hub_address()), "others are not concerned");
            network.heal(0, cut);
        }
        carries_all(&network, &[peers[0], peers[1], Network::store()]);
    }
}
