//! What has come for one reader and was not read yet, and how much more may come.

use bytes::BytesMut;

use crate::chunk::Malformed;

/// The received bytes of the lane or of one stream.
///
/// Invariant: it never holds more than its window, because the sender may not send what was not granted.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: BytesMut,
    window: u32,
    /// How many bytes the sender may still send.
    granted: u64,
    /// How many bytes were read since credit was given last.
    read: u64,
}

impl Inbox {
    pub(crate) fn new(window: u32) -> Self {
        Self { queue: BytesMut::new(), window, granted: window.into(), read: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The sender begins a chunk of this length.
    pub(crate) fn begin(&mut self, len: u32) -> Result<(), Malformed> {
        let left = self.granted.checked_sub(len.into());
        self.granted = left.ok_or(Malformed("more data than was granted"))?;
        Ok(())
    }

    /// Keeps bytes until somebody reads them.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.queue.extend_from_slice(bytes);
    }

    /// Bytes have gone straight to their reader.
    pub(crate) fn pass(&mut self, count: usize) {
        self.read += count as u64;
    }

    /// Moves everything to the end of `into`, and says how much it was.
    pub(crate) fn read(&mut self, into: &mut BytesMut) -> usize {
        let count = self.queue.len();
        // A reader that has made room keeps it: a buffer that grows later would be copied, again and again.
        if into.is_empty() && into.capacity() < count && count > COPY_LIMIT {
            std::mem::swap(&mut self.queue, into);
        } else {
            into.extend_from_slice(&self.queue);
            self.queue.clear();
        }
        self.pass(count);
        count
    }

    /// Forgets everything that was not read.
    pub(crate) fn discard(&mut self) {
        self.queue = BytesMut::new();
    }

    /// The credit to send now. A quarter of the window gathers first, so that credit costs next to nothing.
    pub(crate) fn credit(&mut self) -> Option<u32> {
        if self.read == 0 || self.read < u64::from(self.window / 4) {
            return None;
        }
        // Never more than the window, which is 32 bits wide: only what came is read, only what was granted comes.
        let credit = u32::try_from(self.read).unwrap_or(u32::MAX);
        self.granted += u64::from(credit);
        self.read -= u64::from(credit);
        Some(credit)
    }
}

/// Above this many bytes the buffer itself changes hands; below, copying keeps the reader's buffer in use.
const COPY_LIMIT: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_was_granted_is_refused() {
        let mut inbox = Inbox::new(100);
        inbox.begin(60).unwrap();
        inbox.begin(40).unwrap();
        assert!(inbox.begin(1).is_err());
    }

    #[test]
    fn what_is_read_is_granted_again() {
        let mut inbox = Inbox::new(100);
        let mut into = BytesMut::new();
        for _ in 0..1_000 {
            inbox.begin(30).unwrap();
            inbox.push(&[7; 30]);
            assert_eq!(inbox.read(&mut into), 30);
            assert_eq!(inbox.credit(), Some(30));
        }
        assert_eq!(into.len(), 30_000);
    }

    #[test]
    fn a_little_that_was_read_gives_no_credit_yet() {
        let mut inbox = Inbox::new(100);
        inbox.pass(24);
        assert_eq!(inbox.credit(), None);
        inbox.pass(1);
        assert_eq!(inbox.credit(), Some(25));
    }

    #[test]
    fn a_reader_that_has_made_room_keeps_it() {
        let mut inbox = Inbox::new(1 << 20);
        inbox.push(&[1; 50_000]);
        let mut into = BytesMut::with_capacity(1 << 20);
        inbox.read(&mut into);
        assert_eq!((into.len(), into.capacity()), (50_000, 1 << 20));
    }

    #[test]
    fn large_content_changes_hands_in_order() {
        let mut inbox = Inbox::new(1 << 20);
        inbox.push(&[1; 50_000]);
        let mut into = BytesMut::new();
        assert_eq!(inbox.read(&mut into), 50_000);
        inbox.push(&[2; 50_000]);
        assert_eq!(inbox.read(&mut into), 50_000);
        assert!(into[..50_000].iter().all(|byte| *byte == 1) && into[50_000..].iter().all(|byte| *byte == 2));
    }
}
