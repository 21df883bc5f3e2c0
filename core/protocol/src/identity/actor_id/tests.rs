use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};

use proptest::prelude::*;

use super::*;
use crate::identity::arbitrary::{actor_id, key};

fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

/// Proves: R1, R4
#[test]
fn text_is_namespace_kind_and_key() {
    let id = namespace("bank").actor_id("Account", "alice").unwrap();
    assert_eq!(id.to_string(), "bank::Account/alice");
    assert_eq!(
        (id.namespace().as_str(), id.kind().as_str(), id.key().as_str()),
        ("bank", "Account", "alice")
    );
}

/// Proves: C53, R4
#[test]
fn odd_keys_are_percent_encoded() {
    let id = namespace("n").actor_id("K", "a/b::c é@x.y_~-").unwrap();
    assert_eq!(id.to_string(), "n::K/a%2Fb%3A%3Ac%20%C3%A9@x.y_~-");
}

/// Proves: R6
#[test]
fn not_exactly_one_separator_is_a_format_error() {
    for (text, found) in [("", 0), ("bank", 0), ("bank:Account/a", 0), ("a::b::K/x", 2), ("a::K/x::y::z", 3)]
    {
        let error = ActorIdError::InvalidFormat(FormatFault::Separator { found });
        assert_eq!(ActorId::from_string(text), Err(error), "{text}");
    }
}

/// Proves: R7
#[test]
fn not_exactly_one_slash_is_a_format_error() {
    for (text, found) in [("n::K", 0), ("n::", 0), ("n::K/a/b", 2), ("n::K/a/", 2), ("n::K//a/b", 3)] {
        let error = ActorIdError::InvalidFormat(FormatFault::Slash { found });
        assert_eq!(ActorId::from_string(text), Err(error), "{text}");
    }
}

/// Proves: R8, R9, R10
#[test]
fn empty_parts_are_refused() {
    for (text, field) in [("::K/a", IdField::Namespace), ("n::/a", IdField::Kind), ("n::K/", IdField::Key)] {
        assert_eq!(ActorId::from_string(text), Err(ActorIdError::Empty { field }), "{text}");
    }
    assert_eq!(Namespace::new(""), Err(ActorIdError::Empty { field: IdField::Namespace }));
    assert_eq!(namespace("n").actor_id("", "a"), Err(ActorIdError::Empty { field: IdField::Kind }));
    assert_eq!(namespace("n").actor_id("K", ""), Err(ActorIdError::Empty { field: IdField::Key }));
}

/// Proves: R11, C53
#[test]
fn namespace_and_kind_keep_to_their_alphabet_and_keys_to_printable_text() {
    assert!(namespace("Az09._-").actor_id("Az09._-", "any thing: /%é").is_ok());
    let refused = |field, character, at| Err(ActorIdError::InvalidCharacter { field, character, at });
    for (text, character, at) in
        [("a b", ' ', 1), ("é", 'é', 0), ("a:", ':', 1), ("a/b", '/', 1), ("a\n", '\n', 1)]
    {
        assert_eq!(Namespace::new(text).map(|_| ()), refused(IdField::Namespace, character, at));
        assert_eq!(Kind::new(text).map(|_| ()), refused(IdField::Kind, character, at));
    }
    for (text, character, at) in
        [("a\n", '\n', 1), ("\0", '\0', 0), ("é\u{7f}", '\u{7f}', 2), ("\u{85}", '\u{85}', 0)]
    {
        assert_eq!(ActorKey::new(text).map(|_| ()), refused(IdField::Key, character, at));
    }
}

/// Proves: R12, C53
#[test]
fn parts_and_the_whole_are_bounded() {
    let too_long = |field, len, max| Err(ActorIdError::TooLong { field, len, max });
    assert!(Namespace::new(&"n".repeat(64)).is_ok());
    assert_eq!(Namespace::new(&"n".repeat(65)).map(|_| ()), too_long(IdField::Namespace, 65, 64));
    assert_eq!(Kind::new(&"K".repeat(65)).map(|_| ()), too_long(IdField::Kind, 65, 64));
    assert!(ActorKey::new(&"é".repeat(100)).is_ok());
    assert_eq!(ActorKey::new(&"é".repeat(101)).map(|_| ()), too_long(IdField::Key, 202, 200));

    let widest = namespace(&"n".repeat(25)).actor_id(&"K".repeat(28), &" ".repeat(200)).unwrap();
    assert_eq!(widest.to_string().len(), 656);
    assert_eq!(widest.to_string().parse(), Ok(widest));
    let wider = namespace(&"n".repeat(26)).actor_id(&"K".repeat(28), &" ".repeat(200));
    assert_eq!(wider.map(|_| ()), too_long(IdField::Id, 257, 256));
}

/// Proves: R14, R23
#[test]
fn ids_that_differ_in_one_part_are_different_actors() {
    let texts = ["a::K/x", "b::K/x", "a::L/x", "a::K/y"];
    let ids: BTreeSet<ActorId> = texts.iter().map(|text| text.parse().unwrap()).collect();
    let hashes: BTreeSet<u64> = ids.iter().map(ActorId::stable_hash).collect();
    assert_eq!((ids.len(), hashes.len()), (4, 4));
}

#[test]
fn ids_of_a_known_kind_share_its_text() {
    let (namespace, kind) = (namespace("bank"), Kind::new("Account").unwrap());
    let id = namespace.actor_id_of(&kind, "alice").unwrap();
    assert!(core::ptr::eq(id.kind().as_str(), kind.as_str()));
    assert!(core::ptr::eq(id.namespace().as_str(), namespace.as_str()));
}

/// Proves: C23
#[test]
fn the_hash_of_an_id_is_part_of_the_protocol() {
    let id: ActorId = "bank::Account/alice".parse().unwrap();
    assert_eq!(id.stable_hash(), stable_hash_parts(&["bank", "Account", "alice"]));
    assert_eq!(id.stable_hash(), 0x476c_8fb8_ae97_f234);
}

/// Proves: R5
#[test]
fn errors_say_what_is_wrong() {
    let message = |text: &str| ActorId::from_string(text).unwrap_err().to_string();
    assert_eq!(message("x"), "an actor id is written namespace::Kind/key: expected one '::', found 0");
    assert_eq!(message("::K/x"), "the namespace is empty");
    assert_eq!(
        message("n::K K/x"),
        "the kind holds ' ' at byte 1, allowed are letters, digits, '.', '_' and '-'"
    );
    assert_eq!(
        message("n::K/a b"),
        "an actor id is written namespace::Kind/key: the key is not properly percent-encoded at byte 1"
    );
}

#[test]
fn decoding_checks_what_it_reads() {
    assert!(serde_json::from_str::<ActorId>("\"n::K/a b\"").is_err());
    assert!(serde_json::from_str::<Kind>("\"a/b\"").is_err());
    assert!(serde_json::from_str::<ActorKey>("\"\\n\"").is_err());
    for parts in [("", "K", "x"), ("n", "K/", "x"), ("n", "K", "\n")] {
        let bytes = postcard::to_allocvec(&parts).unwrap();
        assert!(postcard::from_bytes::<ActorId>(&bytes).is_err(), "{parts:?}");
    }
    let (name, key) = ("n".repeat(64), "k".repeat(200));
    let bytes = postcard::to_allocvec(&(&name, &name, &key)).unwrap();
    assert!(postcard::from_bytes::<ActorId>(&bytes).is_err());
}

proptest! {
    /// Proves: R5, R15, C53
    #[test]
    fn an_id_survives_its_text(id in actor_id()) {
        prop_assert_eq!(ActorId::from_string(&id.to_string()), Ok(id));
    }

    /// Proves: R2, R15, R108
    #[test]
    fn an_id_survives_json_and_postcard(id in actor_id()) {
        let json = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(&json, &format!("\"{id}\""));
        prop_assert_eq!(&serde_json::from_str::<ActorId>(&json).unwrap(), &id);
        let bytes = postcard::to_allocvec(&id).unwrap();
        let parts: (&str, &str, &str) = postcard::from_bytes(&bytes).unwrap();
        prop_assert_eq!(parts, (id.namespace().as_str(), id.kind().as_str(), id.key().as_str()));
        prop_assert_eq!(postcard::from_bytes::<ActorId>(&bytes).unwrap(), id);
    }

    /// Proves: R13, R14, R16
    #[test]
    fn ids_are_equal_exactly_when_their_texts_are(key_a in key(), key_b in key()) {
        let id = |key: &str| namespace("n").actor_id("K", key).unwrap();
        prop_assert_eq!(id(&key_a), id(&key_a));
        prop_assert_eq!(id(&key_a) == id(&key_b), key_a == key_b);
        prop_assert_eq!(id(&key_a).to_string() == id(&key_b).to_string(), key_a == key_b);
        // Two keys drawn by themselves are never nearly equal; nothing may be trimmed or folded.
        for near in [format!("{key_a} "), format!(" {key_a}"), key_a.to_uppercase(), key_a.to_lowercase()] {
            let same = namespace("n").actor_id("K", &near).is_ok_and(|near| near == id(&key_a));
            prop_assert_eq!(same, key_a == near);
        }
    }

    /// Proves: R5
    #[test]
    fn parsing_any_text_never_panics_and_what_parses_is_canonical(
        any_text in any::<String>(), near in "[a-b]{0,2}(::)?[a-b]{0,2}/?[%2fF a-b/:]{0,8}",
    ) {
        for text in [any_text, near] {
            if let Ok(id) = ActorId::from_string(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn decoding_any_bytes_never_panics(bytes in any::<alloc::vec::Vec<u8>>()) {
        let _ = postcard::from_bytes::<ActorId>(&bytes);
        let _ = serde_json::from_slice::<ActorId>(&bytes);
    }
}
