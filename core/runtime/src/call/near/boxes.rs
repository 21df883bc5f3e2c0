//! The memory of replies that have been taken, for those to come.
//!
//! Replies of other nodes come in bursts, and each needs memory until its caller takes it. An allocator keeps a handful of
//! freed pieces at hand and works hard for the rest; here as many are kept as the last burst had.

use std::any::Any;
use std::cell::RefCell;

use crate::call::Answer;

thread_local! {
    static BOXES: RefCell<Vec<Box<dyn Any + Send>>> = const { RefCell::new(Vec::new()) };
}

/// The answer in memory of its own: in some that [`keep_box`] has kept, if that is of the same type.
#[inline]
pub(crate) fn boxed<R: Send + 'static>(answer: Answer<R>) -> Box<dyn Any + Send> {
    let kept = BOXES.try_with(|boxes| boxes.borrow_mut().pop()).ok().flatten();
    match kept.and_then(|kept| kept.downcast::<Answer<R>>().ok()) {
        Some(mut kept) => {
            *kept = answer;
            kept
        }
        None => Box::new(answer),
    }
}

/// Keeps the memory of an answer that was taken out: what is left in it must be worth nothing.
#[inline]
pub(crate) fn keep_box(empty: Box<dyn Any + Send>) {
    if size_of_val(&*empty) > LARGEST {
        return;
    }
    // A thread that ends keeps nothing.
    let _ = BOXES.try_with(|boxes| {
        let mut boxes = boxes.borrow_mut();
        if boxes.len() < MOST {
            boxes.push(empty);
        }
    });
}

/// Together these are at most half a megabyte of a thread.
const MOST: usize = 1_024;
const LARGEST: usize = 512;

#[cfg(test)]
mod tests {
    use archipelago_protocol::call::CallError;

    use super::*;

    fn address(boxed: &dyn Any) -> usize {
        std::ptr::from_ref(boxed).addr()
    }

    #[test]
    fn memory_is_used_again_for_an_answer_of_the_same_type() {
        let first = boxed::<u64>(Ok(7));
        let place = address(&*first);
        keep_box(first);
        let second = boxed::<u64>(Ok(8));
        assert_eq!(address(&*second), place);
        assert_eq!(second.downcast_ref::<Answer<u64>>(), Some(&Ok(8)));
    }

    #[test]
    fn an_answer_of_another_type_gets_memory_of_its_own() {
        keep_box(boxed::<u64>(Err(CallError::NoReply)));
        let text = boxed::<String>(Ok("seven".to_owned()));
        assert_eq!(text.downcast_ref::<Answer<String>>(), Some(&Ok("seven".to_owned())));
    }

    #[test]
    fn no_more_is_kept_than_the_bounds_allow() {
        keep_box(Box::new([0_u8; LARGEST + 1]));
        assert!(BOXES.with_borrow(Vec::is_empty));
        (0..2 * MOST).for_each(|_| keep_box(Box::new(0_u64)));
        assert_eq!(BOXES.with_borrow(Vec::len), MOST);
    }
}
