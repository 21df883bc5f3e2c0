//! The process that drives the browser.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::http::request;

/// A driver that runs. Dropped, it is gone, and so are its browsers.
pub(crate) struct Driver {
    process: Child,
    pub(crate) at: SocketAddr,
}

impl Driver {
    /// Starts it at a port that it chooses.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub(crate) fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the driver starts");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("was started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // It ends with the process.
        drop(std::thread::spawn(move || lines.for_each(drop)));
        let port = port.expect("the driver says its port");
        Self { process, at: SocketAddr::from(([127, 0, 0, 1], port)) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It ends its browsers; killed, it would leave them alive.
        drop(request(self.at, "GET", "/shutdown", None, ""));
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        // It may be gone already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
