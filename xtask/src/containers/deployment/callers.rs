//! Clients of the shops: threads that put into carts through one node each, and keep account of what they were told.
//!
//! Each cart has one item, which counts. What was acknowledged must be in it in the end; what was not answered may be.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the callers of one node were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    /// Puts that were answered with 200.
    acknowledged: usize,
    /// Puts that may have happened all the same: no answer came.
    unknown: usize,
    /// Answers that say something else, of which the first is kept.
    refused: usize,
    why: Option<String>,
}

impl Account {
    fn note(&mut self, told: Told) {
        match told {
            Told::Done => self.acknowledged += 1,
            Told::Nothing => self.unknown += 1,
            Told::NotTaken => {}
            Told::Refused(why) => {
                self.refused += 1;
                self.why.get_or_insert(why);
            }
        }
    }
}

/// What became of one put.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Done,
    /// Nobody took the connection.
    NotTaken,
    /// The connection was taken, or may have been, and nothing was said on it.
    Nothing,
    Refused(String),
}

pub(super) struct Callers {
    ports: [u16; 3],
    over: Arc<AtomicBool>,
    accounts: [Arc<Mutex<Account>>; 3],
    threads: Vec<JoinHandle<()>>,
}

impl Callers {
    /// Calls all nodes until [`end`](Self::end).
    pub(super) fn begin(ports: [u16; 3]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let accounts: [Arc<Mutex<Account>>; 3] = Default::default();
        let mut threads = Vec::new();
        for (account, port) in accounts.iter().zip(ports) {
            for number in 0..PER_NODE {
                let (over, account) = (Arc::clone(&over), Arc::clone(account));
                threads.push(std::thread::spawn(move || call(port, number * 7, &over, &account)));
            }
        }
        Self { ports, over, accounts, threads }
    }

    /// Waits until the second and the third have answered `more` calls more.
    pub(super) fn wait_for(&self, more: usize, limit: Duration) -> Result<(), String> {
        let count = |index: usize| self.account(index).acknowledged;
        let (before, until) = ([count(1), count(2)], Instant::now() + limit);
        while count(1) < before[0] + more || count(2) < before[1] + more {
            if Instant::now() > until {
                return Err(format!(
                    "the shops answer too little: {:?}",
                    [0, 1, 2].map(|index| self.account(index))
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Stops calling, and compares what was told with what is in the carts.
    pub(super) fn end(mut self) -> Result<String, String> {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a caller has panicked".to_owned())?;
        }
        let mut found = 0;
        for cart in 0..CARTS {
            // Whoever is asked, the answer is the same.
            found += counted(self.ports[1 + cart % 2], cart)?;
        }
        judge(&[0, 1, 2].map(|index| self.account(index)), found)
    }

    fn account(&self, index: usize) -> Account {
        self.accounts[index].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        // Whoever gave up does not wait for the threads, but they end.
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The first account is that of the node that was told to end.
fn judge(accounts: &[Account; 3], found: usize) -> Result<String, String> {
    let acknowledged: usize = accounts.iter().map(|one| one.acknowledged).sum();
    let unknown: usize = accounts.iter().map(|one| one.unknown).sum();
    let [leaving, rest @ ..] = accounts;
    if rest.iter().any(|one| one.refused + one.unknown > 0) || leaving.refused > 0 {
        return Err(format!("calls have failed: {accounts:?}"));
    }
    if leaving.acknowledged == 0 {
        return Err("the node that was told to end has answered nothing before".to_owned());
    }
    if !(acknowledged..=acknowledged + unknown).contains(&found) {
        return Err(format!(
            "{acknowledged} writes were acknowledged, {unknown} are unknown, and {found} are there"
        ));
    }
    Ok(format!(
        "of {acknowledged} writes none failed and none is lost ({unknown} without an answer, all to the one that left)"
    ))
}

/// Puts into one cart after the other, until it is over.
fn call(port: u16, first: usize, over: &AtomicBool, account: &Mutex<Account>) {
    let mut cart = first;
    while !over.load(Ordering::Relaxed) {
        cart = (cart + 1) % CARTS;
        let told = put(port, cart);
        let down = matches!(told, Told::Nothing | Told::NotTaken);
        account.lock().unwrap_or_else(PoisonError::into_inner).note(told);
        if down {
            // Whoever asks on and on where nobody answers only takes the processor from the others.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn put(port: u16, cart: usize) -> Told {
    let Ok(stream) = connect(port) else { return Told::NotTaken };
    match ask(stream, &format!("POST /carts/{cart}"), r#"{"item":"tea","count":1}"#) {
        Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => Told::Done,
        // Whoever publishes the port takes connections also when nobody is behind it, and hangs up without a word.
        Ok(answer) if answer.is_empty() => Told::Nothing,
        Err(_) => Told::Nothing,
        Ok(answer) => Told::Refused(answer.lines().next().unwrap_or_default().to_owned()),
    }
}

/// How many puts are in a cart.
fn counted(port: u16, cart: usize) -> Result<usize, String> {
    let answer = connect(port).and_then(|stream| ask(stream, &format!("GET /carts/{cart}"), ""));
    let answer = answer.map_err(|error| format!("cart {cart} cannot be read: {error}"))?;
    match answer.split_once("\r\n\r\n") {
        Some((_, "{}")) => Ok(0),
        Some((_, body)) => {
            body.trim_start_matches("{\"tea\":").trim_end_matches('}').parse().map_err(|_| answer.clone())
        }
        None => Err(answer),
    }
}

/// Whether the shop at this port answers as it should.
pub(super) fn answers(port: u16) -> bool {
    counted(port, 0).is_ok()
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// One request over a connection of its own; all that was answered.
fn ask(mut stream: TcpStream, what: &str, body: &str) -> std::io::Result<String> {
    let length = body.len();
    write!(
        stream,
        "{what} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

const PER_NODE: usize = 2;
/// So many that each node has some.
const CARTS: usize = 40;
/// Longer than any call of the shop may take.
const LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn account(acknowledged: usize, unknown: usize, refused: usize) -> Account {
        Account { acknowledged, unknown, refused, why: None }
    }

    #[test]
    fn a_failed_call_a_lost_write_and_one_too_many_are_found() {
        let (leaving, good) = (account(5, 1, 0), account(10, 0, 0));
        let told = |accounts: [Account; 3], found| judge(&accounts, found);
        assert!(told([leaving.clone(), good.clone(), good.clone()], 25).is_ok());
        assert!(told([leaving.clone(), good.clone(), good.clone()], 26).is_ok());
        assert!(
            told([leaving.clone(), good.clone(), good.clone()], 24).unwrap_err().contains("24 are there")
        );
        assert!(told([leaving.clone(), good.clone(), good.clone()], 27).is_err());
        assert!(told([leaving.clone(), good.clone(), account(10, 1, 0)], 25).is_err());
        assert!(told([leaving, good.clone(), account(10, 0, 1)], 25).is_err());
        assert!(told([account(5, 0, 1), good.clone(), good.clone()], 25).is_err());
        assert!(told([account(0, 0, 0), good.clone(), good], 20).is_err());
    }
}
