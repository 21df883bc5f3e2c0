//! Where accounts are kept: files that every process of the machine can reach.
//!
//! Each generation writes a file of its own, and begins it with what the newest before it held. So a load is a fence: what an
//! earlier owner writes afterwards is seen by nobody. No lock is held at any time, because whoever holds it may be stopped.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use archipelago_protocol::identity::Generation;

/// The most callers that move money.
pub(crate) const CALLERS: usize = 16;

/// What is kept of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) visits: u64,
    pub(crate) balance: i64,
    /// The newest transfer of each caller: an older one, or the same again, is done already.
    pub(crate) posted: [u64; CALLERS],
}

/// The folder of all accounts.
#[derive(Clone, Debug)]
pub(crate) struct Vault(PathBuf);

/// One account, as one generation writes it.
#[derive(Debug)]
pub(crate) struct Drawer(File);

impl Vault {
    pub(crate) fn within(folder: &Path) -> Self {
        Self(folder.join("accounts"))
    }

    /// What the account holds, and where this generation writes it.
    ///
    /// # Errors
    ///
    /// If a greater generation has loaded it, or it cannot be read.
    pub(crate) fn load(
        &self,
        account: u64,
        generation: Generation,
    ) -> Result<(Saved, Drawer), std::io::Error> {
        let folder = self.0.join(account.to_string());
        std::fs::create_dir_all(&folder)?;
        let own = name(generation);
        let mut names: Vec<_> =
            std::fs::read_dir(&folder)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        if names.last().is_some_and(|newest| *newest > own) {
            return Err(std::io::Error::other("a newer owner has loaded it"));
        }
        let written = |name: &OsString| Saved::decode(&std::fs::read(folder.join(name)).ok()?);
        let saved = names.iter().rev().find_map(written).unwrap_or_default();
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(folder.join(own))?;
        let drawer = Drawer(file);
        drawer.save(&saved)?;
        Ok((saved, drawer))
    }
}

impl Drawer {
    /// One write, so that it is there as a whole or not at all when the process is killed.
    pub(crate) fn save(&self, saved: &Saved) -> Result<(), std::io::Error> {
        self.0.write_all_at(&saved.encode(), 0)
    }
}

impl Saved {
    fn encode(&self) -> Vec<u8> {
        let words = [self.visits, self.balance.cast_unsigned()].into_iter().chain(self.posted);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// None for a file that was created and not written before its writer was killed.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let (visits, balance) = (words.next()?, words.next()?.cast_signed());
        let posted = words.collect::<Vec<u64>>().try_into().ok()?;
        Some(Self { visits, balance, posted })
    }
}

/// Sorts as the generations do.
fn name(generation: Generation) -> OsString {
    format!("{:020}", generation.as_u64()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(visits: u64) -> Saved {
        Saved { visits, balance: -3, posted: [7; CALLERS] }
    }

    #[test]
    fn the_next_generation_finds_what_the_last_one_saved_and_shuts_it_out() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::within(folder.path());
        let (first, old) = vault.load(1, Generation::new(9)).unwrap();
        assert_eq!(first, Saved::default());
        old.save(&saved(5)).unwrap();
        assert_eq!(vault.load(1, Generation::new(9)).unwrap().0, saved(5), "the same generation again");
        let (found, _) = vault.load(1, Generation::new(10)).unwrap();
        assert_eq!(found, saved(5));
        old.save(&saved(6)).unwrap();
        assert_eq!(vault.load(1, Generation::new(11)).unwrap().0, saved(5), "the old one is not heard");
        assert!(vault.load(1, Generation::new(10)).is_err(), "nor may it load again");
        File::create(folder.path().join("accounts/1").join(name(Generation::new(12)))).unwrap();
        assert_eq!(vault.load(1, Generation::new(13)).unwrap().0, saved(5), "nor one that wrote nothing");
    }
}
