//! Loopback ports that nobody else takes, not even while their server is down.
//!
//! A port is taken from below the range that the kernel gives to outgoing connections, and a locked file tells other
//! test processes that it is taken.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _lock: File,
}

impl Port {
    /// A free port.
    pub(crate) fn take() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let spread = std::process::id().wrapping_mul(SPREAD);
        let all = (0..RANGE).map(|_| spread.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % RANGE);
        let port = all.filter_map(|offset| u16::try_from(FIRST + offset).ok()).find_map(Self::lock);
        port.expect("there is a free port on loopback")
    }

    fn lock(number: u16) -> Option<Self> {
        let folder = folder();
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let lock = File::create(folder.join(number.to_string())).ok()?;
        lock.try_lock().ok()?;
        TcpListener::bind(("127.0.0.1", number)).ok()?;
        Some(Self { number, _lock: lock })
    }
}

fn folder() -> PathBuf {
    std::env::temp_dir().join("archipelago-test-ports")
}

const FIRST: u32 = 20_000;
const RANGE: u32 = 12_000;
/// Processes started one after the other begin far from each other.
const SPREAD: u32 = 97;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_taken_at_the_same_time_differ() {
        let ports: Vec<Port> = (0..20).map(|_| Port::take()).collect();
        let numbers: std::collections::BTreeSet<u16> = ports.iter().map(|port| port.number).collect();
        assert_eq!(numbers.len(), 20);
        assert!(Port::lock(ports[3].number).is_none(), "a port that is taken is not given again");
    }
}
