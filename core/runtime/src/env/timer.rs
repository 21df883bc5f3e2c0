//! The environment's clock, as the directory wants it.

use std::sync::Arc;

use archipelago_directory::{Sleep, Timer};
use archipelago_protocol::time::Millis;

use super::Environment;

/// A [`Timer`] that runs on the clock of an [`Environment`].
pub struct EnvironmentTimer(pub Arc<dyn Environment>);

impl Timer for EnvironmentTimer {
    fn now(&self) -> Millis {
        self.0.now()
    }

    fn sleep(&self, length: Millis) -> Sleep {
        self.0.sleep(length)
    }
}

impl std::fmt::Debug for EnvironmentTimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnvironmentTimer")
    }
}
