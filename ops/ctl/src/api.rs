//! The admin API of one node, over HTTP.
//!
//! The client is `ureq` without TLS: the API speaks plain HTTP, a command needs no executor, and it bounds every step of a request
//! by a deadline. It follows no redirect and asks no proxy, so the token goes to the address that was named and nowhere else.
//!
//! Invariant: every request ends, and no answer takes more memory than its bound.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;

use crate::trouble::Trouble;

/// Where a node answers, and what proves that one may change something.
#[derive(Clone)]
pub(crate) struct Api {
    base: String,
    token: Option<String>,
    within: Duration,
}

/// The events of a node as they come.
pub(crate) struct Stream {
    lines: BufReader<Box<dyn Read>>,
}

impl Api {
    /// # Errors
    ///
    /// The address or the token cannot be used.
    pub(crate) fn new(base: &str, token_file: Option<&Path>, within: Duration) -> Result<Self, Trouble> {
        let base = checked(base)?;
        Ok(Self { base, token: token_file.map(read_token).transpose()?, within })
    }

    /// Where it is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Reads something.
    ///
    /// # Errors
    ///
    /// The node refuses, or nobody answers.
    pub(crate) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Trouble> {
        let mut request = agent(self.within, None).get(self.address(path, query));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.answer(request.call())
    }

    /// Changes something.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        self.post_within(path, body, self.within)
    }

    /// The same, of something that takes its time.
    pub(crate) fn post_within(&self, path: &str, body: &Value, within: Duration) -> Result<Value, Trouble> {
        let mut request = agent(within, None).post(self.address(path, &[]));
        request = request.header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.answer(request.send(body.to_string().as_bytes()))
    }

    /// Follows the events; `until` bounds how long, if it is said.
    pub(crate) fn events(&self, until: Option<Duration>) -> Result<Stream, Trouble> {
        let mut request = streaming_agent(self.within, until).get(self.address("/v1/events", &[]));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.call().map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            let reader: Box<dyn Read> =
                Box::new(response.into_body().into_with_config().limit(u64::MAX).reader());
            return Ok(Stream { lines: BufReader::new(reader) });
        }
        self.answer(Ok(response))
            .and_then(|_| Err(Trouble::Unreachable(format!("{} sends no events", self.base))))
    }

    fn address(&self, path: &str, query: &[(&str, &str)]) -> String {
        let words: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let mark = if words.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{}", self.base, words.join("&"))
    }

    fn answer(&self, answered: Result<Response<ureq::Body>, ureq::Error>) -> Result<Value, Trouble> {
        let mut response = answered.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        let text = text.map_err(|error| self.unreachable(&error))?;
        let none = || {
            Trouble::Unreachable(format!("{} answers with status {status}, and is no admin API", self.base))
        };
        let value: Value = serde_json::from_str(&text).map_err(|_| none())?;
        if status.is_success() {
            return Ok(value);
        }
        let word = |name: &str| value["error"][name].as_str().map(str::to_owned);
        match (word("code"), word("message")) {
            (Some(code), Some(message)) => Err(Trouble::Refused { code, message }),
            _ => Err(none()),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Trouble {
        let why = match error {
            ureq::Error::Timeout(_) => "no answer in time".to_owned(),
            ureq::Error::BodyExceedsLimit(most) => format!("an answer of more than {most} bytes"),
            other => other.to_string(),
        };
        Trouble::Unreachable(format!("{} cannot be asked: {why}", self.base))
    }
}

impl Stream {
    /// The data of the next event; none when the node has gone.
    ///
    /// # Errors
    ///
    /// Nothing came for long, not even a sign of life, or the node sends something else.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Trouble> {
        loop {
            let mut line = Vec::new();
            let read = Read::by_ref(&mut self.lines).take(LONGEST_EVENT).read_until(b'\n', &mut line);
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(Trouble::Unreachable(format!("the events: {error}"))),
            }
            if let Some(data) = line.strip_prefix(b"data:") {
                let event = serde_json::from_slice(data);
                return event.map(Some).map_err(|error| Trouble::Unreachable(format!("the events: {error}")));
            }
        }
    }
}

/// A client whose requests end within a time.
pub(crate) fn agent(within: Duration, user_agent: Option<&str>) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(within))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(user_agent.unwrap_or(concat!("archipelago/", env!("CARGO_PKG_VERSION"))));
    config.build().new_agent()
}

/// One that reads for as long as something comes.
fn streaming_agent(within: Duration, until: Option<Duration>) -> Agent {
    let config = Agent::config_builder()
        .timeout_connect(Some(within))
        .timeout_recv_response(Some(within))
        .timeout_per_read(Some(SILENCE))
        .timeout_global(until)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None);
    config.build().new_agent()
}

/// One part of a path, or a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let encoded: String = text.bytes().map(one).collect();
    // A part of these alone would be taken for a step in the path.
    match encoded.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => encoded,
    }
}

fn checked(base: &str) -> Result<String, Trouble> {
    let wrong = |why: &str| Trouble::Usage(format!("--api {base:?}: {why}"));
    if base.starts_with("https://") {
        return Err(wrong("the admin API speaks plain HTTP; reach it by a tunnel, or on the machine itself"));
    }
    let rest = base.strip_prefix("http://").ok_or_else(|| wrong("begin with http://"))?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty()
        || authority.contains('@')
        || rest.contains(['?', '#', ' '])
        || rest.contains(char::is_control)
    {
        return Err(wrong("it is http://host:port, without a user and a query"));
    }
    Ok(base.trim_end_matches('/').to_owned())
}

fn read_token(path: &Path) -> Result<String, Trouble> {
    let wrong = |why: String| Trouble::Usage(format!("the token in {}: {why}", path.display()));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    file.take(LONGEST_TOKEN + 3).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    let token = text.trim_end_matches(['\r', '\n']);
    let sound = !token.is_empty() && token.len() as u64 <= LONGEST_TOKEN;
    if sound && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(token.to_owned())
    } else {
        Err(wrong("a token has visible ASCII characters, 1024 at most".to_owned()))
    }
}

/// The longest answer, the longest line of the events and the longest token, in bytes.
const LONGEST_ANSWER: u64 = 64 << 20;
const LONGEST_EVENT: u64 = 1 << 20;
const LONGEST_TOKEN: u64 = 1_024;

/// A node says something every fifteen seconds, if only that it is still there.
const SILENCE: Duration = Duration::from_secs(45);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_are_parts_whatever_is_in_them() {
        assert_eq!(encoded("a/b?c#d%\u{e9} "), "a%2Fb%3Fc%23d%25%C3%A9%20");
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(encoded("..a"), "..a");
    }

    #[test]
    fn addresses_that_are_none_are_refused_before_anything_is_sent() {
        for wrong in
            ["https://a:1", "a:1", "http://", "http://u:p@a:1", "http://a:1?x", "http://a b", "ftp://a"]
        {
            assert!(matches!(checked(wrong), Err(Trouble::Usage(_))), "{wrong}");
        }
        assert_eq!(checked("http://127.0.0.1:4780/").unwrap(), "http://127.0.0.1:4780");
        assert_eq!(checked("http://[::1]:4780/ops").unwrap(), "http://[::1]:4780/ops");
    }
}
