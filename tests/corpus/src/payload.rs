//! Messages as the two codecs write them.
//!
//! What a payload may be depends on the message; [`Sample`] has every shape that messages are made of.

use std::collections::{BTreeMap, BTreeSet};

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{
    ActivationRecord, ActorId, ActorPath, CorrelationId, NodeAddress, NodeInfo, OwnedKey, Placement,
};
use archipelago_protocol::message::{CallChain, Codec, MessageFlags, Target, TraceContext, TypeHint};
use serde::{Deserialize, Serialize};

use crate::{memory, samples};

/// A message of every shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Sample {
    /// Nothing.
    Unit,
    /// Numbers.
    Numbers(bool, u8, i16, u32, i64, u128, char),
    /// Texts, bytes, and lists of them.
    Texts {
        /// A text.
        text: String,
        /// Bytes.
        bytes: Vec<u8>,
        /// A list of texts that may be missing.
        list: Vec<Option<Box<str>>>,
    },
    /// Maps and sets.
    Maps(BTreeMap<String, Vec<u16>>, BTreeSet<u64>),
    /// The types of ours that messages carry.
    Ours(Box<Ours>),
    /// A failure.
    Failed(CallError),
}

/// The types of ours that messages carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ours {
    actor: ActorId,
    path: ActorPath,
    address: NodeAddress,
    key: OwnedKey,
    node: NodeInfo,
    placement: Placement,
    record: ActivationRecord,
    correlation: CorrelationId,
    chain: CallChain,
    flags: MessageFlags,
    target: Target,
    trace: Option<TraceContext>,
    hint: TypeHint,
}

/// A payload in postcard.
pub(crate) fn postcard_payload(bytes: &[u8]) -> bool {
    assert_eq!(Codec::Postcard.validate(bytes), Ok(()));
    read(Codec::Postcard, bytes)
}

/// A payload in JSON.
pub(crate) fn json_payload(bytes: &[u8]) -> bool {
    let valid = memory::within(bytes.len(), MEMORY, || Codec::Json.validate(bytes));
    let value: Result<serde_json::Value, _> = Codec::Json.decode(bytes);
    assert!(valid.is_ok() || value.is_err(), "a value, though it is not JSON");
    read(Codec::Json, bytes)
}

fn read(codec: Codec, bytes: &[u8]) -> bool {
    match memory::within(bytes.len(), MEMORY, || codec.decode::<Sample>(bytes)) {
        Ok(sample) => {
            assert_eq!(codec.validate(bytes), Ok(()));
            let written = codec.encode(&sample).expect("what was read can be written");
            assert_eq!(codec.decode::<Sample>(&written).as_ref(), Ok(&sample));
            let more = [&written[..], b"0"].concat();
            assert!(codec.decode::<Sample>(&more).is_err(), "bytes are left over");
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "the sender is told why");
            false
        }
    }
}

pub(crate) fn postcards() -> Vec<Vec<u8>> {
    samples().iter().map(|sample| Codec::Postcard.encode(sample).expect("it has a form")).collect()
}

pub(crate) fn jsons() -> Vec<Vec<u8>> {
    let odd =
        [&b"\"Un\\u0069t\""[..], b"[[[[[[[[]]]]]]]]", b"{\"Unit\":null} 1", b"1e999"].map(<[u8]>::to_vec);
    let good = samples().into_iter().map(|sample| Codec::Json.encode(&sample).expect("it has a form"));
    good.chain(odd).collect()
}

fn samples() -> Vec<Sample> {
    let list = vec![None, Some("gr\u{fc}n".into())];
    let mut samples = vec![
        Sample::Unit,
        Sample::Numbers(true, 255, -300, u32::MAX, i64::MIN, u128::MAX, '\u{10ffff}'),
        Sample::Texts { text: "a \"b\"\n".into(), bytes: vec![0, 128, 255], list },
        Sample::Maps(BTreeMap::from([("k".into(), vec![1, 300])]), BTreeSet::from([0, u64::MAX])),
        Sample::Ours(Box::new(ours())),
    ];
    samples.extend(samples::errors().into_iter().map(Sample::Failed));
    samples
}

fn ours() -> Ours {
    let (node, actor) = (samples::node(), "prod::Account/a%20b".parse::<ActorId>().expect("an id"));
    let (id, generation) = (node.id, archipelago_protocol::identity::Generation::new(4));
    let key: OwnedKey = "shard/Account/7".parse().expect("a key");
    Ours {
        path: "archipelago://bank@[::1]:80/a".parse().expect("a path"),
        address: node.address.clone(),
        key: "range/Account/a..m".parse().expect("a key"),
        placement: Placement { key, node: id, generation },
        record: ActivationRecord {
            actor: actor.clone(),
            node: id,
            generation,
            activated_at_ms: 1_700_000_000_000,
        },
        correlation: CorrelationId::new(1, 2, 3),
        chain: CallChain::empty().push(5),
        flags: MessageFlags::READ_ONLY,
        target: Target::Actor(actor.clone()),
        trace: TraceContext::new(1, 2, 1).ok(),
        hint: TypeHint::new("bank.Deposit").expect("a name"),
        node,
        actor,
    }
}

/// The shortest entry of a list is 1 byte long and takes 16, one of a map 48 and a share of a node; a list has room for
/// twice what is in it.
const MEMORY: (usize, usize) = (128, 4 << 10);
