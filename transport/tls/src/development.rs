//! A certificate authority for development and tests.
//!
//! Two processes that are started with the same directory trust each other without any preparation. It is not for
//! production: the authority's key lies beside the nodes, and whoever reads it can be any node.
//!
//! Invariant: all processes that use one directory, also if they start at the same time, use one authority. What
//! makes the authority is its key alone: its name and certificate follow from the key, so `ca.key` is the only file
//! that must be chosen once, and `install` does that.

use std::fmt;
use std::io;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::UnixTime;
use time::{Duration, OffsetDateTime};

use crate::credentials::{Credentials, TlsFiles};
use crate::error::{PemOrigin, TlsError};
use crate::install::{install_once, read_if_there};

/// Issues certificates that live on this machine. For development and tests only.
pub struct DevelopmentAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// The time in which an issued certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Validity {
    /// From yesterday (clocks differ) for ten years.
    Current,
    /// It ended yesterday.
    Expired,
    /// It begins tomorrow.
    NotYet,
}

/// A certificate and its key, as PEM texts.
#[derive(Clone)]
pub struct IssuedPem {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl DevelopmentAuthority {
    /// Makes a new authority that exists in memory only.
    ///
    /// # Errors
    ///
    /// `Issue`: the system gives no random numbers.
    pub fn in_memory() -> Result<Self, TlsError> {
        let key = new_key()?;
        let certificate = authority_certificate(&key)?;
        Self::new(&key, certificate)
    }

    /// Makes an authority in `dir`, and a certificate for `server_name` that [`TlsFiles`] can name: `ca.pem`,
    /// `ca.key`, `node.pem` and `node.key`, readable by their owner only.
    ///
    /// # Errors
    ///
    /// `Unwritable`: the directory cannot be written, or there is an authority in it already.
    pub fn create(dir: &Path, server_name: &str) -> Result<Self, TlsError> {
        let path = dir.join(CA_KEY);
        if path.exists() {
            let source = io::Error::new(io::ErrorKind::AlreadyExists, "there is an authority here already");
            return Err(TlsError::Unwritable { path, source });
        }
        Self::open_or_create(dir, server_name)
    }

    /// Uses the authority in `dir`, or makes one there as [`create`](Self::create) does. Says loudly that this is
    /// for development only. An existing `node.pem` stays as it is, whatever its name.
    ///
    /// # Errors
    ///
    /// `Unwritable`: the directory cannot be written. `BadKey`: what is in `ca.key` is not a key.
    pub fn open_or_create(dir: &Path, server_name: &str) -> Result<Self, TlsError> {
        warn_loudly(dir);
        std::fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))?;
        let key = install(dir, CA_KEY, new_key)?;
        let origin = PemOrigin::File(dir.join(CA_KEY));
        KeyPair::from_pem(&key).map_err(|error| TlsError::BadKey { origin, reason: error.to_string() })?;
        let certificate = install(dir, CA_CERTIFICATE, || authority_certificate(&key))?;
        let authority = Self::new(&key, certificate)?;
        authority.install_node(dir, server_name)?;
        Ok(authority)
    }

    /// The files that [`create`](Self::create) and [`open_or_create`](Self::open_or_create) leave in `dir`.
    pub fn files(dir: &Path) -> TlsFiles {
        TlsFiles {
            ca: dir.join(CA_CERTIFICATE),
            certificate: dir.join(NODE_CERTIFICATE),
            key: dir.join(NODE_KEY),
        }
    }

    /// A new certificate for `server_name`, `localhost` and `127.0.0.1`, in memory only, so that every process has
    /// its own.
    ///
    /// # Errors
    ///
    /// `BadServerName`: it is neither a DNS name nor an IP address.
    pub fn credentials(&self, server_name: &str) -> Result<Credentials, TlsError> {
        let issued = self.issue(server_name, Validity::Current)?;
        Credentials::from_pem(
            self.certificate.as_bytes(),
            issued.certificate.as_bytes(),
            issued.key.as_bytes(),
            server_name,
        )
    }

    /// Credentials whose certificate peers must refuse, if `validity` says so. For tests: the usual ways of making
    /// [`Credentials`] would not take it.
    ///
    /// # Errors
    ///
    /// As [`credentials`](Self::credentials).
    pub fn credentials_with(&self, server_name: &str, validity: Validity) -> Result<Credentials, TlsError> {
        let issued = self.issue(server_name, validity)?;
        Credentials::unchecked(
            self.certificate.as_bytes(),
            issued.certificate.as_bytes(),
            issued.key.as_bytes(),
            server_name,
        )
    }

    /// A new certificate as text.
    ///
    /// # Errors
    ///
    /// As [`credentials`](Self::credentials).
    pub fn issue(&self, server_name: &str, validity: Validity) -> Result<IssuedPem, TlsError> {
        let key = new_key()?;
        let certificate = self.leaf(&key, server_name, validity)?;
        Ok(IssuedPem { certificate, key })
    }

    /// The authority's certificate, as PEM text.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    fn new(key: &str, certificate: String) -> Result<Self, TlsError> {
        let pair = KeyPair::from_pem(key).map_err(issue_error)?;
        let issuer = Issuer::new(authority_params(&pair), pair);
        Ok(Self { issuer, certificate })
    }

    /// As with the authority: the key is chosen once, and the certificate follows from it.
    fn install_node(&self, dir: &Path, server_name: &str) -> Result<(), TlsError> {
        let key = install(dir, NODE_KEY, new_key)?;
        install(dir, NODE_CERTIFICATE, || self.leaf(&key, server_name, Validity::Current))?;
        Ok(())
    }

    fn leaf(&self, key: &str, server_name: &str, validity: Validity) -> Result<String, TlsError> {
        let key = KeyPair::from_pem(key).map_err(issue_error)?;
        let params = leaf_params(server_name, validity)?;
        Ok(params.signed_by(&key, &self.issuer).map_err(issue_error)?.pem())
    }
}

impl fmt::Debug for DevelopmentAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevelopmentAuthority").finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedPem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Validity {
    fn range(self) -> (OffsetDateTime, OffsetDateTime) {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::seconds(UnixTime::now().as_secs().cast_signed());
        let day = Duration::DAY;
        match self {
            Self::Current => (now - day, now + day * 3650),
            Self::Expired => (now - day * 2, now - day),
            Self::NotYet => (now + day, now + day * 2),
        }
    }
}

fn warn_loudly(dir: &Path) {
    tracing::warn!(
        directory = %dir.display(),
        "development certificates are in use: whoever can read this directory can be any node; never use them in production"
    );
}

fn install(
    dir: &Path,
    name: &str,
    make: impl FnOnce() -> Result<String, TlsError>,
) -> Result<String, TlsError> {
    let path = dir.join(name);
    match read_if_there(&path).map_err(|source| unwritable(&path, source))? {
        Some(text) => Ok(text),
        None => install_once(&path, &make()?).map_err(|source| unwritable(&path, source)),
    }
}

fn unwritable(path: &Path, source: io::Error) -> TlsError {
    TlsError::Unwritable { path: path.to_owned(), source }
}

fn new_key() -> Result<String, TlsError> {
    Ok(KeyPair::generate().map_err(issue_error)?.serialize_pem())
}

fn authority_certificate(key: &str) -> Result<String, TlsError> {
    let key = KeyPair::from_pem(key).map_err(issue_error)?;
    Ok(authority_params(&key).self_signed(&key).map_err(issue_error)?.pem())
}

fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("archipelago development {}", short_hash(key)));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn leaf_params(server_name: &str, validity: Validity) -> Result<CertificateParams, TlsError> {
    let mut names = vec![server_name.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
    names.dedup();
    let mut params = CertificateParams::new(names)
        .map_err(|_| TlsError::BadServerName { name: server_name.to_owned() })?;
    params.distinguished_name = common_name("archipelago development node");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    (params.not_before, params.not_after) = validity.range();
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Two authorities must not have one name: a peer would then say "bad signature" instead of "another authority".
fn short_hash(key: &KeyPair) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.public_key_raw());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn issue_error(error: rcgen::Error) -> TlsError {
    TlsError::Issue { reason: error.to_string() }
}

const CA_CERTIFICATE: &str = "ca.pem";
const CA_KEY: &str = "ca.key";
const NODE_CERTIFICATE: &str = "node.pem";
const NODE_KEY: &str = "node.key";

#[cfg(test)]
mod tests;
