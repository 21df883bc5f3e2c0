//! A gateway: others dial it, and it passes on what they say to a node that listens elsewhere.

use std::io::copy;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Passes on connections once it knows to where.
pub struct Gateway {
    /// Where it listens.
    pub address: SocketAddr,
    inside: Arc<OnceLock<SocketAddr>>,
    passed: Arc<AtomicUsize>,
}

impl Gateway {
    /// Listens at this address of loopback.
    ///
    /// # Panics
    ///
    /// If it cannot.
    pub fn at(host: Ipv4Addr) -> Self {
        let listener = TcpListener::bind((host, 0)).expect("loopback has free ports");
        let address = listener.local_addr().expect("it listens");
        let (inside, passed) = (Arc::<OnceLock<SocketAddr>>::default(), Arc::<AtomicUsize>::default());
        let (to, count) = (Arc::clone(&inside), Arc::clone(&passed));
        // It ends with the test.
        std::thread::spawn(move || {
            for outer in listener.incoming().map_while(Result::ok) {
                let Some(inner) = to.get().and_then(|to| TcpStream::connect(to).ok()) else { continue };
                count.fetch_add(1, Ordering::Relaxed);
                join(outer, inner);
            }
        });
        Self { address, inside, passed }
    }

    /// Passes on to here from now on.
    ///
    /// # Panics
    ///
    /// If it has been told before.
    pub fn lead_to(&self, inside: SocketAddr) {
        self.inside.set(inside).expect("a gateway leads to one place");
    }

    /// How many connections were passed on.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }
}

fn join(outer: TcpStream, inner: TcpStream) {
    let clones = (outer.try_clone().expect("a socket"), inner.try_clone().expect("a socket"));
    for (mut from, mut to) in [(outer, inner), (clones.1, clones.0)] {
        std::thread::spawn(move || {
            // Whoever ends one direction ends both.
            let _ = copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
}
