//! What the command takes from the machine itself: the time, pauses, and sockets that are only tried. It is no part of a node, and
//! no simulator ever runs it, so this file alone reaches for them.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a command for operators is no part of a node"
)]

use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The time to measure lengths by.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time of day, in seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    let after = |length: Duration| i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => after(since),
        Err(before) => -after(before.duration()),
    }
}

/// The clock that nodes run by, which counts while the machine sleeps; zero where there is none.
pub(crate) fn boot_seconds() -> i64 {
    clock_gettime(ClockId::Boottime).tv_sec
}

/// Waits.
pub(crate) fn pause(length: Duration) {
    thread::sleep(length);
}

/// The addresses behind a name.
pub(crate) fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// Whether TCP could be listened at.
pub(crate) fn try_tcp(at: SocketAddr) -> io::Result<()> {
    TcpListener::bind(at).map(drop)
}

/// Whether UDP could be received at.
pub(crate) fn try_udp(at: SocketAddr) -> io::Result<()> {
    UdpSocket::bind(at).map(drop)
}

/// Whether somebody accepts connections there.
pub(crate) fn reach(at: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&at, PATIENCE).map(drop)
}

/// The line that somebody says to everybody who connects, without its end; not more than so many bytes of it.
pub(crate) fn greeting(at: SocketAddr, most: u64) -> io::Result<String> {
    let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// How long somebody may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
