//! The secret that lets somebody change something.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A bearer token. It is never shown.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

/// A token cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too short to be a secret.
    #[error("a token has at least {} characters", Token::SHORTEST)]
    TooShort,
    /// It is too long, or has other characters than a header may have.
    #[error("a token has visible ASCII characters, {} at most", Token::LONGEST)]
    Malformed,
}

impl Token {
    /// The fewest characters of a token.
    pub const SHORTEST: usize = 16;
    /// The most characters of a token.
    pub const LONGEST: usize = 1_024;

    /// Takes this text as the token.
    ///
    /// # Errors
    ///
    /// It is too short or too long, or has characters that a header cannot have.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if text.len() > Self::LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Malformed);
        }
        if text.len() < Self::SHORTEST {
            return Err(TokenError::TooShort);
        }
        Ok(Self(text.as_bytes().into()))
    }

    /// Reads the token from a file, without the line break at its end.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let most = Self::LONGEST as u64 + 3;
        let file = File::open(path).map_err(unreadable)?;
        warn_if_open(path, &file);
        file.take(most).read_to_string(&mut text).map_err(unreadable)?;
        Self::new(text.trim_end_matches(['\r', '\n']))
    }

    /// Whether `given` is the token. Takes as long whatever is wrong with it.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let mut difference = self.0.len() ^ given.len();
        for (at, byte) in given.iter().enumerate() {
            difference |= usize::from(byte ^ self.0[at % self.0.len()]);
            difference = black_box(difference);
        }
        black_box(difference) == 0
    }
}

/// A secret that every user of the machine can read is none.
#[cfg(unix)]
fn warn_if_open(path: &Path, file: &File) {
    use std::os::unix::fs::PermissionsExt;
    let is_open = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o007 != 0);
    if is_open {
        tracing::warn!(path = %path.display(), "everybody on this machine can read the admin token");
    }
}

#[cfg(not(unix))]
fn warn_if_open(_: &Path, _: &File) {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_is_the_token() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        let wrong: [&[u8]; 6] = [
            b"",
            b"0123456789abcdeF",
            b"0123456789abcde",
            b"0123456789abcdef0",
            b"0123456789abcdef0123456789abcdef",
            b"1123456789abcdef",
        ];
        for given in wrong {
            assert!(!token.is(given), "{given:?}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_and_none_is_shown() {
        assert!(matches!(Token::new("short"), Err(TokenError::TooShort)));
        assert!(matches!(Token::new(""), Err(TokenError::TooShort)));
        assert!(matches!(Token::new("with spaces is not a token"), Err(TokenError::Malformed)));
        assert!(matches!(Token::new(&"a".repeat(1_025)), Err(TokenError::Malformed)));
        assert!(matches!(Token::read(Path::new("/nowhere/at/all")), Err(TokenError::Unreadable { .. })));
        let token = Token::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
