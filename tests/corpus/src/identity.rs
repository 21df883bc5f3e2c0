//! Identities as text: in addresses, records, refs and configuration of peers.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use archipelago_protocol::identity::{
    ActorId, ActorKey, ActorPath, Kind, Namespace, NodeAddress, NodeId, OwnedKey, PartitionName, RoleName,
};
use archipelago_protocol::message::{TraceContext, TypeHint};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::memory;

/// A text that may be an identity of any kind.
pub(crate) fn identity(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut known = false;
    // These are keys of stores, or parts of them: a value has one text.
    known |= has_one_text::<ActorId>(text);
    known |= has_one_text::<OwnedKey>(text);
    known |= has_one_text::<Namespace>(text);
    known |= has_one_text::<Kind>(text);
    known |= has_one_text::<ActorKey>(text);
    known |= has_one_text::<RoleName>(text);
    known |= has_one_text::<PartitionName>(text);
    known |= has_one_text::<TypeHint>(text);
    known |= read::<ActorPath>(text).is_some();
    known |= read::<NodeAddress>(text).is_some();
    if let Ok(id) = text.parse::<NodeId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(trace) = text.parse::<TraceContext>() {
        assert_eq!(trace.to_string().parse(), Ok(trace));
    }
    known
}

fn has_one_text<T>(text: &str) -> bool
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq + Serialize + DeserializeOwned,
{
    let value = read::<T>(text);
    if let Some(value) = &value {
        assert_eq!(value.to_string(), text);
    }
    value.is_some()
}

fn read<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq + Serialize + DeserializeOwned,
{
    match memory::within(text.len(), MEMORY, || text.parse::<T>()) {
        Ok(value) => {
            let shown = value.to_string();
            assert!(shown.len() <= LONGEST, "{shown}");
            assert_eq!(shown.parse::<T>().ok().as_ref(), Some(&value));
            survives(&value);
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let json = serde_json::to_vec(text).expect("a text is JSON");
            assert!(serde_json::from_slice::<T>(&json).is_err(), "refused as text, taken as JSON: {text:?}");
            None
        }
    }
}

fn survives<T: Debug + PartialEq + Serialize + DeserializeOwned>(value: &T) {
    let json = serde_json::to_vec(value).expect("it has a form in JSON");
    assert_eq!(&serde_json::from_slice::<T>(&json).expect("the form is read"), value);
    let bytes = postcard::to_allocvec(value).expect("it has a form in postcard");
    assert_eq!(&postcard::from_bytes::<T>(&bytes).expect("the form is read"), value);
}

/// One text of each kind and form.
pub(crate) fn texts() -> Vec<Vec<u8>> {
    let texts = [
        "prod::Account/alice%20b",
        "a.b-c::K_1/%C3%BC~@",
        "archipelago://bank/greeter/worker-1",
        "archipelago://bank@10.0.0.7:4710/a/b%2Fc",
        "archipelago://bank@[::1]:80/x",
        "node-1.example.org:4710",
        "[2001:db8::1]:0",
        "127.0.0.1:65535",
        "actor/prod::Account/7",
        "shard/Account/4294967295",
        "range/Account/a..m%20%C3%A9",
        "role/coordinator.bank",
        "00000000000000ab",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "gr\u{fc}n \u{1f600}",
        // Not as we write it: lower-case, not needed, not UTF-8, no escape, a dot segment, a sign.
        "a::K/%c3%bc",
        "a::K/%41",
        "a::K/%FF",
        "a::K/x%2",
        "archipelago://bank/a/../b",
        "localhost:+80",
        "shard/Account/07",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Longer than every identity: a path of 512 bytes with every byte escaped, behind the longest system and address.
const LONGEST: usize = 3 * 512 + 64 + 253 + 40;
/// Parts are decoded into texts of their own, and errors may quote.
const MEMORY: (usize, usize) = (4, 1 << 10);
