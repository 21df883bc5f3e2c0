//! The road to a server that is not ours: it can be cut, which to those who take it is as if the server were away.

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes on connections to a server, as long as it is whole.
pub(crate) struct Road {
    /// Where it begins.
    pub(crate) address: SocketAddr,
    traffic: Arc<Traffic>,
}

struct Traffic {
    server: SocketAddr,
    cut: AtomicBool,
    /// Every connection that was ever passed on; few, in the minute that this lasts.
    open: Mutex<Vec<TcpStream>>,
}

impl Road {
    pub(crate) fn to(server: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let traffic = Arc::new(Traffic { server, cut: AtomicBool::new(false), open: Mutex::default() });
        let passing = Arc::clone(&traffic);
        std::thread::spawn(move || {
            for outer in listener.incoming().map_while(Result::ok) {
                // Whoever is not passed on sees its connection end.
                drop(passing.pass_on(outer));
            }
        });
        Ok(Self { address, traffic })
    }

    pub(crate) fn cut(&self) {
        self.traffic.cut.store(true, Ordering::Release);
        for connection in self.traffic.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have ended by itself.
            drop(connection.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn mend(&self) {
        self.traffic.cut.store(false, Ordering::Release);
    }
}

impl Traffic {
    fn pass_on(&self, outer: TcpStream) -> std::io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cut.load(Ordering::Acquire) {
            return Ok(());
        }
        let inner = TcpStream::connect(self.server)?;
        open.extend([outer.try_clone()?, inner.try_clone()?]);
        for (mut from, mut to) in [(outer.try_clone()?, inner.try_clone()?), (inner, outer)] {
            std::thread::spawn(move || {
                // However one direction ends, the other ends with it.
                drop(copy(&mut from, &mut to));
                drop(from.shutdown(Shutdown::Both));
                drop(to.shutdown(Shutdown::Both));
            });
        }
        Ok(())
    }
}
