//! A server in a process of its own, that a test can pause, kill and restart.
//!
//! Invariant: no server outlives the process that started it, however that ends: a second process waits for the end of
//! the first and kills the server then.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ports::Port;

/// How one kind of server is started.
pub struct Recipe {
    /// What it is called when something goes wrong.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Where its clients reach it.
    pub host: IpAddr,
    /// How many ports it needs.
    pub ports: usize,
    /// What the program is told. Asked at every start, so that files can be written here too.
    pub arguments: OfPlace<Vec<String>>,
    /// Whether it serves; asked again and again, so it must answer soon.
    pub ready: OfPlace<bool>,
}

/// Something that depends on where a server lives.
pub type OfPlace<T> = Box<dyn Fn(&Place) -> T + Send + Sync>;

/// Where a server lives: a folder and ports that stay the same when it is restarted.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
    host: IpAddr,
    ports: Vec<Port>,
}

impl Place {
    /// A folder for its data; removed in the end.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its clients reach it; whatever else it listens for is on loopback.
    pub fn host(&self) -> IpAddr {
        self.host
    }

    /// One of its ports.
    ///
    /// # Panics
    ///
    /// If the recipe asked for fewer.
    pub fn port(&self, n: usize) -> u16 {
        self.ports[n].number
    }

    fn log(&self) -> PathBuf {
        self.folder().join("server.log")
    }
}

/// A running server. Killed when it is dropped.
pub struct ServerProcess {
    // Ends before its folder goes.
    running: Option<Running>,
    recipe: Recipe,
    place: Place,
}

impl ServerProcess {
    /// Starts a server and waits until it is ready.
    ///
    /// # Panics
    ///
    /// If it is not ready within 30 s; then its log is shown.
    pub fn start(recipe: Recipe) -> Self {
        let mut server = Self::settle(recipe);
        server.launch();
        server
    }

    /// Starts servers that are ready only together; `tell` learns before that where each of them lives.
    ///
    /// # Panics
    ///
    /// If one is not ready within 30 s; then its log is shown.
    pub fn start_together(recipes: Vec<Recipe>, tell: impl FnOnce(&[&Place])) -> Vec<Self> {
        let mut servers: Vec<Self> = recipes.into_iter().map(Self::settle).collect();
        tell(&servers.iter().map(Self::place).collect::<Vec<_>>());
        servers.iter_mut().for_each(Self::spawn);
        servers.iter_mut().for_each(Self::expect_ready);
        servers
    }

    fn settle(recipe: Recipe) -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix("archipelago-test-");
        let folder = match std::env::var_os(DATA) {
            Some(data) => builder.tempdir_in(data),
            None => builder.tempdir(),
        };
        let folder = folder.expect("the temporary folder can be written");
        let ports = (0..recipe.ports).map(|_| Port::take()).collect();
        let place = Place { folder, host: recipe.host, ports };
        Self { recipe, place, running: None }
    }

    /// Where it lives.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// One of its ports.
    pub fn port(&self, n: usize) -> u16 {
        self.place.port(n)
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.place.log()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Stops it from running without ending it, and waits until it stands still: connections stay open, nothing is answered.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn pause(&self) {
        self.running().signal(Signal::STOP);
        while !self.running().stands_still() {
            std::thread::yield_now();
        }
    }

    /// Lets it go on after [`pause`](Self::pause).
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn resume(&self) {
        self.running().signal(Signal::CONT);
    }

    /// Kills it, as a power failure would. Its folder and ports stay.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Asks it to end, as operators do, and waits until it has. Its folder and ports stay.
    ///
    /// # Panics
    ///
    /// If it does not run, or has not ended within 30 s.
    pub fn stop(&mut self) {
        self.running().signal(Signal::TERM);
        let start = Instant::now();
        while self.running.as_mut().is_some_and(|running| running.ended().is_none()) {
            assert!(
                start.elapsed() < READY_LIMIT,
                "{} does not end; it said:\n{}",
                self.recipe.name,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Starts it again, on the same ports with the same data, and waits until it is ready. Kills it first if it runs.
    ///
    /// # Panics
    ///
    /// If it is not ready within 30 s; then its log is shown.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap_or_else(|| panic!("{} does not run", self.recipe.name))
    }

    fn launch(&mut self) {
        self.spawn();
        self.expect_ready();
    }

    fn spawn(&mut self) {
        let (name, place) = (self.recipe.name, &self.place);
        let log = OpenOptions::new().create(true).append(true).open(place.log());
        let log = log.expect("the log can be written");
        let running = Running::start(&self.recipe, place, &log);
        self.running = Some(running.unwrap_or_else(|error| panic!("{name} cannot be started: {error}")));
    }

    fn expect_ready(&mut self) {
        if let Err(why) = self.wait_until_ready() {
            let name = self.recipe.name;
            panic!("{name} {why}; it said:\n{}", self.log());
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while !(self.recipe.ready)(&self.place) {
            if let Some(ended) = self.running.as_mut().and_then(Running::ended) {
                return Err(format!("ended at once ({ended})"));
            }
            if start.elapsed() > READY_LIMIT {
                return Err(format!("was not ready within {READY_LIMIT:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// The process, and the one that waits for the end of ours.
struct Running {
    server: Child,
    guard: Child,
}

impl Running {
    fn start(recipe: &Recipe, place: &Place, log: &File) -> std::io::Result<Self> {
        let mut server = Command::new(&recipe.program)
            .args((recipe.arguments)(place))
            .current_dir(place.folder())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .spawn()?;
        match guard(&server, place.folder()) {
            Ok(guard) => Ok(Self { server, guard }),
            Err(error) => {
                let _ = server.kill();
                let _ = server.wait();
                Err(error)
            }
        }
    }

    fn ended(&mut self) -> Option<String> {
        self.server.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Whether every thread of it has stopped: the signal alone does not wait for that.
    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.server.id())).expect("it runs");
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which ends with the last bracket.
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 'Z', 'X']))
        })
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has an id"), signal).expect("it is ours");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The guard first: once the server is reaped, its id may be another process's.
        for process in [&mut self.guard, &mut self.server] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Reads from a pipe that we hold open: at our end, however it comes, the pipe ends too.
fn guard(server: &Child, folder: &Path) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", r#"read -r _; kill -9 "$1"; sleep 0.1; rm -rf "$2""#, "guard"])
        .arg(server.id().to_string())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Where servers listen that only this machine reaches.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Whether an HTTP server on this loopback port answers `path` with success; for [`Recipe::ready`].
pub fn http_ok(port: u16, path: &str) -> bool {
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    answer(SocketAddr::from((LOOPBACK, port)), request.as_bytes())
        .is_some_and(|answer| answer.split(' ').nth(1) == Some("200"))
}

/// The first 64 bytes that a server at this address says, or answers to `request`; for [`Recipe::ready`].
pub fn answer(address: SocketAddr, request: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_LIMIT).ok()?;
    stream.set_read_timeout(Some(PROBE_LIMIT)).ok()?;
    stream.write_all(request).ok()?;
    let mut said = [0; 64];
    let length = stream.read(&mut said).ok()?;
    Some(String::from_utf8_lossy(&said[..length]).into_owned())
}

const READY_LIMIT: Duration = Duration::from_secs(30);
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Where servers keep what they write, if not in the folder for temporary files.
const DATA: &str = "ARCHIPELAGO_TEST_DATA";
