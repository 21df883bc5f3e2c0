//! What can be wrong with the certificates of a node, worded for the person who runs it.

use std::fmt;
use std::path::PathBuf;

/// Why certificates cannot be used. Nothing was changed unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read. Check the path and its permissions.
    #[error("cannot read the {file} {path}: {source}", path = path.display())]
    Unreadable {
        /// Which of the files.
        file: PemFile,
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text holds no certificate at all, or a broken one.
    #[error("there is no usable certificate in the {file} {origin}: {reason}")]
    NoCertificate {
        /// Which of the files.
        file: PemFile,
        /// Where the text came from.
        origin: PemOrigin,
        /// What did not fit.
        reason: String,
    },
    /// The text holds no private key, or one that cannot be used.
    #[error("there is no usable private key in {origin}: {reason}")]
    BadKey {
        /// Where the text came from.
        origin: PemOrigin,
        /// What did not fit.
        reason: String,
    },
    /// Key and certificate are not a pair.
    #[error("the private key {key} does not belong to the certificate {certificate}")]
    KeyMismatch {
        /// Where the certificate came from.
        certificate: PemOrigin,
        /// Where the key came from.
        key: PemOrigin,
    },
    /// The certificate's time is over. Issue a new one.
    #[error("the certificate {certificate} has expired; issue a new one")]
    Expired {
        /// Where the certificate came from.
        certificate: PemOrigin,
    },
    /// The certificate's time has not begun. Check this machine's clock.
    #[error("the certificate {certificate} is not valid yet; check this machine's clock")]
    NotYetValid {
        /// Where the certificate came from.
        certificate: PemOrigin,
    },
    /// The certificate would be refused by every other node.
    #[error("other nodes would refuse the certificate {certificate}: {reason}")]
    WouldBeRefused {
        /// Where the certificate came from.
        certificate: PemOrigin,
        /// Why they would.
        reason: String,
    },
    /// The name that nodes prove to each other is neither a DNS name nor an IP address.
    #[error("the server name {name:?} is neither a DNS name nor an IP address")]
    BadServerName {
        /// The name.
        name: String,
    },
    /// A file of the development authority could not be written. Some of its files may exist now; running again goes on.
    #[error("cannot write {path}: {source}", path = path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot issue a certificate: {reason}")]
    Issue {
        /// What did not fit.
        reason: String,
    },
}

/// Which of the three files of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PemFile {
    /// The certificate of the authority.
    Authority,
    /// The certificate of the node, with the certificates between it and the authority.
    Certificate,
    /// The private key of the node.
    Key,
}

impl fmt::Display for PemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authority => "authority (ca) file",
            Self::Certificate => "certificate file",
            Self::Key => "key file",
        })
    }
}

/// Where a PEM text came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PemOrigin {
    /// A file.
    File(PathBuf),
    /// It was handed over in memory.
    Memory,
}

impl fmt::Display for PemOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str("(given in memory)"),
        }
    }
}
