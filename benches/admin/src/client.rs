//! A client of the admin API on a thread of its own, which asks at a steady rate over one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// What a client was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) good: u64,
    pub(crate) too_many: u64,
}

/// A client that asks until it is stopped.
pub(crate) struct Client {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Answers>>,
}

impl Connection {
    pub(crate) fn to(at: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The status and the body of the answer to a GET.
    pub(crate) fn get(&mut self, path: &str) -> std::io::Result<(u16, Vec<u8>)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other("no status"))?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(bytes) = header.strip_prefix("content-length:") {
                length = bytes.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }
}

impl Client {
    /// Asks so often in a second, for one path after the other.
    pub(crate) fn start(at: SocketAddr, per_second: u32, paths: &'static [&'static str]) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || ask(at, per_second, paths, &stopped));
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> std::io::Result<Answers> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| std::io::Error::other("the client panicked"))?
    }
}

fn ask(at: SocketAddr, per_second: u32, paths: &[&str], stopped: &AtomicBool) -> std::io::Result<Answers> {
    let mut connection = Connection::to(at)?;
    let (pause, mut due) = (Duration::from_secs(1) / per_second, Instant::now());
    let mut answers = Answers::default();
    for path in paths.iter().cycle() {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        match connection.get(path)?.0 {
            200 => answers.good += 1,
            429 => answers.too_many += 1,
            other => return Err(std::io::Error::other(format!("{path} was answered {other}"))),
        }
        due += pause;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(answers)
}
