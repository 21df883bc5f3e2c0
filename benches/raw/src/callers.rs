//! The side that asks when every ask has a caller of its own.
//!
//! A batch of frames that is answered as a batch tells how fast bytes come and go. An ask is more: one answer belongs to
//! one caller, who waits for that one, is woken by it, and only then asks again. So here as many callers are under way as
//! asks are in flight, each a future of its own. A caller takes a place in a table, puts its frame behind those of the
//! others into the one buffer of the connection, and sleeps. All of them and the connection are one task: first every
//! caller that has its answer asks again, then the whole buffer goes out in one write, then what has come is read and each
//! answer goes to the caller whose place it names. That is all: no lock, no allocation per ask, no deadline, no message
//! type, no actor.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::RawError;
use crate::figures::{Collector, RawFigures};
use crate::frame::{put, single, take};
use crate::server::ANSWER_ALL;
use crate::wire::Wire;

/// Asks `asks` times with `in_flight` callers, after a tenth as many to warm up.
pub(crate) async fn ask(wire: &mut dyn Wire, in_flight: usize, asks: u64) -> Result<RawFigures, RawError> {
    wire.write(single(ANSWER_ALL)).await?;
    let desk = Rc::new(RefCell::new(Desk::new(in_flight)));
    let mut buffer = BytesMut::new();
    while take(&mut buffer).is_none() {
        if wire.read(&mut buffer).await? == 0 {
            return Err(RawError::EndedEarly);
        }
    }
    run(wire, &desk, in_flight, asks / 10 + 1).await?;
    desk.borrow_mut().collector = Collector::new();
    let start = Instant::now();
    run(wire, &desk, in_flight, asks).await?;
    Ok(desk.borrow().collector.figures(start.elapsed()))
}

/// Lets all callers ask their share, and moves the bytes meanwhile.
async fn run(
    wire: &mut dyn Wire,
    desk: &Rc<RefCell<Desk>>,
    in_flight: usize,
    asks: u64,
) -> Result<(), RawError> {
    let each = asks.div_ceil(in_flight as u64);
    desk.borrow_mut().callers = in_flight;
    let callers = (0..in_flight).map(|place| caller(Rc::clone(desk), place, each));
    let mut callers: FuturesUnordered<_> = callers.collect();
    let mut connection = pin!(connection(wire, desk));
    poll_fn(|cx| {
        while let Poll::Ready(Some(())) = callers.poll_next_unpin(cx) {}
        connection.as_mut().poll(cx)
    })
    .await
}

async fn caller(desk: Rc<RefCell<Desk>>, place: usize, asks: u64) {
    for _ in 0..asks {
        let sent = Instant::now();
        desk.borrow_mut().ask(place);
        poll_fn(|cx| desk.borrow_mut().poll_answer(place, cx)).await;
        desk.borrow_mut().collector.add(sent.elapsed(), 1);
    }
    desk.borrow_mut().caller_done();
}

/// Moves the bytes until all callers are done.
async fn connection(wire: &mut dyn Wire, desk: &RefCell<Desk>) -> Result<(), RawError> {
    let mut buffer = BytesMut::new();
    loop {
        loop {
            let data = desk.borrow_mut().out.split();
            if data.is_empty() {
                break;
            }
            wire.write(data.freeze()).await?;
        }
        if desk.borrow().callers == 0 {
            return Ok(());
        }
        if read(wire, &mut buffer, desk).await? == Some(0) {
            return Err(RawError::EndedEarly);
        }
        while let Some(place) = take(&mut buffer) {
            desk.borrow_mut().answered(place)?;
        }
    }
}

/// Reads, unless there is something to write first.
async fn read(
    wire: &mut dyn Wire,
    into: &mut BytesMut,
    desk: &RefCell<Desk>,
) -> Result<Option<usize>, RawError> {
    let mut read = wire.read(into);
    poll_fn(|cx| {
        if desk.borrow().has_work() {
            return Poll::Ready(Ok(None));
        }
        read.as_mut().poll(cx).map(|read| read.map(Some))
    })
    .await
}

/// Where callers and connection meet.
struct Desk {
    out: BytesMut,
    places: Vec<Place>,
    /// How many have not asked all they had to.
    callers: usize,
    collector: Collector,
}

#[derive(Clone)]
enum Place {
    Idle,
    Asked(Option<Waker>),
    Answered,
}

impl Desk {
    fn new(in_flight: usize) -> Self {
        let places = vec![Place::Idle; in_flight];
        Self { out: BytesMut::new(), places, callers: 0, collector: Collector::new() }
    }

    fn ask(&mut self, place: usize) {
        self.places[place] = Place::Asked(None);
        put(place as u64, &mut self.out);
    }

    fn poll_answer(&mut self, place: usize, cx: &Context<'_>) -> Poll<()> {
        match &mut self.places[place] {
            Place::Asked(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Place::Idle | Place::Answered => Poll::Ready(()),
        }
    }

    fn answered(&mut self, place: u64) -> Result<(), RawError> {
        let place = usize::try_from(place).ok().and_then(|place| self.places.get_mut(place));
        let place = place.ok_or(RawError::OutOfOrder)?;
        match std::mem::replace(place, Place::Answered) {
            Place::Asked(waker) => waker.into_iter().for_each(Waker::wake),
            Place::Idle | Place::Answered => return Err(RawError::OutOfOrder),
        }
        Ok(())
    }

    fn caller_done(&mut self) {
        self.callers -= 1;
    }

    /// There is something to write, or nothing more will come.
    fn has_work(&self) -> bool {
        !self.out.is_empty() || self.callers == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_to_the_caller_it_names_and_to_nobody_twice() {
        let mut desk = Desk::new(2);
        let cx = Context::from_waker(Waker::noop());
        desk.ask(0);
        desk.ask(1);
        desk.answered(1).unwrap();
        assert!(desk.poll_answer(1, &cx).is_ready());
        assert!(desk.poll_answer(0, &cx).is_pending());
        assert!(matches!(desk.answered(1), Err(RawError::OutOfOrder)));
        assert!(matches!(desk.answered(2), Err(RawError::OutOfOrder)));
    }
}
