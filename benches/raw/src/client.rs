//! The side that asks in batches, and the side that tells.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::BytesMut;

use crate::RawError;
use crate::figures::{Collector, RawFigures};
use crate::frame::{FRAME, put, single, take};
use crate::server::ANSWER_ALL;
use crate::wire::Wire;

/// Asks `asks` times, after a tenth as many to warm up.
pub(crate) async fn ask(wire: &mut dyn Wire, in_flight: usize, asks: u64) -> Result<RawFigures, RawError> {
    wire.write(single(ANSWER_ALL)).await?;
    wait_for_one(wire).await?;
    let mut asker = Asker { wire, waiting: VecDeque::new(), collector: Collector::new(), sent: 0, done: 0 };
    asker.run(in_flight as u64, asks / 10 + 1).await?;
    asker.collector = Collector::new();
    let start = Instant::now();
    asker.run(in_flight as u64, asks).await?;
    Ok(asker.collector.figures(start.elapsed()))
}

/// Tells `frames` times; how many arrived per second.
pub(crate) async fn tell(wire: &mut dyn Wire, frames: u64) -> Result<f64, RawError> {
    wire.write(single(frames.max(1))).await?;
    let start = Instant::now();
    let mut sent = 0;
    while sent < frames {
        let batch = (frames - sent).min(TELL_BATCH);
        // A new buffer each time, as in a lane whose writer takes the whole buffer.
        let mut data = BytesMut::with_capacity(batch as usize * FRAME);
        (sent..sent + batch).for_each(|number| put(number, &mut data));
        wire.write(data.freeze()).await?;
        sent += batch;
    }
    wait_for_one(wire).await?;
    Ok(frames as f64 / start.elapsed().as_secs_f64())
}

/// Keeps a number of frames in flight.
struct Asker<'a> {
    wire: &'a mut dyn Wire,
    /// When frames that are not answered were sent, and how many at a time.
    waiting: VecDeque<(Instant, u64)>,
    collector: Collector,
    sent: u64,
    done: u64,
}

impl Asker<'_> {
    async fn run(&mut self, in_flight: u64, asks: u64) -> Result<(), RawError> {
        (self.sent, self.done) = (0, 0);
        let mut buffer = BytesMut::new();
        self.send(in_flight.min(asks)).await?;
        while self.done < asks {
            if self.wire.read(&mut buffer).await? == 0 {
                return Err(RawError::EndedEarly);
            }
            let before = self.done;
            while let Some(number) = take(&mut buffer) {
                if number != self.done {
                    return Err(RawError::OutOfOrder);
                }
                self.done += 1;
            }
            let answers = self.done - before;
            self.answered(answers);
            self.send(answers.min(asks - self.sent)).await?;
        }
        Ok(())
    }

    async fn send(&mut self, count: u64) -> Result<(), RawError> {
        if count == 0 {
            return Ok(());
        }
        self.waiting.push_back((Instant::now(), count));
        let mut data = BytesMut::with_capacity(count as usize * FRAME);
        (self.sent..self.sent + count).for_each(|number| put(number, &mut data));
        self.sent += count;
        self.wire.write(data.freeze()).await
    }

    /// Frames of one write were sent at one time, and answers in one read came at one time.
    fn answered(&mut self, mut answers: u64) {
        let now = Instant::now();
        while let (1.., Some((sent, count))) = (answers, self.waiting.front_mut()) {
            let these = answers.min(*count);
            self.collector.add(now - *sent, these);
            *count -= these;
            answers -= these;
            if *count == 0 {
                self.waiting.pop_front();
            }
        }
    }
}

async fn wait_for_one(wire: &mut dyn Wire) -> Result<(), RawError> {
    let mut buffer = BytesMut::new();
    while take(&mut buffer).is_none() {
        if wire.read(&mut buffer).await? == 0 {
            return Err(RawError::EndedEarly);
        }
    }
    Ok(())
}

/// Frames per write when telling: 64 KB.
const TELL_BATCH: u64 = 655;
