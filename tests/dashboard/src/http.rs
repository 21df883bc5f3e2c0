//! Requests of the tests' own, to hold the page against what the API answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What a server answered.
#[derive(Debug)]
pub struct Answer {
    /// The number of its status.
    pub status: u16,
    /// Its lines before the body.
    pub head: String,
    /// Its body; null if that is no JSON.
    pub body: Value,
}

/// One request over a connection of its own.
pub(crate) fn request(
    to: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Type: application/json\r\n{token}\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let answer = whole(&mut stream)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or_default();
    Ok(Answer { status, head: head.to_owned(), body })
}

/// Reads until as much is there as the head promises. The driver of the browser says that it closes the connection, and does not.
fn whole(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while promised(&answer).is_none_or(|length| answer.len() < length) {
        match stream.read(&mut part)? {
            0 => break,
            count => answer.extend_from_slice(&part[..count]),
        }
    }
    Ok(answer)
}

/// The length of the whole answer, once its head is there and says it.
fn promised(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    Some(end + 4 + length.trim().parse::<usize>().ok()?)
}

const PATIENCE: Duration = Duration::from_secs(20);
