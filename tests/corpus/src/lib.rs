//! What every decoder of bytes from a peer must keep.
//!
//! Each [`Target`] is a decoder, or several that belong together, and a function that gives it any bytes and panics where
//! a rule is broken: no bytes make it panic; it holds no more memory than a stated multiple of the bytes; what it reads it
//! writes again so that it reads the same; what has come in part is still to come, and no error; and whoever is sent away
//! is told why. The fuzz targets of `fuzz/` and the replay of the corpus in `tests/` call the same functions.
//!
//! Invariant: there is one target for each folder of `data/`, and one for each program of `fuzz/fuzz_targets`.

#[cfg(feature = "network")]
mod certificate;
mod control;
mod envelope;
mod frames;
mod handshake;
mod identity;
pub mod memory;
mod payload;
#[cfg(feature = "network")]
mod quic;
mod samples;
#[cfg(feature = "network")]
mod services;
mod store;
#[cfg(feature = "network")]
mod talk;
#[cfg(feature = "network")]
mod tcp;

/// One decoder, or several that belong together.
#[derive(Debug)]
pub struct Target {
    /// Its name: that of its folder in `data/`, and of its program in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Gives it some bytes, and says whether they made sense. Panics where a rule is broken.
    pub check: fn(&[u8]) -> bool,
    /// Bytes to begin with, most of them good.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many changed inputs a test has time for.
    pub rounds: usize,
}

/// All of them.
pub const TARGETS: &[&Target] = &[
    &LANE,
    &FRAME,
    &LARGE,
    &HANDSHAKE,
    &ENVELOPE,
    &POSTCARD_PAYLOAD,
    &JSON_PAYLOAD,
    &IDENTITY,
    &STORE_REQUEST,
    &STORE_ANSWER,
    &RECORD_VALUE,
    &MEMBERSHIP,
    &HANDOFF,
    &TABLE,
    #[cfg(feature = "network")]
    &SERVICE_WORDS,
    #[cfg(feature = "network")]
    &CERTIFICATE,
    #[cfg(feature = "network")]
    &TCP,
    #[cfg(feature = "network")]
    &QUIC,
];

/// The bytes of a lane: frames, one behind the other.
pub const LANE: Target = Target { name: "lane", check: frames::lane, seeds: frames::lanes, rounds: 3_000 };
/// The tag and body of one frame.
pub const FRAME: Target =
    Target { name: "frame", check: frames::frame, seeds: frames::bodies, rounds: 8_000 };
/// A stream beside the lane: the head of a large transfer, and its frame.
pub const LARGE: Target =
    Target { name: "large", check: frames::large, seeds: frames::transfers, rounds: 8_000 };
/// The first words of a peer.
pub const HANDSHAKE: Target =
    Target { name: "handshake", check: handshake::handshake, seeds: handshake::words, rounds: 5_000 };
/// A message to a named actor, or between the nodes themselves.
pub const ENVELOPE: Target =
    Target { name: "envelope", check: envelope::envelope, seeds: envelope::envelopes, rounds: 8_000 };
/// A message in postcard.
pub const POSTCARD_PAYLOAD: Target = Target {
    name: "postcard_payload",
    check: payload::postcard_payload,
    seeds: payload::postcards,
    rounds: 8_000,
};
/// A message in JSON.
pub const JSON_PAYLOAD: Target =
    Target { name: "json_payload", check: payload::json_payload, seeds: payload::jsons, rounds: 8_000 };
/// An identity of any kind, as text.
pub const IDENTITY: Target =
    Target { name: "identity", check: identity::identity, seeds: identity::texts, rounds: 8_000 };
/// A request to a node that serves its store.
pub const STORE_REQUEST: Target =
    Target { name: "store_request", check: store::store_request, seeds: store::requests, rounds: 5_000 };
/// The answer of a node that serves its store.
pub const STORE_ANSWER: Target =
    Target { name: "store_answer", check: store::store_answer, seeds: store::answers, rounds: 5_000 };
/// A record of a store that another node has written.
pub const RECORD_VALUE: Target =
    Target { name: "record_value", check: store::record_value, seeds: store::values, rounds: 5_000 };
/// What nodes tell each other about members.
pub const MEMBERSHIP: Target = Target {
    name: "membership",
    check: control::membership,
    seeds: control::words_of_members,
    rounds: 5_000,
};
/// What they tell each other about moves, and the states that come along.
pub const HANDOFF: Target =
    Target { name: "handoff", check: control::handoff, seeds: control::words_of_moves, rounds: 5_000 };
/// A table of ranges.
pub const TABLE: Target =
    Target { name: "table", check: control::table, seeds: control::tables, rounds: 5_000 };
/// The words of the services of a node.
#[cfg(feature = "network")]
pub const SERVICE_WORDS: Target =
    Target { name: "service_words", check: services::service_words, seeds: services::words, rounds: 2_000 };
/// The bytes of a TCP connection: the preamble and the chunks.
#[cfg(feature = "network")]
pub const TCP: Target = Target { name: "tcp", check: tcp::tcp, seeds: tcp::talks, rounds: 300 };
/// The bytes of a QUIC connection: the preamble of the lane, and a stream.
#[cfg(feature = "network")]
pub const QUIC: Target = Target { name: "quic", check: quic::quic, seeds: quic::talks, rounds: 40 };
/// The certificate of a peer.
#[cfg(feature = "network")]
pub const CERTIFICATE: Target = Target {
    name: "certificate",
    check: certificate::certificate,
    seeds: certificate::certificates,
    rounds: 5_000,
};
