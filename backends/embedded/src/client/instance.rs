//! Which instance of the server this client works with, and who wants to know when it is gone.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The instance that was met first. There is no way back from having met another.
#[derive(Default)]
pub(crate) struct Met {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Option<u64>,
    gone: bool,
    callbacks: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl Met {
    /// The instance met so far.
    pub(crate) fn known(&self) -> Result<Option<u64>, NewInstance> {
        let state = self.lock();
        if state.gone { Err(NewInstance) } else { Ok(state.known) }
    }

    /// Notes that `instance` has answered.
    pub(crate) fn meet(&self, instance: u64) -> Result<(), NewInstance> {
        let callbacks = {
            let mut state = self.lock();
            if state.gone {
                return Err(NewInstance);
            }
            if *state.known.get_or_insert(instance) == instance {
                return Ok(());
            }
            state.gone = true;
            std::mem::take(&mut state.callbacks)
        };
        tracing::error!(instance, "the served store is a new instance and has forgotten everything");
        // Called without the lock: a callback may use the store.
        callbacks.iter().for_each(|callback| callback());
        Err(NewInstance)
    }

    pub(crate) fn on_new_instance(&self, callback: Box<dyn Fn() + Send + Sync>) {
        let mut state = self.lock();
        if state.gone {
            drop(state);
            callback();
        } else {
            state.callbacks.push(callback);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server has started anew since this client met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the served store has started anew and forgotten all sessions; \
     stop everything, and open a new session above a new connection to it"
)]
pub(crate) struct NewInstance;
