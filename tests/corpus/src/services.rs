//! The words of the services of a node: what clients, members and other datacenters ask, and what is answered.

use archipelago_protocol::contract::Epoch;
use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterState, MapEntry, Snapshot};
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::time::Millis;
use archipelago_runtime::corpus::{Reader, readers};
use serde::Serialize;

use crate::memory;

/// Any of these words.
pub(crate) fn service_words(bytes: &[u8]) -> bool {
    let read = |reader: &Reader| memory::within(bytes.len(), MEMORY, || (reader.read)(bytes));
    let all = readers();
    // Not `any`: each of them has to look.
    all.iter().filter(|reader| survives(reader, read(reader))).count() > 0
}

/// What one of them has read and written again, it reads as the same.
fn survives(reader: &Reader, read: Result<Vec<u8>, String>) -> bool {
    match read {
        Ok(written) => {
            assert_eq!((reader.read)(&written), Ok(written.clone()), "{}", reader.name);
            true
        }
        Err(why) => {
            assert!(!why.is_empty() && !why.contains("cannot be written"), "{}: {why}", reader.name);
            false
        }
    }
}

/// Words that nodes really say. A variant has its number in front, and a struct is its fields.
pub(crate) fn words() -> Vec<Vec<u8>> {
    let (node, generation, address) = (NodeId::new(7), Generation::new(3), "10.0.0.7:4710");
    let place = |owner: Option<(NodeId, Generation, &'static str)>| {
        postcard_of(&(2_u8, (256_u32, 9_u64, owner, true, Some("eu.main"))))
    };
    let json = |text: &str| text.as_bytes().to_vec();
    vec![
        json(r#"{"Layouts":["Account","Clerk"]}"#),
        json(r#"{"Where":["shard/Account/9",{"by":"shard","shards":256}]}"#),
        json(r#"[{"by":"actor"},null,{"by":"shard","shards":256},{"by":"range"}]"#),
        json(r#"{"owner":7,"generation":3,"address":"10.0.0.7:4710"}"#),
        postcard_of(&(0_u8, snapshot())),
        postcard_of(&(1_u8, Some(snapshot()))),
        postcard_of(&(3_u8, "Account", "anna", "eu.main", true)),
        postcard_of(&("Account", 4_u64)),
        postcard_of(&(2_u8, Some(address))),
        postcard_of(&("Account", (2_u8, "m", node))),
        postcard_of(&(1_u8, 2_u8)),
        postcard_of(&"actor://bank@10.0.0.7:4710/desk"),
        postcard_of(&("Account", "anna")),
        postcard_of(&("bank::Account/anna", node, generation)),
        postcard_of(&("Account", 9_u64, Some("anna"))),
        postcard_of(&Some((node, generation))),
        postcard_of(&((0_u8, "Account", "anna"), true, false, false)),
        place(Some((node, generation, address))),
        place(None),
        // A list that is longer than all there is, and no word of anybody.
        vec![1, 1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0xff; 24],
    ]
}

fn snapshot() -> Snapshot {
    let info = |name| DataCenterInfo::new(name, "eu", "").expect("a name");
    let entry = |name, standing| MapEntry { info: info(name), standing };
    Snapshot {
        epoch: Epoch(3),
        number: 4,
        age: Millis(200),
        draining: false,
        entries: vec![entry("main", DataCenterState::Active), entry("south", DataCenterState::Draining)],
    }
}

fn postcard_of(words: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(words).expect("it has a form")
}

/// The shortest entry of a list has 5 bytes and is read into a few hundred, in a list with room for twice what is in it.
const MEMORY: (usize, usize) = (256, 8 << 10);
