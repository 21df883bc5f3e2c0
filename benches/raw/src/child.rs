//! The second process: the same binary, with a role in its environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use archipelago_tls::{Credentials, DevelopmentAuthority, Validity};

use crate::connect::Setup;
use crate::{Contestant, RawError, block_on, server};

/// The role of this process, if it was started as the child of a measurement.
pub fn child_role() -> Option<ChildRole> {
    Contestant::named(&std::env::var(ROLE).ok()?).map(ChildRole)
}

/// What a child does.
#[derive(Clone, Copy, Debug)]
pub struct ChildRole(Contestant);

impl ChildRole {
    /// Serves until the parent is done, then ends the process.
    pub fn run(self) -> ! {
        // The parent holds the other end of the standard input: it closes when the parent ends, however it ends.
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        match block_on(self.serve()) {
            Ok(()) => std::process::exit(0),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "the child failed: {error:?}");
                std::process::exit(1)
            }
        }
    }

    async fn serve(self) -> Result<(), RawError> {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let setup = Setup { contestant: self.0, address: loopback, credentials: own_credentials()? };
        let listener = setup.listen().await?;
        // In one write, and flushed, since the parent waits for the line.
        let mut out = std::io::stdout();
        out.write_all(format!("{}\n", listener.address()).as_bytes())?;
        out.flush()?;
        let mut wire = listener.accept().await?;
        server::serve(&mut *wire).await
    }
}

/// A running child; ends with its value.
pub(crate) struct Child {
    process: std::process::Child,
    contestant: Contestant,
    pems: [String; 3],
}

impl Child {
    pub(crate) fn start(contestant: Contestant) -> Result<Self, RawError> {
        let authority = DevelopmentAuthority::in_memory()?;
        let issued = authority.issue(NAME, Validity::Current)?;
        let pems = [authority.certificate().to_owned(), issued.certificate, issued.key];
        let process = Command::new(std::env::current_exe()?)
            .env(ROLE, contestant.name())
            .envs(PEMS.into_iter().zip(&pems))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self { process, contestant, pems })
    }

    /// How to reach the child, once it has said where it listens.
    pub(crate) fn setup(&mut self) -> Result<Setup, RawError> {
        let mut line = String::new();
        let out = self.process.stdout.take().ok_or(RawError::ChildSilent)?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| RawError::ChildSilent)?;
        let [ca, certificate, key] = &self.pems;
        let credentials = Credentials::from_pem(ca.as_bytes(), certificate.as_bytes(), key.as_bytes(), NAME)?;
        Ok(Setup { contestant: self.contestant, address, credentials })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn own_credentials() -> Result<Credentials, RawError> {
    let pem = |name| std::env::var(name).map_err(|_| RawError::Environment(name));
    let [ca, certificate, key] = PEMS;
    let (ca, certificate, key) = (pem(ca)?, pem(certificate)?, pem(key)?);
    Ok(Credentials::from_pem(ca.as_bytes(), certificate.as_bytes(), key.as_bytes(), NAME)?)
}

const ROLE: &str = "ARCHIPELAGO_RAW_ROLE";
const PEMS: [&str; 3] = ["ARCHIPELAGO_RAW_CA", "ARCHIPELAGO_RAW_CERTIFICATE", "ARCHIPELAGO_RAW_KEY"];
const NAME: &str = "raw.bench";
