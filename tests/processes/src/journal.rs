//! What a member writes down about its own work, for the [oracle](crate::oracle).
//!
//! Each process has a file of its own, and each line is one write, so that what was written before a `kill -9` is there.
//! The time is the machine's: all processes read the same clock, also in other network namespaces.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use archipelago_protocol::identity::Generation;
use rustix::time::{ClockId, clock_gettime};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};

/// What somebody did for an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A job of it started.
    Start,
    /// A reply of it left the node.
    Reply,
}

/// One deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What.
    pub deed: Deed,
    /// For which actor.
    pub actor: u64,
    /// The generation under which it was owned.
    pub generation: Generation,
    /// When, in nanoseconds of the machine.
    pub at: u64,
}

/// What the journals of a folder say.
#[derive(Clone, Debug, Default)]
pub struct Journals {
    /// What was done for actors, in no order.
    pub marks: Vec<Mark>,
    /// What the nodes said about themselves and the cluster, each with its time, in no order.
    pub events: Vec<(u64, String)>,
}

/// A reply's part that is noted when the reply leaves.
///
/// The runtime reads the clock, finds that the node may still answer, and only then encodes replies to other nodes: to
/// encode it is to let it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Stamp {
    /// Whose reply it is.
    pub actor: u64,
    /// The generation under which the work was done.
    pub generation: Generation,
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        note(Deed::Reply, self);
        let mut both = serializer.serialize_tuple(2)?;
        both.serialize_element(&self.actor)?;
        both.serialize_element(&self.generation)?;
        both.end()
    }
}

/// Begins the journal of this process in `folder`; before that nothing is noted.
///
/// # Panics
///
/// If it cannot be written.
pub(crate) fn begin(folder: &Path) {
    let path = folder.join(format!("{}.{EXTENSION}", std::process::id()));
    let file = OpenOptions::new().create(true).append(true).open(path).expect("the folder can be written");
    // A second one in the same process goes on with the first.
    let _ = JOURNAL.set(file);
}

pub(crate) fn note(deed: Deed, Stamp { actor, generation }: &Stamp) {
    let word = match deed {
        Deed::Start => "start",
        Deed::Reply => "reply",
    };
    write(&format!("{word} {} {actor} {}\n", machine_nanos(), generation.as_u64()));
}

pub(crate) fn note_event(event: &str) {
    write(&format!("event {} {event}\n", machine_nanos()));
}

fn write(line: &str) {
    if let Some(mut journal) = JOURNAL.get() {
        journal.write_all(line.as_bytes()).expect("the journal can be written");
    }
}

/// The machine's time: the same in all its processes, and it does not stand still while one is stopped.
pub fn machine_nanos() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(now.tv_nsec).unwrap_or_default()
}

impl Journals {
    /// Reads all journals in `folder`.
    ///
    /// # Panics
    ///
    /// If one cannot be read, or says what no member writes.
    pub fn read(folder: &Path) -> Self {
        let mut all = Self::default();
        for entry in std::fs::read_dir(folder).expect("the folder can be read").flatten() {
            if entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                let text = std::fs::read_to_string(entry.path()).expect("a journal can be read");
                text.lines().for_each(|line| all.take(line));
            }
        }
        all
    }

    /// How often an event that begins so was noted.
    pub fn events_like(&self, begin: &str) -> usize {
        self.events.iter().filter(|(_, event)| event.starts_with(begin)).count()
    }

    fn take(&mut self, line: &str) {
        match parse(line) {
            Some(Line::Deed(mark)) => self.marks.push(mark),
            Some(Line::Event(at, event)) => self.events.push((at, event)),
            None => panic!("no member writes {line:?}"),
        }
    }
}

enum Line {
    Deed(Mark),
    Event(u64, String),
}

fn parse(line: &str) -> Option<Line> {
    let (word, rest) = line.split_once(' ')?;
    let (at, rest) = rest.split_once(' ')?;
    let at = at.parse().ok()?;
    let deed = match word {
        "event" => return Some(Line::Event(at, rest.to_owned())),
        "start" => Deed::Start,
        "reply" => Deed::Reply,
        _ => return None,
    };
    let (actor, generation) = rest.split_once(' ')?;
    let generation = Generation::new(generation.parse().ok()?);
    Some(Line::Deed(Mark { deed, actor: actor.parse().ok()?, generation, at }))
}

static JOURNAL: OnceLock<File> = OnceLock::new();

const EXTENSION: &str = "journal";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read() {
        let folder = tempfile::tempdir().unwrap();
        begin(folder.path());
        let stamp = Stamp { actor: 7, generation: Generation::new(3) };
        note(Deed::Start, &stamp);
        serde_json::to_string(&stamp).unwrap();
        note_event("rejoined as another");
        let Journals { marks, events } = Journals::read(folder.path());
        let deeds: Vec<_> = marks.iter().map(|mark| (mark.deed, mark.actor, mark.generation)).collect();
        let generation = Generation::new(3);
        assert_eq!(deeds, [(Deed::Start, 7, generation), (Deed::Reply, 7, generation)]);
        assert!(marks[0].at <= marks[1].at && marks[1].at <= events[0].0);
        assert_eq!(events[0].1, "rejoined as another");
    }

    #[test]
    fn what_no_member_writes_is_refused() {
        for line in ["", "start", "start 1 2", "begin 1 2 3", "reply x 2 3"] {
            assert!(parse(line).is_none(), "{line:?}");
        }
    }
}
