//! How a frame becomes bytes; the layout is in [`super::frame`].
//!
//! Nothing here can fail: what does not fit the layout cannot be put into a [`Frame`].

use alloc::vec::Vec;

use bytes::{BufMut, BytesMut};

use super::frame::{
    ASK, BYE, BYE_ACK, CANCEL, ENVELOPE, FAIL, HEAD_BYTES, LARGE_BACK, LARGE_DONE, LARGE_GONE, LARGE_HERE,
    NO_TTL, NOTICE, REPLY, RETURN, SERVICE, SETTLE, SETTLED, TELL, VOID,
};
use super::ttl::change_ttl;
use super::{Asked, Frame, Head, Hint, Returned, ShardRef, Told};
use crate::call::CallError;
use crate::identity::CorrelationId;
use crate::message::{CodecId, Envelope, EnvelopeError};
use crate::time::Millis;

impl Frame<'_> {
    /// Appends the tag and body of the frame, without a length in front.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Ask(ask) => ask.encode(out),
            Self::Tell(tell) => tell.encode(out),
            Self::Reply { call, codec, payload } => {
                Self::encode_reply_head(out, *call, *codec);
                out.extend_from_slice(payload);
            }
            Self::Fail { call, error } => put_fail(out, *call, error),
            Self::Return(returned) => returned.encode(out),
            Self::Service { call, ttl, service, payload } => {
                out.put_u8(SERVICE);
                out.put_u64_le(call.as_u64());
                out.put_u32_le(ttl_on_wire(Some(*ttl)));
                out.put_u16_le(*service);
                out.extend_from_slice(payload);
            }
            Self::Envelope(bytes) => {
                out.put_u8(ENVELOPE);
                out.extend_from_slice(bytes);
            }
            control => control.encode_control(out),
        }
    }

    /// Appends the tag and head of a reply; its payload follows.
    pub fn encode_reply_head(out: &mut BytesMut, call: CorrelationId, codec: CodecId) {
        out.put_u8(REPLY);
        out.put_u64_le(call.as_u64());
        out.put_u8(codec.0);
    }

    /// Appends an envelope with its tag.
    ///
    /// # Errors
    ///
    /// As [`Envelope::encode_into`].
    pub fn encode_envelope(out: &mut BytesMut, envelope: &Envelope) -> Result<(), EnvelopeError> {
        out.put_u8(ENVELOPE);
        envelope.encode_into(out)
    }

    /// Writes into an encoded ask, tell, service ask or envelope how much time it has left, if it says so at all.
    pub fn set_ttl(encoded: &mut [u8], left: Millis) {
        change_ttl(encoded, |_| left);
    }

    /// Whether an encoded frame is an envelope.
    pub fn is_envelope(encoded: &[u8]) -> bool {
        encoded.first() == Some(&ENVELOPE)
    }

    fn encode_control(&self, out: &mut BytesMut) {
        match self {
            Self::Cancel { call } => put_numbered(out, CANCEL, call.as_u64()),
            Self::LargeHere { transfer, call } => {
                put_numbered(out, LARGE_HERE, *transfer);
                out.put_u8(u8::from(call.is_some()));
                if let Some(call) = call {
                    out.put_u64_le(call.as_u64());
                }
            }
            Self::LargeDone { transfer } => put_numbered(out, LARGE_DONE, *transfer),
            Self::LargeGone { transfer } => put_numbered(out, LARGE_GONE, *transfer),
            Self::LargeBack { transfer, reason } => {
                put_numbered(out, LARGE_BACK, *transfer);
                out.put_u8(reason.on_wire());
            }
            Self::Settle { shard, generation } => {
                out.put_u8(SETTLE);
                shard.put(out);
                out.put_u64_le(generation.as_u64());
            }
            Self::Settled { shard, generation, hint } => {
                out.put_u8(SETTLED);
                shard.put(out);
                out.put_u64_le(generation.as_u64());
                out.put_u8(u8::from(hint.is_some()));
                if let Some(hint) = hint {
                    hint.put(out);
                }
            }
            Self::Notice { shard, hint } => {
                out.put_u8(NOTICE);
                shard.put(out);
                hint.put(out);
            }
            Self::Bye => out.put_u8(BYE),
            Self::ByeAck => out.put_u8(BYE_ACK),
            _ => out.put_u8(VOID),
        }
    }
}

impl Asked<'_> {
    /// Appends tag, head and payload.
    pub fn encode(&self, out: &mut BytesMut) {
        Self::encode_head(out, self.call, &self.head);
        out.extend_from_slice(self.payload);
    }

    /// Appends tag and head of an ask; its payload follows.
    pub fn encode_head(out: &mut BytesMut, call: CorrelationId, head: &Head<'_>) {
        out.put_u8(ASK);
        out.put_u64_le(call.as_u64());
        head.put(out);
    }
}

impl Told<'_> {
    /// Appends tag, head and payload.
    pub fn encode(&self, out: &mut BytesMut) {
        Self::encode_head(out, &self.head);
        out.extend_from_slice(self.payload);
    }

    /// Appends tag and head of a tell; its payload follows.
    pub fn encode_head(out: &mut BytesMut, head: &Head<'_>) {
        out.put_u8(TELL);
        head.put(out);
    }
}

impl Returned<'_> {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(RETURN);
        out.put_u8(self.reason.on_wire());
        match self.call {
            Some(call) => Asked::encode_head(out, call, &self.head),
            None => Told::encode_head(out, &self.head),
        }
        out.extend_from_slice(self.payload);
    }
}

impl Head<'_> {
    fn put(&self, out: &mut BytesMut) {
        let extras = u8::from(self.trace.is_some()) | u8::from(!self.chain.is_empty()) << 1;
        let mut fixed = [0; HEAD_BYTES];
        fixed[0..4].copy_from_slice(&ttl_on_wire(self.ttl).to_le_bytes());
        fixed[4..6].copy_from_slice(&self.flags.bits().to_le_bytes());
        fixed[6] = self.codec.0;
        fixed[7] = extras;
        fixed[8..10].copy_from_slice(&self.shard.kind.to_le_bytes());
        fixed[10..18].copy_from_slice(&self.shard.number.to_le_bytes());
        fixed[18..20].copy_from_slice(&self.message.to_le_bytes());
        fixed[20..28].copy_from_slice(&self.generation.as_u64().to_le_bytes());
        fixed[28] = self.key.as_str().len() as u8;
        out.extend_from_slice(&fixed);
        out.extend_from_slice(self.key.as_str().as_bytes());
        if let Some(trace) = self.trace {
            out.put_u128_le(trace.trace_id());
            out.put_u64_le(trace.span_id());
            out.put_u8(trace.flags());
        }
        if !self.chain.is_empty() {
            out.put_u8(self.chain.len() as u8);
            self.chain.iter().for_each(|token| out.put_u64_le(token));
        }
    }
}

impl ShardRef {
    fn put(self, out: &mut BytesMut) {
        out.put_u16_le(self.kind);
        out.put_u64_le(self.number);
    }
}

impl Hint {
    fn put(self, out: &mut BytesMut) {
        out.put_u64_le(self.owner.as_u64());
        out.put_u64_le(self.generation.as_u64());
    }
}

fn put_numbered(out: &mut BytesMut, tag: u8, number: u64) {
    out.put_u8(tag);
    out.put_u64_le(number);
}

fn put_fail(out: &mut BytesMut, call: CorrelationId, error: &CallError) {
    out.put_u8(FAIL);
    out.put_u64_le(call.as_u64());
    // Every call error can be written; should one not, an empty body is read as malformed, never as another error.
    let error: Vec<u8> = postcard::to_allocvec(error).unwrap_or_default();
    out.extend_from_slice(&error);
}

pub(super) fn ttl_on_wire(ttl: Option<Millis>) -> u32 {
    ttl.map_or(NO_TTL, |ttl| u32::try_from(ttl.0).unwrap_or(NO_TTL - 1).min(NO_TTL - 1))
}
