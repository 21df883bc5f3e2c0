//! The part of an envelope that depends on its direction: who, to whom, and until when.

use core::fmt;

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use super::wire::{Reader, put_text};
use super::{EnvelopeError, EnvelopePart};
use crate::identity::{ActorId, ActorKey, ActorPath, CorrelationId, IdField, Kind, Namespace};
use crate::time::Millis;

/// Which part of an exchange an envelope is, with what only that part has.
///
/// A request always has a time to live, a one-way message never has a correlation id, and everything but a response
/// to a caller outside any actor has a target: other combinations cannot be written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Leg {
    /// Expects a response.
    Request {
        /// The pending call on the sender's node.
        correlation: CorrelationId,
        /// How long the sender still waits.
        ttl: Millis,
        /// Who handles it.
        target: Target,
        /// Who sent it; none if the call came from outside any actor.
        sender: Option<Target>,
    },
    /// Answers a request.
    Response {
        /// The request's correlation id.
        correlation: CorrelationId,
        /// Who sent the request; none if it came from outside any actor.
        target: Option<Target>,
        /// Who handled the request.
        sender: Target,
    },
    /// Is never answered.
    OneWay {
        /// How long it is worth delivering; none for as long as it takes.
        ttl: Option<Millis>,
        /// Who handles it.
        target: Target,
        /// Who sent it; none if it came from outside any actor.
        sender: Option<Target>,
    },
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// Expects a response.
    Request,
    /// Answers a request.
    Response,
    /// Fire and forget.
    OneWay,
}

/// One end of a message: a virtual actor by id, or a named actor by path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// A virtual actor.
    Actor(ActorId),
    /// A named actor.
    Path(ActorPath),
}

impl Leg {
    /// The direction.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Request { .. } => Direction::Request,
            Self::Response { .. } => Direction::Response,
            Self::OneWay { .. } => Direction::OneWay,
        }
    }

    /// The correlation id; none for a one-way message.
    pub const fn correlation(&self) -> Option<CorrelationId> {
        match self {
            Self::Request { correlation, .. } | Self::Response { correlation, .. } => Some(*correlation),
            Self::OneWay { .. } => None,
        }
    }

    /// The remaining time to live; always there for a request.
    pub const fn ttl(&self) -> Option<Millis> {
        match self {
            Self::Request { ttl, .. } => Some(*ttl),
            Self::Response { .. } => None,
            Self::OneWay { ttl, .. } => *ttl,
        }
    }

    /// Who handles it; none only for a response to a caller outside any actor.
    pub const fn target(&self) -> Option<&Target> {
        match self {
            Self::Request { target, .. } | Self::OneWay { target, .. } => Some(target),
            Self::Response { target, .. } => target.as_ref(),
        }
    }

    /// Who sent it; none if it came from outside any actor.
    pub const fn sender(&self) -> Option<&Target> {
        match self {
            Self::Request { sender, .. } | Self::OneWay { sender, .. } => sender.as_ref(),
            Self::Response { sender, .. } => Some(sender),
        }
    }

    /// The end that is always there, and the other one.
    const fn ends(&self) -> (&Target, Option<&Target>) {
        match self {
            Self::Request { target, sender, .. } | Self::OneWay { target, sender, .. } => {
                (target, sender.as_ref())
            }
            Self::Response { target, sender, .. } => (sender, target.as_ref()),
        }
    }

    pub(super) const fn shape(&self) -> u8 {
        let direction = match self {
            Self::Request { .. } => Shape::REQUEST,
            Self::Response { .. } => Shape::RESPONSE,
            Self::OneWay { ttl: None, .. } => Shape::ONE_WAY,
            Self::OneWay { ttl: Some(_), .. } => Shape::ONE_WAY | Shape::TTL,
        };
        if self.ends().1.is_some() { direction | Shape::SECOND_END } else { direction }
    }

    pub(super) fn put(&self, out: &mut BytesMut) {
        if let Some(correlation) = self.correlation() {
            out.put_u64_le(correlation.as_u64());
        }
        if let Some(ttl) = self.ttl() {
            out.put_u64_le(ttl.0);
        }
        let (first, second) = self.ends();
        first.put(out);
        if let Some(second) = second {
            second.put(out);
        }
    }

    pub(super) fn take(reader: &mut Reader<'_>, shape: Shape) -> Result<Self, EnvelopeError> {
        let direction = shape.direction()?;
        let correlation = match direction {
            Direction::OneWay => None,
            _ => Some(CorrelationId::from_u64(reader.u64(EnvelopePart::Header)?)),
        };
        let ttl = match direction {
            Direction::Request => Some(take_ttl(reader)?),
            _ => shape.when(Shape::TTL, || take_ttl(reader))?,
        };
        let first = Target::take(reader)?;
        let second = shape.when(Shape::SECOND_END, || Target::take(reader))?;
        match (direction, correlation, ttl) {
            (Direction::Request, Some(correlation), Some(ttl)) => {
                Ok(Self::Request { correlation, ttl, target: first, sender: second })
            }
            (Direction::Response, Some(correlation), None) => {
                Ok(Self::Response { correlation, target: second, sender: first })
            }
            (Direction::OneWay, None, ttl) => Ok(Self::OneWay { ttl, target: first, sender: second }),
            _ => Err(EnvelopeError::Malformed { part: EnvelopePart::Header }),
        }
    }
}

fn take_ttl(reader: &mut Reader<'_>) -> Result<Millis, EnvelopeError> {
    reader.u64(EnvelopePart::TimeToLive).map(Millis)
}

impl Target {
    fn put(&self, out: &mut BytesMut) {
        match self {
            Self::Actor(actor) => {
                out.put_u8(ACTOR);
                put_text(out, actor.namespace().as_str());
                put_text(out, actor.kind().as_str());
                put_text(out, actor.key().as_str());
            }
            Self::Path(path) => {
                out.put_u8(PATH);
                put_text(out, &path.to_uri());
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, EnvelopeError> {
        let part = EnvelopePart::Address;
        match reader.u8(part)? {
            ACTOR => {
                let namespace = Namespace::new(reader.text(part, IdField::Namespace.max_len())?)?;
                let kind = Kind::new(reader.text(part, IdField::Kind.max_len())?)?;
                let key = ActorKey::new(reader.text(part, IdField::Key.max_len())?)?;
                Ok(Self::Actor(ActorId::from_parts(namespace, kind, key)?))
            }
            PATH => Ok(Self::Path(ActorPath::from_uri(reader.text(part, MAX_URI)?)?)),
            _ => Err(EnvelopeError::Malformed { part }),
        }
    }
}

impl From<ActorId> for Target {
    fn from(actor: ActorId) -> Self {
        Self::Actor(actor)
    }
}

impl From<ActorPath> for Target {
    fn from(path: ActorPath) -> Self {
        Self::Path(path)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Actor(actor) => actor.fmt(f),
            Self::Path(path) => path.fmt(f),
        }
    }
}

/// The second byte of an envelope: its direction and which optional parts it has.
#[derive(Clone, Copy)]
pub(super) struct Shape(pub(super) u8);

impl Shape {
    const REQUEST: u8 = 0;
    const RESPONSE: u8 = 1;
    const ONE_WAY: u8 = 2;
    const DIRECTION: u8 = 0b11;
    const SECOND_END: u8 = 1 << 2;
    pub(super) const HINT: u8 = 1 << 3;
    pub(super) const TRACE: u8 = 1 << 4;
    const TTL: u8 = 1 << 5;
    pub(super) const EXTENSIONS: u8 = 1 << 6;
    const RESERVED: u8 = 1 << 7;

    fn direction(self) -> Result<Direction, EnvelopeError> {
        let (ttl, reserved) = (self.0 & Self::TTL != 0, self.0 & Self::RESERVED != 0);
        match self.0 & Self::DIRECTION {
            Self::REQUEST if !ttl && !reserved => Ok(Direction::Request),
            Self::RESPONSE if !ttl && !reserved => Ok(Direction::Response),
            Self::ONE_WAY if !reserved => Ok(Direction::OneWay),
            _ => Err(EnvelopeError::Malformed { part: EnvelopePart::Header }),
        }
    }

    /// How far behind the fixed part the time to live stands, if there is one.
    pub(super) fn ttl_behind_fixed(self) -> Option<usize> {
        match self.direction().ok()? {
            Direction::Request => Some(size_of::<u64>()),
            Direction::OneWay => (self.0 & Self::TTL != 0).then_some(0),
            Direction::Response => None,
        }
    }

    /// Reads a part if its bit is set.
    pub(super) fn when<T>(
        self,
        bit: u8,
        read: impl FnOnce() -> Result<T, EnvelopeError>,
    ) -> Result<Option<T>, EnvelopeError> {
        if self.0 & bit != 0 { read().map(Some) } else { Ok(None) }
    }
}

const ACTOR: u8 = 0;
const PATH: u8 = 1;
/// Longer than every URI of a valid path: its path alone may have 3 × 512 bytes.
const MAX_URI: usize = 2048;
