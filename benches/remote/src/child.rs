//! The second process: the same binary, hosting the target.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use archipelago_protocol::identity::NodeAddress;
use archipelago_tls::{Credentials, DevelopmentAuthority, Validity};

use crate::node::{Road, start};

/// A running child; ends with its value.
pub(crate) struct Child {
    process: std::process::Child,
    pub(crate) address: NodeAddress,
    pub(crate) credentials: Credentials,
}

impl Child {
    pub(crate) fn start(road: Road) -> Self {
        let authority = DevelopmentAuthority::in_memory().expect("an authority");
        let issued = authority.issue(NAME, Validity::Current).expect("a certificate");
        let pems = [authority.certificate().to_owned(), issued.certificate, issued.key];
        let mut process = Command::new(std::env::current_exe().expect("this binary"))
            .env(ROLE, road.name())
            .envs(PEMS.into_iter().zip(&pems))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started again");
        let mut line = String::new();
        let out = process.stdout.take().expect("the output is piped");
        BufReader::new(out).read_line(&mut line).expect("the child says where it is");
        let address = line.trim().parse().expect("an address");
        Self { process, address, credentials: credentials(&pems) }
    }
}

impl Child {
    /// Lets it end by itself, as it does when its parent is gone: what watches it can then finish.
    pub(crate) fn end(mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }

    /// Lets it stand still, for good.
    pub(crate) fn freeze(&self) {
        let pid = self.process.id().to_string();
        let stopped = Command::new("kill").args(["-STOP", &pid]).status();
        assert!(stopped.is_ok_and(|status| status.success()), "the child can be stopped");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The road of this process, if it was started as a child.
pub(crate) fn role() -> Option<Road> {
    Road::named(&std::env::var(ROLE).ok()?)
}

/// Hosts the target until the parent is gone.
pub(crate) async fn host(road: Road) {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let pems = PEMS.map(|name| std::env::var(name).expect("the parent hands out certificates"));
    let node = start(road, credentials(&pems), None).await.expect("the host starts");
    let mut out = std::io::stdout();
    writeln!(out, "{}", node.address()).expect("the parent listens");
    out.flush().expect("the parent listens");
    std::future::pending::<()>().await;
}

fn credentials([ca, certificate, key]: &[String; 3]) -> Credentials {
    Credentials::from_pem(ca.as_bytes(), certificate.as_bytes(), key.as_bytes(), NAME)
        .expect("our own certificates")
}

const ROLE: &str = "ARCHIPELAGO_REMOTE_ROLE";
const PEMS: [&str; 3] = ["ARCHIPELAGO_REMOTE_CA", "ARCHIPELAGO_REMOTE_CERTIFICATE", "ARCHIPELAGO_REMOTE_KEY"];
const NAME: &str = "remote.bench";
