//! One case: what is measured, how long it may take, and its line.

use std::fmt;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::{Caller, Peer, Reason, asks, child, tells};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Asks, with so many under way at any time.
    Ask(u64),
    /// Tells, counted by the receiver.
    Tell,
}

impl Case {
    /// All that are measured.
    pub const ALL: [Self; 4] = [Self::Ask(1), Self::Ask(64), Self::Ask(1024), Self::Tell];

    /// The case that these words name.
    pub fn parse(words: &[&str]) -> Option<Self> {
        match words {
            ["ask", in_flight] => in_flight.parse().ok().filter(|count| *count > 0).map(Self::Ask),
            ["tell"] => Some(Self::Tell),
            _ => None,
        }
    }

    /// The beginning of its line.
    pub fn label(self, name: &str) -> String {
        match self {
            Self::Ask(in_flight) => format!("{name:<16} ask {in_flight:>5}"),
            Self::Tell => format!("{name:<16} tell     "),
        }
    }

    /// Ends this process, and the server with it, when the case takes too long.
    pub fn limit(self, name: &'static str) {
        thread::spawn(move || {
            thread::sleep(LIMIT);
            child::end();
            println!("{} cannot: not done within {} s", self.label(name), LIMIT.as_secs());
            exit(0);
        });
    }

    /// Measures the case against a new server, prints its line, and ends the process.
    pub(crate) async fn measure<P: Peer>(self) -> Result<(), Reason> {
        let measured = self.measured::<P>().await;
        // Before the line, so that the next contestant has the machine to itself once it is read.
        child::end();
        match measured {
            Ok(figures) => println!("{} {figures}", self.label(P::NAME)),
            Err(reason) => println!("{} cannot: {reason}", self.label(P::NAME)),
        }
        // Frameworks differ in how they stop, and none of it is measured.
        exit(0)
    }

    async fn measured<P: Peer>(self) -> Result<String, Reason> {
        let (address, _out) = child::start()?;
        let peer = P::connect(address).await?;
        reach(&peer).await?;
        match self {
            Self::Ask(in_flight) => asks::measure(&peer, in_flight).await.map(|figures| figures.to_string()),
            Self::Tell => tells::measure(&peer).await.map(|figures| figures.to_string()),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(in_flight) => write!(f, "ask {in_flight}"),
            Self::Tell => f.write_str("tell"),
        }
    }
}

/// Asks until the first answer comes, since frameworks differ in when a connection is ready.
async fn reach<P: Peer>(peer: &P) -> Result<(), Reason> {
    let deadline = Instant::now() + REACHED_WITHIN;
    loop {
        let answer = async { peer.caller(0).await?.count().await };
        match timeout(ATTEMPT, answer).await.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(_) => return Ok(()),
            Err(reason) if Instant::now() > deadline => {
                return Err(format!("the server was not reached: {reason}"));
            }
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

const LIMIT: Duration = Duration::from_secs(60);
const REACHED_WITHIN: Duration = Duration::from_secs(20);
const ATTEMPT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_as_they_are_written_and_nonsense_is_refused() {
        for case in Case::ALL {
            let text = case.to_string();
            assert_eq!(Case::parse(&text.split_whitespace().collect::<Vec<_>>()), Some(case));
        }
        for words in [&["ask"][..], &["ask", "0"], &["ask", "many"], &["tell", "1"], &[]] {
            assert_eq!(Case::parse(words), None, "{words:?}");
        }
    }
}
