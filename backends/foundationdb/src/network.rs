//! The client's network thread: one per process, started with the first store and stopped when the process ends.
//!
//! `libfdb_c` allows neither a second start nor an end of the process while the thread runs. So nobody owns the thread: it is
//! stopped by what the C library runs at `exit`, which is also where a program ends that returns from `main`.

#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};

use foundationdb::FdbError;
use foundationdb::api::{FdbApiBuilder, NetworkAutoStop, get_max_api_version};

use crate::client::refused;
use crate::store::FoundationDbError;

/// Starts the thread, unless it runs.
pub(crate) fn start() -> Result<(), FoundationDbError> {
    static STARTED: OnceLock<Result<(), Failed>> = OnceLock::new();
    match STARTED.get_or_init(start_once) {
        Ok(()) => Ok(()),
        Err(Failed::TooOld { speaks, needed }) => {
            Err(FoundationDbError::LibraryTooOld { speaks: *speaks, needed: *needed })
        }
        Err(Failed::Refused(error)) => Err(refused(*error)),
    }
}

/// Kept, because it cannot be tried a second time.
enum Failed {
    TooOld { speaks: i32, needed: i32 },
    Refused(FdbError),
}

fn start_once() -> Result<(), Failed> {
    let builder = FdbApiBuilder::default();
    let (speaks, needed) = (get_max_api_version(), builder.runtime_version());
    if speaks < needed {
        return Err(Failed::TooOld { speaks, needed });
    }
    let Ok(selected) = catch_unwind(|| builder.build()) else {
        // The program itself uses FoundationDB, and has started its network.
        return Ok(());
    };
    let network = selected.map_err(Failed::Refused)?;
    // SAFETY: the handle must be dropped before the process exits; `stop` does, and is registered before anything else
    // happens. If it cannot be registered the handle is dropped here.
    let running = unsafe { network.boot() }.map_err(Failed::Refused)?;
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    // SAFETY: `stop` neither unwinds (that aborts) nor uses what is gone at exit: a static without a destructor.
    if unsafe { libc::atexit(stop) } != 0 {
        stop();
        return Err(Failed::Refused(FdbError::from_code(CLIENT_INVALID_OPERATION)));
    }
    Ok(())
}

/// Stops the thread and waits for its end.
extern "C" fn stop() {
    drop(RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take());
}

static RUNNING: Mutex<Option<NetworkAutoStop>> = Mutex::new(None);

const CLIENT_INVALID_OPERATION: i32 = 2000;
