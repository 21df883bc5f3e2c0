//! The first words of a peer, and what follows from them.

use archipelago_protocol::peer::{
    Handshake, Hello, KindEntry, PeerTables, Refusal, RefusalReason, Welcome, negotiate,
};
use bytes::BytesMut;

use crate::{memory, samples};

/// The first bytes of a connection.
pub(crate) fn handshake(bytes: &[u8]) -> bool {
    let mut rest = BytesMut::from(bytes);
    match memory::within(bytes.len(), MEMORY, || Handshake::take(&mut rest)) {
        Ok(None) => assert_eq!(rest, bytes, "nothing was taken"),
        Ok(Some(words)) => {
            let used = bytes.len() - rest.len();
            assert!(used > PREFIX && used <= PREFIX + Handshake::MAX_BYTES && bytes.ends_with(&rest));
            still_to_come(&bytes[..used]);
            survives(&words);
            heard(words);
            return true;
        }
        Err(error) => refused(&Refusal::from(&error)),
    }
    false
}

/// However little of it has come, it is still to come.
fn still_to_come(whole: &[u8]) {
    for cut in [0, 1, 4, PREFIX - 1, PREFIX, PREFIX + 1, whole.len() / 2, whole.len() - 1] {
        let mut part = BytesMut::from(&whole[..cut.min(whole.len() - 1)]);
        assert_eq!(Handshake::take(&mut part), Ok(None));
    }
}

fn survives(words: &Handshake) {
    let mut written = BytesMut::from(&words.encode().expect("what was read can be written")[..]);
    assert_eq!(Handshake::take(&mut written).as_ref(), Ok(&Some(words.clone())));
    assert!(written.is_empty());
}

/// Both sides of a connection decide about what they heard.
fn heard(words: Handshake) {
    let ours = samples::hello();
    match words {
        Handshake::Hello(hello) => met(&ours, hello),
        Handshake::Welcome(welcome) => {
            if let Err(refusal) = welcome.check(&ours) {
                refused(&refusal);
            }
            met(&ours, welcome.hello);
        }
        Handshake::Refusal(refusal) => {
            assert!(refusal.text.len() <= Refusal::MAX_TEXT && !refusal.text.contains(char::is_control));
        }
    }
}

fn met(ours: &Hello, theirs: Hello) {
    match negotiate(ours, &theirs) {
        Ok(version) => {
            assert!(ours.versions.contain(version) && theirs.versions.contain(version));
            survives(&Handshake::Welcome(Welcome { version, hello: ours.clone() }));
        }
        Err(refusal) => refused(&refusal),
    }
    let known = theirs.kinds.clone();
    let size = known.len() + known.iter().map(|kind| kind.messages.len()).sum::<usize>();
    let tables = memory::within(size, TABLES, || PeerTables::new(theirs.kinds));
    found_again(&tables, &known);
}

/// Every name leads to a place with that name, the first one.
fn found_again(tables: &PeerTables, kinds: &[KindEntry]) {
    assert_eq!(tables.len(), kinds.len());
    for kind in kinds.iter().take(LOOKED_UP) {
        let place = tables.kind(kind.name.as_str()).expect("a kind that was told");
        assert_eq!(tables.kind_name(place), Some(kind.name.as_str()));
        let first = &kinds[usize::from(place)];
        for (id, _) in first.messages.iter().take(LOOKED_UP) {
            let message = tables.message(place, *id).expect("a message that was told");
            assert_eq!(tables.message_at(place, message).map(|(found, _)| found), Some(*id));
        }
    }
}

/// A peer that is sent away hears why, whatever it had said.
fn refused(refusal: &Refusal) {
    assert!(!refusal.text.is_empty() && refusal.text.len() <= Refusal::MAX_TEXT);
    assert!(!matches!(refusal.reason, RefusalReason::Other(_)));
    survives(&Handshake::Refusal(refusal.clone()));
}

/// What peers say that fit and that do not, the whole of it and half of it.
pub(crate) fn words() -> Vec<Vec<u8>> {
    let hellos = samples::hellos();
    let welcome = Handshake::Welcome(Welcome { version: 1, hello: hellos[0].clone() });
    let refusal =
        Refusal::new(RefusalReason::Cluster, "our cluster is \"bank\", the peer's is \"b\u{fc}hne\"");
    let all = hellos.into_iter().map(Handshake::Hello).chain([welcome, Handshake::Refusal(refusal)]);
    let mut words: Vec<_> = all.map(|words| words.encode().expect("it fits").to_vec()).collect();
    words.push(words[0][..words[0].len() / 2].to_vec());
    words.push([&words[0][..], b"\x01\x00\x00\x00\x0a"].concat());
    words
}

const PREFIX: usize = 10;
/// The shortest entry of a list is 2 bytes long and takes 40, and a list may have room for twice what is in it.
const MEMORY: (usize, usize) = (64, 4 << 10);
/// Per entry: what finds it by its name.
const TABLES: (usize, usize) = (256, 1 << 10);
const LOOKED_UP: usize = 50;
