use alloc::string::String;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Deposit {
    amount: i64,
    note: String,
    tags: Vec<Option<u8>>,
}

fn deposit() -> impl Strategy<Value = Deposit> {
    (any::<i64>(), any::<String>(), any::<Vec<Option<u8>>>()).prop_map(|(amount, note, tags)| Deposit {
        amount,
        note,
        tags,
    })
}

const BOTH: [Codec; 2] = [Codec::Postcard, Codec::Json];

/// Proves: C15
#[test]
fn the_built_in_codecs_have_fixed_ids_and_postcard_is_the_default() {
    assert_eq!((Codec::Postcard.id(), Codec::Json.id()), (CodecId(1), CodecId(2)));
    assert_eq!(Codec::default(), Codec::Postcard);
    for codec in BOTH {
        assert_eq!(Codec::from_id(codec.id()), Ok(codec));
    }
}

#[test]
fn an_unknown_codec_is_an_explicit_error() {
    for id in [0, 3, 128, 255].map(CodecId) {
        assert_eq!(Codec::from_id(id), Err(CodecError::Unknown { id }));
    }
    assert_eq!(CodecError::Unknown { id: CodecId(9) }.to_string(), "unknown codec 9");
}

#[test]
fn bytes_behind_the_value_are_refused() {
    for codec in BOTH {
        let mut bytes = codec.encode(&7_u8).unwrap();
        bytes.extend_from_slice(b" 1");
        let error = CodecError::TrailingBytes { codec: codec.id() };
        assert_eq!(codec.decode::<u8>(&bytes), Err(error));
    }
    assert_eq!(Codec::Json.decode::<u8>(b" 7 \n"), Ok(7), "white space is part of JSON");
}

/// Proves: R68
#[test]
fn a_json_payload_must_be_json() {
    for valid in [&b"{\"a\":[1,null,\"x\"]}"[..], b"7", b" \"x\" "] {
        assert_eq!(Codec::Json.validate(valid), Ok(()));
    }
    for invalid in [&b""[..], b"{", b"{\"a\"}", b"1 2", b"{}x", b"[1,]", b"\"\xff\"", b"nul"] {
        assert!(Codec::Json.validate(invalid).is_err(), "{invalid:?}");
    }
}

/// Proves: R61, R109
#[test]
fn json_payloads_are_what_serde_json_writes() {
    let value = Deposit { amount: -1, note: "é".into(), tags: alloc::vec![None, Some(1)] };
    let expected = r#"{"amount":-1,"note":"é","tags":[null,1]}"#;
    assert_eq!(Codec::Json.encode(&value).unwrap(), expected.as_bytes());
}

#[test]
fn a_length_that_lies_allocates_nothing() {
    // A vector of 2^62 elements, as postcard writes its length.
    let bytes = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1, 2, 3];
    assert!(Codec::Postcard.decode::<Vec<u64>>(&bytes).is_err());
    assert!(Codec::Postcard.decode::<String>(&bytes).is_err());
}

/// A third codec, as an application would add it.
struct Debugging;

impl PayloadCodec for Debugging {
    const ID: CodecId = CodecId::FIRST_CUSTOM;

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        Ok([b"debug ", &Codec::Json.encode(value)?[..]].concat())
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let json = bytes
            .strip_prefix(b"debug ")
            .ok_or_else(|| CodecError::Decode { codec: Self::ID, reason: "no prefix".into() })?;
        Codec::Json.decode(json)
    }
}

/// Proves: R103, R480
#[test]
fn code_written_for_any_codec_works_with_a_third_one() {
    fn round_trip<C: PayloadCodec>() -> (CodecId, u64) {
        let bytes = C::encode(&7_u64).unwrap();
        let mut appended = BytesMut::new();
        C::encode_into(&7_u64, &mut appended, bytes.len()).unwrap();
        assert_eq!(appended, bytes[..]);
        (C::ID, C::decode(&bytes).unwrap())
    }
    assert_eq!(round_trip::<Postcard>(), (CodecId::POSTCARD, 7));
    assert_eq!(round_trip::<Json>(), (CodecId::JSON, 7));
    assert_eq!(round_trip::<Debugging>(), (CodecId(128), 7));
}

#[test]
fn a_codec_that_writes_beside_the_buffer_keeps_to_the_limit() {
    let mut out = BytesMut::from(&b"before"[..]);
    let (value, limit) = ("long", b"debug ".len());
    let error = Debugging::encode_into(value, &mut out, limit);
    assert_eq!(error, Err(CodecError::TooLarge { limit }));
    assert_eq!(out, b"before"[..], "nothing is left behind");
    Debugging::encode_into(value, &mut out, 12).unwrap();
    assert_eq!(out, b"beforedebug \"long\""[..]);
}

#[test]
fn a_value_is_appended_up_to_the_limit_and_not_a_byte_more() {
    let value = Deposit { amount: 7, note: "ab".into(), tags: alloc::vec![None] };
    for codec in BOTH {
        let encoded = codec.encode(&value).unwrap();
        let mut out = BytesMut::from(&b"before"[..]);
        for limit in 0..encoded.len() {
            assert_eq!(codec.encode_into(&value, &mut out, limit), Err(CodecError::TooLarge { limit }));
            assert_eq!(out, b"before"[..], "nothing is left behind");
        }
        codec.encode_into(&value, &mut out, encoded.len()).unwrap();
        assert_eq!(out, [b"before", &encoded[..]].concat());
    }
    assert_eq!(CodecError::TooLarge { limit: 3 }.to_string(), "the value needs more than 3 bytes");
}

/// Has no form in any codec, which shows only after a part of it was written.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error, SerializeTuple};
        serializer.serialize_tuple(2)?.serialize_element("written")?;
        Err(S::Error::custom("no form"))
    }
}

#[test]
fn a_value_without_form_leaves_nothing_behind() {
    for codec in BOTH {
        let mut out = BytesMut::from(&b"before"[..]);
        let error = codec.encode_into(&Unwritable, &mut out, 100).unwrap_err();
        assert!(matches!(error, CodecError::Encode { .. }), "{error:?}");
        assert_eq!(out, b"before"[..]);
    }
}

proptest! {
    #[test]
    fn appending_writes_what_encode_does(value in deposit()) {
        for codec in BOTH {
            let mut out = BytesMut::new();
            codec.encode_into(&value, &mut out, usize::MAX).unwrap();
            prop_assert_eq!(&out[..], codec.encode(&value).unwrap());
        }
    }

    /// Proves: R103, R104, R108, R466
    #[test]
    fn values_survive_both_codecs(value in deposit()) {
        for codec in BOTH {
            let bytes = codec.encode(&value).unwrap();
            prop_assert_eq!(codec.validate(&bytes), Ok(()));
            prop_assert_eq!(codec.decode::<Deposit>(&bytes), Ok(value.clone()));
        }
    }

    #[test]
    fn decoding_any_bytes_never_panics(bytes in any::<Vec<u8>>(), text in any::<String>()) {
        for codec in BOTH {
            for bytes in [&bytes[..], text.as_bytes()] {
                let _ = codec.decode::<Deposit>(bytes);
                let _ = codec.validate(bytes);
            }
        }
    }

    #[test]
    fn a_cut_payload_is_refused(value in deposit(), cut in any::<proptest::sample::Index>()) {
        for codec in BOTH {
            let bytes = codec.encode(&value).unwrap();
            prop_assert!(codec.decode::<Deposit>(&bytes[..cut.index(bytes.len())]).is_err());
        }
    }
}
