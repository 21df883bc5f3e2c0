//! A frame as the model sees it.

use bytes::BytesMut;

use super::super::super::{Asked, Frame, Head, KeyText, LEN_BYTES, ShardRef, Told};
use crate::identity::{CorrelationId, Generation};
use crate::message::{CallChain, CodecId, MessageFlags};
use crate::time::Millis;

/// A frame that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) serial: u32,
    pub(super) kind: Kind,
    pub(super) len: usize,
    /// When it is not worth delivering any more, and what its frame says about that.
    pub(super) until: Option<Millis>,
    pub(super) ttl: Option<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ask { id: CorrelationId, is_service: bool },
    Tell { told: Millis },
    Answer,
    Cancel { id: CorrelationId },
}

impl Item {
    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind, Kind::Ask { .. } | Kind::Tell { .. })
    }

    pub(super) fn is_ask(&self) -> bool {
        matches!(self.kind, Kind::Ask { .. })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut payload = self.serial.to_le_bytes().to_vec();
        payload.resize(self.len, 0);
        let payload = &payload[..];
        match self.kind {
            Kind::Ask { id: call, is_service: false } => {
                Asked { call, head: head(self.ttl), payload }.encode(out);
            }
            Kind::Ask { id: call, is_service: true } => {
                let ttl = self.ttl.unwrap_or_default();
                Frame::Service { call, ttl, service: 3, payload }.encode(out);
            }
            Kind::Tell { .. } => Told { head: head(self.ttl), payload }.encode(out),
            Kind::Answer => {
                let call = CorrelationId::from_u64(9);
                Frame::Reply { call, codec: CodecId::JSON, payload }.encode(out);
            }
            Kind::Cancel { id: call } => Frame::Cancel { call }.encode(out),
        }
    }

    pub(super) fn bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out
    }

    /// Its length in the buffer.
    pub(super) fn weight(&self) -> usize {
        LEN_BYTES + self.bytes().len()
    }
}

fn head(ttl: Option<Millis>) -> Head<'static> {
    Head {
        ttl,
        flags: MessageFlags::empty(),
        codec: CodecId::POSTCARD,
        shard: ShardRef { kind: 1, number: 2 },
        message: 3,
        generation: Generation::new(4),
        key: KeyText::new("key").unwrap(),
        trace: None,
        chain: CallChain::empty(),
    }
}
