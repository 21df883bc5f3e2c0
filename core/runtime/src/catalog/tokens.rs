//! The numbers of the jobs that run in one activation.

/// The running jobs; in the usual case there is one at most, and nothing is allocated for it.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    one: Option<u64>,
    others: Vec<u64>,
}

impl Tokens {
    /// A job runs.
    #[inline]
    pub(super) fn push(&mut self, token: u64) {
        match self.one {
            None => self.one = Some(token),
            Some(_) => self.others.push(token),
        }
    }

    /// A job runs no longer.
    #[inline]
    pub(super) fn remove(&mut self, token: u64) {
        if self.one == Some(token) {
            self.one = None;
        } else if !self.others.is_empty() {
            self.others.retain(|running| *running != token);
        }
    }

    /// None runs.
    pub(super) fn clear(&mut self) {
        self.one = None;
        self.others = Vec::new();
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.one.into_iter().chain(self.others.iter().copied())
    }

    /// Whether one of them is wanted.
    pub(super) fn any(&self, wanted: impl FnMut(u64) -> bool) -> bool {
        self.iter().any(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_overlap_are_known_until_they_end_in_whatever_order() {
        let mut tokens = Tokens::default();
        (1..=4).for_each(|token| tokens.push(token));
        for (ended, left) in [(1, vec![2, 3, 4]), (3, vec![2, 4]), (4, vec![2]), (9, vec![2]), (2, vec![])] {
            tokens.remove(ended);
            let known: Vec<u64> = (1..=9).filter(|token| tokens.any(|running| running == *token)).collect();
            assert_eq!(known, left, "after {ended}");
        }
        tokens.push(5);
        tokens.clear();
        assert!(!tokens.any(|_| true));
    }
}
