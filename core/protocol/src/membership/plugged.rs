//! A rule of the user's own, where settings are compared and hashed.

use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};

/// A rule that was plugged in. Two are equal if they are the same instance.
pub struct Plugged<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Plugged<T> {
    /// Plugs `rule` in.
    pub const fn new(rule: Arc<T>) -> Self {
        Self(rule)
    }

    /// The rule.
    pub fn rule(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Clone for Plugged<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> PartialEq for Plugged<T> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl<T: ?Sized> Eq for Plugged<T> {}

/// All hash alike: an address would differ from run to run.
impl<T: ?Sized> Hash for Plugged<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Plugged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
