//! Every order in which the steps of a reader and of those who end its jobs can follow each other.
//!
//! What a thread does next depends only on what its steps so far have answered. So a thread is its answers: to advance it, it
//! is run from its beginning, is given those answers again, makes one step more, and is stopped before the next.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;

/// What all threads share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Shared {
    held: u64,
    is_shut: bool,
}

/// The cells as one thread meets them while it is run once more.
struct Stepping<'a> {
    shared: &'a Cell<Shared>,
    answers: &'a RefCell<Vec<u64>>,
    /// How many answers it was given again.
    given: Cell<usize>,
    has_stepped: Cell<bool>,
    /// The second look of whoever shuts the window shows what was held before, as if it were not made.
    never_looks_again: bool,
}

/// The thread has made its step, and would make another.
struct Stopped;

impl Stepping<'_> {
    fn step(&self, make: impl FnOnce(&mut Shared) -> u64) -> u64 {
        let place = self.given.replace(self.given.get() + 1);
        let known = self.answers.borrow().get(place).copied();
        if let Some(answer) = known {
            return answer;
        }
        if self.has_stepped.replace(true) {
            // Nobody is told of this panic: it is no more than the way back.
            resume_unwind(Box::new(Stopped));
        }
        let mut shared = self.shared.get();
        let answer = make(&mut shared);
        self.shared.set(shared);
        self.answers.borrow_mut().push(answer);
        answer
    }
}

impl Cells for Stepping<'_> {
    fn add(&self, share: u64) -> u64 {
        self.step(|shared| {
            shared.held += share;
            shared.held
        })
    }

    fn take(&self, share: u64) -> u64 {
        self.step(|shared| {
            shared.held -= share;
            shared.held
        })
    }

    fn held(&self) -> u64 {
        self.step(|shared| if self.never_looks_again { u64::MAX } else { shared.held })
    }

    fn shut(&self) {
        self.step(|shared| {
            shared.is_shut = true;
            0
        });
    }

    fn open(&self) -> bool {
        self.step(|shared| u64::from(std::mem::take(&mut shared.is_shut))) == 1
    }

    fn is_shut(&self) -> bool {
        self.step(|shared| u64::from(shared.is_shut)) == 1
    }
}

/// What one thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// Takes so many jobs in and then looks whether to read on.
    Reader { jobs: u32 },
    /// Ends one job, which must have been taken in.
    Worker,
}

/// A run up to some point: the shared cells, the answers of each thread and, once it has ended, what it came to: for the
/// reader whether it reads on, for a worker whether it wakes the reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment {
    shared: Shared,
    threads: Vec<(Vec<u64>, Option<bool>)>,
    /// A worker has said that the reader may go on, after the reader had looked in vain.
    is_woken: bool,
}

struct Walk {
    settings: WindowSettings,
    threads: Vec<Thread>,
    never_looks_again: bool,
    seen: HashSet<Moment>,
    /// Ends at which nothing is held and nobody reads.
    stuck: Vec<Moment>,
    /// Ends at which the reader had looked in vain and was told to go on.
    woken: usize,
}

impl Walk {
    fn new(settings: WindowSettings, workers: usize, never_looks_again: bool) -> Self {
        let jobs = u32::try_from(workers).expect("a few");
        let mut threads = vec![Thread::Reader { jobs }];
        threads.extend(vec![Thread::Worker; workers]);
        Self { settings, threads, never_looks_again, seen: HashSet::new(), stuck: Vec::new(), woken: 0 }
    }

    fn all(mut self) -> Self {
        let threads = vec![(Vec::new(), None); self.threads.len()];
        let mut open = vec![Moment { shared: Shared::default(), threads, is_woken: false }];
        while let Some(moment) = open.pop() {
            if !self.seen.insert(moment.clone()) {
                continue;
            }
            let next: Vec<Moment> =
                (0..self.threads.len()).filter_map(|thread| self.advance(&moment, thread)).collect();
            if next.is_empty() {
                self.judge(moment);
            }
            open.extend(next);
        }
        self
    }

    /// The moment after one more step of a thread; none if it has ended or must wait.
    fn advance(&self, moment: &Moment, thread: usize) -> Option<Moment> {
        let (answers, ended) = &moment.threads[thread];
        // A job can end once it was taken in.
        let may_begin = self.threads[thread] != Thread::Worker || parts(moment.shared.held).1 > 0;
        if ended.is_some() || (answers.is_empty() && !may_begin) {
            return None;
        }
        let (shared, answers) = (Cell::new(moment.shared), RefCell::new(answers.clone()));
        let cells = Stepping {
            shared: &shared,
            answers: &answers,
            given: Cell::new(0),
            has_stepped: Cell::new(false),
            never_looks_again: self.never_looks_again,
        };
        let window = SharedWindow::over(cells, self.settings);
        let run = catch_unwind(AssertUnwindSafe(|| self.run(&window, thread)));
        let ended = match run {
            Ok(ended) => Some(ended),
            Err(stopped) if stopped.is::<Stopped>() => None,
            Err(panic) => resume_unwind(panic),
        };
        let mut next = moment.clone();
        let reader_waits = moment.threads[0].1 == Some(false);
        next.is_woken |= thread > 0 && ended == Some(true) && reader_waits;
        next.shared = shared.get();
        next.threads[thread] = (answers.into_inner(), ended);
        Some(next)
    }

    fn run<C: Cells>(&self, window: &SharedWindow<C>, thread: usize) -> bool {
        match self.threads[thread] {
            Thread::Reader { jobs } => {
                (0..jobs).for_each(|_| window.admit(LEN));
                window.may_read()
            }
            Thread::Worker => window.release(LEN),
        }
    }

    /// All threads have ended, so nothing is held: the window is open, and a reader that looked in vain was woken.
    fn judge(&mut self, moment: Moment) {
        assert_eq!(moment.shared.held, 0, "every job has ended");
        let waits = moment.threads[0].1 == Some(false);
        if moment.shared.is_shut || (waits && !moment.is_woken) {
            self.stuck.push(moment);
        } else {
            self.woken += usize::from(waits);
        }
    }
}

const LEN: u32 = 300;

/// A window that one job shuts, one that two or three do, by number and by bytes.
const WINDOWS: [WindowSettings; 4] = [
    WindowSettings { bytes: 100, jobs: 9 },
    WindowSettings { bytes: 100_000, jobs: 1 },
    WindowSettings { bytes: 700, jobs: 9 },
    WindowSettings { bytes: 100_000, jobs: 0 },
];

#[test]
fn in_whatever_order_threads_step_the_reader_reads_when_nothing_is_held() {
    for settings in WINDOWS {
        for workers in 1..=3 {
            let walk = Walk::new(settings, workers, false).all();
            assert_eq!(walk.stuck, [], "{settings:?}, {workers} workers");
        }
    }
    let walk = Walk::new(WINDOWS[1], 3, false).all();
    assert!(walk.woken > 0 && walk.seen.len() > 500, "{} moments, {} woken", walk.seen.len(), walk.woken);
}

/// The second look is what the invariant rests on.
#[test]
fn without_the_second_look_a_reader_waits_for_ever() {
    let stuck = |settings| !Walk::new(settings, 3, true).all().stuck.is_empty();
    assert!(WINDOWS.into_iter().all(stuck));
}
