//! One message on its way, with everything the receiving node must know about it.
//!
//! # Layout, version 1
//!
//! Numbers are little-endian; *var* is a number in groups of 7 bits; *text* and *bytes* are a var length and the bytes.
//!
//! | part | form | present |
//! |---|---|---|
//! | version | u8, `0xA1` | always |
//! | shape: direction in bits 0-1, then the bits named below | u8 | always |
//! | flags | u16 | always |
//! | codec | u8 | always |
//! | message, target node, sender node | 3 × u64 | always |
//! | correlation id | u64 | request, response |
//! | remaining time to live in ms | u64 | request; one-way: bit 5 |
//! | target (of a response: sender) | address | always |
//! | sender (of a response: target) | address | bit 2 |
//! | type hint | text | bit 3 |
//! | trace id, span id, flags | u128, u64, u8 | bit 4 |
//! | call chain | u8 count, count × u64 | always |
//! | extensions: (u16 tag, bytes), ascending tags | bytes | bit 6 |
//! | payload | bytes | always |
//!
//! An address is `0` and three texts (namespace, kind, key), or `1` and a URI. Nothing follows the payload.

use bytes::{BufMut, Bytes, BytesMut};

use super::leg::Shape;
use super::wire::{Reader, put_text, put_varint};
use super::{
    CallChain, CodecId, Direction, EnvelopeError, EnvelopePart, Extensions, Leg, MessageFlags, Target,
};
use super::{TraceContext, TypeHint, WireId};
use crate::identity::{CorrelationId, NodeId};
use crate::time::Millis;

/// A message with its header.
///
/// Time travels as what is left of it: the receiver turns the time to live into a deadline on its own clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// Request, response or one-way message, and between whom.
    pub leg: Leg,
    /// The node that hosts the target.
    pub target_node: NodeId,
    /// The node that hosts the sender.
    pub sender_node: NodeId,
    /// The type of the message; in a response, that of the request.
    pub message: WireId,
    /// The name of the type, for a receiver that may not know `message`.
    pub type_hint: Option<TypeHint>,
    /// What the message asks of the node that handles it.
    pub flags: MessageFlags,
    /// The codec that wrote the payload.
    pub codec: CodecId,
    /// The trace it belongs to.
    pub trace: Option<TraceContext>,
    /// The activations that wait for it.
    pub chain: CallChain,
    /// What later versions and layers add.
    pub extensions: Extensions,
    /// The message itself.
    pub payload: Bytes,
}

impl Envelope {
    /// The longest payload, in bytes. Transports may set a smaller bound for whole frames.
    pub const MAX_PAYLOAD: usize = 64 << 20;

    /// The response to this request, with target and sender exchanged; none if it is not a request.
    ///
    /// It keeps the correlation id, message, flags, codec and trace. It has no call chain, since nobody waits for a
    /// response to be handled, and none of the request's extensions.
    pub fn respond(&self, payload: Bytes) -> Option<Self> {
        let Leg::Request { correlation, target, sender, .. } = &self.leg else { return None };
        let leg = Leg::Response { correlation: *correlation, target: sender.clone(), sender: target.clone() };
        Some(Self {
            leg,
            target_node: self.sender_node,
            sender_node: self.target_node,
            message: self.message,
            type_hint: None,
            flags: self.flags,
            codec: self.codec,
            trace: self.trace,
            chain: CallChain::empty(),
            extensions: Extensions::new(),
            payload,
        })
    }

    /// The envelope as bytes of its own.
    ///
    /// # Errors
    ///
    /// `TooLarge`: the payload is longer than [`MAX_PAYLOAD`](Self::MAX_PAYLOAD).
    pub fn encode(&self) -> Result<Bytes, EnvelopeError> {
        let mut out = BytesMut::with_capacity(TYPICAL_HEADER.saturating_add(self.payload.len()));
        self.encode_into(&mut out)?;
        Ok(out.freeze())
    }

    /// Appends the envelope to `out`, without a length in front.
    ///
    /// # Errors
    ///
    /// `TooLarge`: the payload is longer than [`MAX_PAYLOAD`](Self::MAX_PAYLOAD); `out` is unchanged.
    pub fn encode_into(&self, out: &mut BytesMut) -> Result<(), EnvelopeError> {
        let (part, len, max) = (EnvelopePart::Payload, self.payload.len(), Self::MAX_PAYLOAD);
        if len > max {
            return Err(EnvelopeError::TooLarge { part, len: len as u64, max });
        }
        self.put_fixed(out);
        self.leg.put(out);
        if let Some(hint) = &self.type_hint {
            put_text(out, hint.as_str());
        }
        if let Some(trace) = self.trace {
            out.put_u128_le(trace.trace_id());
            out.put_u64_le(trace.span_id());
            out.put_u8(trace.flags());
        }
        put_chain(out, &self.chain);
        if !self.extensions.is_empty() {
            self.extensions.encode(out);
        }
        put_varint(out, len as u64);
        out.extend_from_slice(&self.payload);
        Ok(())
    }

    /// Reads an envelope that fills `bytes` to the last one. The payload shares their memory.
    ///
    /// # Errors
    ///
    /// The bytes are no valid envelope of version 1.
    pub fn decode(bytes: &Bytes) -> Result<Self, EnvelopeError> {
        let mut reader = Reader::new(bytes);
        let part = EnvelopePart::Header;
        match reader.u8(part)? {
            VERSION => {}
            found => return Err(EnvelopeError::BadVersion { found }),
        }
        let shape = Shape(reader.u8(part)?);
        // Fields are evaluated in the order in which they stand here: the order of the wire.
        let envelope = Self {
            flags: MessageFlags::from_bits(u16::from_le_bytes(reader.array(part)?))?,
            codec: CodecId(reader.u8(part)?),
            message: WireId::new(reader.u64(part)?),
            target_node: NodeId::new(reader.u64(part)?),
            sender_node: NodeId::new(reader.u64(part)?),
            leg: Leg::take(&mut reader, shape)?,
            type_hint: shape.when(Shape::HINT, || take_hint(&mut reader))?,
            trace: shape.when(Shape::TRACE, || take_trace(&mut reader))?,
            chain: take_chain(&mut reader)?,
            extensions: shape
                .when(Shape::EXTENSIONS, || Extensions::decode(&mut reader))?
                .unwrap_or_default(),
            payload: reader.bytes(EnvelopePart::Payload, Self::MAX_PAYLOAD)?,
        };
        match reader.left() {
            0 => Ok(envelope),
            count => Err(EnvelopeError::TrailingBytes { count }),
        }
    }

    /// The direction.
    pub const fn direction(&self) -> Direction {
        self.leg.direction()
    }

    /// The correlation id; none for a one-way message.
    pub const fn correlation(&self) -> Option<CorrelationId> {
        self.leg.correlation()
    }

    /// The remaining time to live; always there for a request.
    pub const fn ttl(&self) -> Option<Millis> {
        self.leg.ttl()
    }

    /// Who handles it; none only for a response to a caller outside any actor.
    pub const fn target(&self) -> Option<&Target> {
        self.leg.target()
    }

    /// Who sent it; none if it came from outside any actor.
    pub const fn sender(&self) -> Option<&Target> {
        self.leg.sender()
    }

    /// Where the time to live stands in an encoded envelope; none if it has none, or is no envelope. Its place is fixed, so
    /// that it can be changed while the envelope waits to be sent.
    pub(crate) fn ttl_place(encoded: &[u8]) -> Option<usize> {
        let [VERSION, shape, ..] = *encoded else { return None };
        Shape(shape).ttl_behind_fixed().map(|behind| FIXED_BYTES + behind)
    }

    fn put_fixed(&self, out: &mut BytesMut) {
        let shape = self.leg.shape()
            | if self.type_hint.is_some() { Shape::HINT } else { 0 }
            | if self.trace.is_some() { Shape::TRACE } else { 0 }
            | if self.extensions.is_empty() { 0 } else { Shape::EXTENSIONS };
        out.put_u8(VERSION);
        out.put_u8(shape);
        out.put_u16_le(self.flags.bits());
        out.put_u8(self.codec.0);
        out.put_u64_le(self.message.as_u64());
        out.put_u64_le(self.target_node.as_u64());
        out.put_u64_le(self.sender_node.as_u64());
    }
}

fn put_chain(out: &mut BytesMut, chain: &CallChain) {
    out.put_u8(chain.len() as u8);
    chain.iter().for_each(|token| out.put_u64_le(token));
}

fn take_chain(reader: &mut Reader<'_>) -> Result<CallChain, EnvelopeError> {
    let part = EnvelopePart::CallChain;
    let count = reader.u8(part)?;
    if usize::from(count) > CallChain::MAX_LEN {
        return Err(EnvelopeError::TooLarge { part, len: count.into(), max: CallChain::MAX_LEN });
    }
    (0..count).try_fold(CallChain::empty(), |chain, _| Ok(chain.push(reader.u64(part)?)))
}

fn take_hint(reader: &mut Reader<'_>) -> Result<TypeHint, EnvelopeError> {
    let part = EnvelopePart::TypeHint;
    TypeHint::new(reader.text(part, TypeHint::MAX_LEN)?).map_err(|_| EnvelopeError::Malformed { part })
}

fn take_trace(reader: &mut Reader<'_>) -> Result<TraceContext, EnvelopeError> {
    let part = EnvelopePart::Trace;
    let trace_id = u128::from_le_bytes(reader.array(part)?);
    Ok(TraceContext::new(trace_id, reader.u64(part)?, reader.u8(part)?)?)
}

/// The format's magic in the upper half, its version in the lower.
const VERSION: u8 = 0xA1;
/// What stands before the correlation id and the time to live.
const FIXED_BYTES: usize = 5 + 3 * size_of::<u64>();
/// Room for the header of a request between two actors.
const TYPICAL_HEADER: usize = 256;

#[cfg(test)]
mod tests;
