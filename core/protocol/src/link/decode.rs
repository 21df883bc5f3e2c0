//! How bytes become a frame; the layout is in [`super::frame`].
//!
//! Invariant: a frame has one form. What is accepted is written again byte for byte, but for the rest of a void frame.

use super::frame::{
    ASK, BYE, BYE_ACK, CANCEL, CHAIN, ENVELOPE, FAIL, HEAD_BYTES, LARGE_BACK, LARGE_DONE, LARGE_GONE,
    LARGE_HERE, NO_TTL, NOTICE, REPLY, RETURN, SERVICE, SETTLE, SETTLED, TELL, TRACE, VOID,
};
use super::{
    Asked, Frame, FrameError, FramePart, Head, Hint, KeyText, ReturnReason, Returned, ShardRef, Told,
};
use crate::call::CallError;
use crate::identity::{CorrelationId, Generation, NodeId};
use crate::message::{CallChain, CodecId, MessageFlags, TraceContext};
use crate::time::Millis;

impl<'a> Frame<'a> {
    /// Reads the tag and body of one frame, all of `bytes`.
    ///
    /// # Errors
    ///
    /// [`FrameError`]; no bytes make it panic or allocate more than they are long.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut take = Take(bytes);
        match take.u8()? {
            ASK => {
                let call = take.call()?;
                Ok(Self::Ask(Asked { call, head: take.head()?, payload: take.rest() }))
            }
            TELL => Ok(Self::Tell(Told { head: take.head()?, payload: take.rest() })),
            REPLY => Ok(Self::Reply { call: take.call()?, codec: CodecId(take.u8()?), payload: take.rest() }),
            FAIL => Ok(Self::Fail { call: take.call()?, error: take.error()? }),
            CANCEL => take.last(|take| Ok(Self::Cancel { call: take.call()? })),
            RETURN => take.returned().map(Self::Return),
            tag => take.control(tag),
        }
    }
}

/// Takes parts off the front of a frame.
struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    fn array<const N: usize>(&mut self, part: FramePart) -> Result<&'a [u8; N], FrameError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(FrameError::Truncated { part })?;
        self.0 = rest;
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        self.array::<1>(FramePart::Head).map(|byte| byte[0])
    }

    fn u64(&mut self, part: FramePart) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(*self.array(part)?))
    }

    fn call(&mut self) -> Result<CorrelationId, FrameError> {
        self.u64(FramePart::Head).map(CorrelationId::from_u64)
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// A frame that must end where its last part does.
    fn last<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, FrameError>) -> Result<T, FrameError> {
        let frame = read(self)?;
        if self.0.is_empty() { Ok(frame) } else { Err(FrameError::Malformed { part: FramePart::Frame }) }
    }

    // Built in, so that the head is written where it stays.
    #[inline(always)]
    fn head(&mut self) -> Result<Head<'a>, FrameError> {
        let fixed: &[u8; HEAD_BYTES] = self.array(FramePart::Head)?;
        let extras = fixed[7];
        if extras & !(TRACE | CHAIN) != 0 {
            return Err(FrameError::Malformed { part: FramePart::Head });
        }
        let number = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| {
            let mut long = [0; 8];
            long.copy_from_slice(&fixed[at..at + 8]);
            u64::from_le_bytes(long)
        };
        let ttl = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        Ok(Head {
            ttl: (ttl != NO_TTL).then_some(Millis(ttl.into())),
            flags: flags(number(4))?,
            codec: CodecId(fixed[6]),
            shard: ShardRef { kind: number(8), number: long(10) },
            message: number(18),
            generation: Generation::new(long(20)),
            key: self.key(fixed[28])?,
            trace: if extras & TRACE != 0 { Some(self.trace()?) } else { None },
            chain: if extras & CHAIN != 0 { self.chain()? } else { CallChain::empty() },
        })
    }

    fn key(&mut self, len: u8) -> Result<KeyText<'a>, FrameError> {
        let part = FramePart::Key;
        let (key, rest) = self.0.split_at_checked(len.into()).ok_or(FrameError::Truncated { part })?;
        self.0 = rest;
        KeyText::new(core::str::from_utf8(key).map_err(|_| FrameError::Malformed { part })?)
    }

    fn trace(&mut self) -> Result<TraceContext, FrameError> {
        let part = FramePart::Trace;
        let trace_id = u128::from_le_bytes(*self.array(part)?);
        let span_id = self.u64(part)?;
        Ok(TraceContext::new(trace_id, span_id, self.array::<1>(part)?[0])?)
    }

    fn chain(&mut self) -> Result<CallChain, FrameError> {
        let part = FramePart::Chain;
        let [count] = *self.array(part)?;
        if count == 0 || usize::from(count) > CallChain::MAX_LEN {
            return Err(FrameError::TooLarge { part, len: count.into(), max: CallChain::MAX_LEN });
        }
        (0..count).try_fold(CallChain::empty(), |chain, _| Ok(chain.push(self.u64(part)?)))
    }

    fn error(&mut self) -> Result<CallError, FrameError> {
        let bytes = self.rest();
        // postcard also reads numbers that are written longer than needed, and ignores what follows.
        let only_form =
            |error: &CallError| postcard::to_allocvec(error).is_ok_and(|written| written == bytes);
        let error = postcard::from_bytes(bytes).ok().filter(only_form);
        error.ok_or(FrameError::Malformed { part: FramePart::Error })
    }

    fn returned(&mut self) -> Result<Returned<'a>, FrameError> {
        let reason = self.reason()?;
        let call = match self.u8()? {
            ASK => Some(self.call()?),
            TELL => None,
            tag => return Err(FrameError::UnknownTag { tag }),
        };
        Ok(Returned { reason, call, head: self.head()?, payload: self.rest() })
    }

    fn reason(&mut self) -> Result<ReturnReason, FrameError> {
        ReturnReason::from_wire(self.u8()?).ok_or(FrameError::Malformed { part: FramePart::Head })
    }

    fn large_here(&mut self) -> Result<Frame<'a>, FrameError> {
        let transfer = self.u64(FramePart::Head)?;
        let call = match self.u8()? {
            0 => None,
            1 => Some(self.call()?),
            _ => return Err(FrameError::Malformed { part: FramePart::Head }),
        };
        Ok(Frame::LargeHere { transfer, call })
    }

    fn large_back(&mut self) -> Result<Frame<'a>, FrameError> {
        Ok(Frame::LargeBack { transfer: self.u64(FramePart::Head)?, reason: self.reason()? })
    }

    fn shard(&mut self) -> Result<ShardRef, FrameError> {
        let kind = u16::from_le_bytes(*self.array(FramePart::Shard)?);
        Ok(ShardRef { kind, number: self.u64(FramePart::Shard)? })
    }

    fn generation(&mut self) -> Result<Generation, FrameError> {
        self.u64(FramePart::Shard).map(Generation::new)
    }

    fn hint(&mut self) -> Result<Hint, FrameError> {
        Ok(Hint { owner: NodeId::new(self.u64(FramePart::Shard)?), generation: self.generation()? })
    }

    fn control(&mut self, tag: u8) -> Result<Frame<'a>, FrameError> {
        match tag {
            ENVELOPE => Ok(Frame::Envelope(self.rest())),
            VOID => Ok(Frame::Void),
            SERVICE => self.service(),
            SETTLE => {
                self.last(|take| Ok(Frame::Settle { shard: take.shard()?, generation: take.generation()? }))
            }
            SETTLED => self.last(Self::settled),
            NOTICE => self.last(|take| Ok(Frame::Notice { shard: take.shard()?, hint: take.hint()? })),
            BYE => self.last(|_| Ok(Frame::Bye)),
            BYE_ACK => self.last(|_| Ok(Frame::ByeAck)),
            LARGE_HERE => self.last(Self::large_here),
            LARGE_DONE => self.last(|take| Ok(Frame::LargeDone { transfer: take.u64(FramePart::Head)? })),
            LARGE_BACK => self.last(Self::large_back),
            LARGE_GONE => self.last(|take| Ok(Frame::LargeGone { transfer: take.u64(FramePart::Head)? })),
            tag => Err(FrameError::UnknownTag { tag }),
        }
    }

    fn settled(&mut self) -> Result<Frame<'a>, FrameError> {
        let (shard, generation) = (self.shard()?, self.generation()?);
        let hint = match self.u8()? {
            0 => None,
            1 => Some(self.hint()?),
            _ => return Err(FrameError::Malformed { part: FramePart::Shard }),
        };
        Ok(Frame::Settled { shard, generation, hint })
    }

    fn service(&mut self) -> Result<Frame<'a>, FrameError> {
        let call = self.call()?;
        let ttl = u32::from_le_bytes(*self.array(FramePart::Head)?);
        if ttl == NO_TTL {
            return Err(FrameError::Malformed { part: FramePart::Head });
        }
        let service = u16::from_le_bytes(*self.array(FramePart::Head)?);
        Ok(Frame::Service { call, ttl: Millis(ttl.into()), service, payload: self.rest() })
    }
}

/// The flags with these bits, which must be complete: no flag implies another that is missing.
fn flags(bits: u16) -> Result<MessageFlags, FrameError> {
    let flags = MessageFlags::from_bits(bits)?;
    if flags.bits() == bits { Ok(flags) } else { Err(FrameError::Malformed { part: FramePart::Head }) }
}
