//! A codec whose id belongs to the library.

use archipelago::codec::{CodecError, CodecId, PayloadCodec, Postcard};
use archipelago::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

struct Borrowed;

impl PayloadCodec for Borrowed {
    const ID: CodecId = CodecId(3);

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        Postcard::encode(value)
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        Postcard::decode(bytes)
    }
}

#[remote(i64, codec = Borrowed)]
struct Withdraw(i64);

fn main() {}
