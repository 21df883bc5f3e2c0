//! What others keep with a node: a value per type, for all its handles and lives.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Node;

/// The values, one of a type. As many as there are types in the program that ask for it.
#[derive(Default)]
pub(super) struct Attached {
    values: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Attached {
    fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(values.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// Keeps `value` unless there is one; whichever it is.
    fn keep<T: Any + Send + Sync>(&self, value: Arc<T>) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::clone(&value) as _);
        Arc::clone(kept).downcast().unwrap_or(value)
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}

impl Node {
    /// The value of type `T` that belongs to this node, which `make` makes if there is none: what is built around a node keeps
    /// here what its parts share. All handles see the same one, over all lives of the node. If two threads make one at the
    /// same time, one of the two is dropped.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let attached = &self.shared().lives().attached;
        attached.find().unwrap_or_else(|| attached.keep(Arc::new(make())))
    }

    /// The value of type `T` that belongs to this node, if there is one.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.shared().lives().attached.find()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_a_type_stays() {
        let attached = Attached::default();
        assert_eq!(attached.find::<u8>(), None);
        assert_eq!(*attached.keep(Arc::new(1_u8)), 1);
        assert_eq!(*attached.keep(Arc::new(2_u8)), 1, "the first one stays");
        assert_eq!(*attached.keep(Arc::new("a")), "a", "another type is another value");
        assert_eq!(attached.find::<u8>().as_deref(), Some(&1));
    }
}
