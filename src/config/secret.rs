//! Secrets: the configuration holds the name of a file, never the secret.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that holds a secret; the value of a key that ends in `_file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretFile(PathBuf);

/// The content of a [`SecretFile`]. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A secret could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read. Check its path and who may read it.
    #[error("cannot read the secret in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds nothing.
    #[error("the secret in {} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl SecretFile {
    /// Names the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads the secret, without the line break that editors leave at the end.
    ///
    /// # Errors
    ///
    /// - `Unreadable`: the file is absent, may not be read, or is not UTF-8.
    /// - `Empty`: there is nothing in it.
    pub fn read(&self) -> Result<Secret, SecretError> {
        let text = std::fs::read_to_string(&self.0)
            .map_err(|source| SecretError::Unreadable { path: self.0.clone(), source })?;
        let secret = text.trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            return Err(SecretError::Empty { path: self.0.clone() });
        }
        Ok(Secret(secret.to_owned()))
    }

    /// Where the secret is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Secret {
    /// The secret itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &str) -> SecretFile {
        let path = std::env::temp_dir().join(format!("archipelago-secret-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        SecretFile::new(path)
    }

    #[test]
    fn secret_is_read_without_its_last_line_break_and_never_shown() {
        let secret = file("read", "hunter2\n").read().unwrap();
        assert_eq!(secret.expose(), "hunter2");
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn empty_and_absent_secrets_are_told_apart() {
        assert!(matches!(file("empty", "\n").read(), Err(SecretError::Empty { .. })));
        assert!(matches!(SecretFile::new("/no/such").read(), Err(SecretError::Unreadable { .. })));
    }
}
