//! Where the money is: in accounts, or on its way between two.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All accounts and transfers.
#[derive(Debug, Default)]
pub(crate) struct Bank {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// What each account holds above or below what it began with.
    balances: BTreeMap<u64, i64>,
    transfers: Vec<Transfer>,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: u64,
    amount: i64,
    credited: bool,
    refunded: bool,
}

impl Bank {
    /// Takes money from an account. Answers with the number of the transfer.
    pub(crate) fn debit(&self, from: u64, amount: i64) -> usize {
        let mut inner = self.lock();
        *inner.balances.entry(from).or_default() -= amount;
        inner.transfers.push(Transfer { from, amount, credited: false, refunded: false });
        inner.transfers.len() - 1
    }

    /// Puts the money of a transfer into an account.
    pub(crate) fn credit(&self, to: u64, transfer: usize) {
        let mut inner = self.lock();
        let amount = inner.transfers[transfer].amount;
        inner.transfers[transfer].credited = true;
        *inner.balances.entry(to).or_default() += amount;
    }

    /// Gives the money of a transfer back.
    pub(crate) fn refund(&self, transfer: usize) {
        let mut inner = self.lock();
        let Transfer { from, amount, .. } = inner.transfers[transfer];
        inner.transfers[transfer].refunded = true;
        *inner.balances.entry(from).or_default() += amount;
    }

    /// What the accounts and the money on its way sum up to: always zero.
    pub(crate) fn sum(&self) -> i64 {
        let inner = self.lock();
        let on_its_way = inner.transfers.iter().filter(|t| !t.credited && !t.refunded).map(|t| t.amount);
        inner.balances.values().sum::<i64>() + on_its_way.sum::<i64>()
    }

    /// How many transfers are neither credited nor refunded, and how many there were.
    pub(crate) fn open(&self) -> (usize, usize) {
        let inner = self.lock();
        let open = inner.transfers.iter().filter(|t| !t.credited && !t.refunded).count();
        (open, inner.transfers.len())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
