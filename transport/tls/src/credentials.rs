//! What a node proves itself with, and whom it believes.
//!
//! [`Credentials`] checks everything when it is loaded: that the key belongs to the certificate, and that the node's
//! own certificate would pass the checks that its peers will make. So a mistake is found at start, with the path of
//! the file, and not as a refused connection later.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};

use crate::error::{PemFile, PemOrigin, TlsError};
use crate::explain;
use crate::identity::fingerprint_of;

/// The three PEM files of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsFiles {
    /// The certificates of the authorities that are believed.
    pub ca: PathBuf,
    /// The certificate of this node, first in its file, and the ones between it and the authority.
    pub certificate: PathBuf,
    /// The private key of this node (PKCS#8, SEC1 or PKCS#1).
    pub key: PathBuf,
}

/// A node's certificate and key, and the authority it believes. Cheap to clone; its debug text holds no secret.
#[derive(Clone)]
pub struct Credentials {
    inner: Arc<Inner>,
}

struct Inner {
    server: ServerConfig,
    client: ClientConfig,
    server_name: ServerName<'static>,
    fingerprint: [u8; 32],
}

impl Credentials {
    /// Reads and checks the three files. `server_name` is the name that every node's certificate carries and that
    /// this node expects of the nodes it dials.
    ///
    /// # Errors
    ///
    /// Every variant of [`TlsError`] but `Unwritable` and `Issue`, each with the path of the file at fault.
    pub fn from_files(files: &TlsFiles, server_name: &str) -> Result<Self, TlsError> {
        let ca = PemText::read(PemFile::Authority, &files.ca)?;
        let certificate = PemText::read(PemFile::Certificate, &files.certificate)?;
        let key = PemText::read(PemFile::Key, &files.key)?;
        Self::load(&ca, &certificate, &key, server_name, Check::AsPeersWill)
    }

    /// Checks three PEM texts, as [`from_files`](Self::from_files) does.
    ///
    /// # Errors
    ///
    /// As `from_files`, without paths.
    pub fn from_pem(ca: &[u8], certificate: &[u8], key: &[u8], server_name: &str) -> Result<Self, TlsError> {
        Self::in_memory(ca, certificate, key, server_name, Check::AsPeersWill)
    }

    /// Takes a certificate that peers will refuse, so that tests can see them do it.
    pub(crate) fn unchecked(
        ca: &[u8],
        certificate: &[u8],
        key: &[u8],
        server_name: &str,
    ) -> Result<Self, TlsError> {
        Self::in_memory(ca, certificate, key, server_name, Check::KeyOnly)
    }

    /// What this node uses when it is dialled. `alpn` names the protocols it speaks, the best first; empty for none.
    pub fn server_config(&self, alpn: &[&[u8]]) -> Arc<ServerConfig> {
        let mut config = self.inner.server.clone();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// What this node uses when it dials. `alpn` as in [`server_config`](Self::server_config).
    pub fn client_config(&self, alpn: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = self.inner.client.clone();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// The name that this node expects in the certificates of the nodes it dials.
    pub fn server_name(&self) -> ServerName<'static> {
        self.inner.server_name.clone()
    }

    fn in_memory(
        ca: &[u8],
        certificate: &[u8],
        key: &[u8],
        server_name: &str,
        check: Check,
    ) -> Result<Self, TlsError> {
        let ca = PemText::given(PemFile::Authority, ca);
        let certificate = PemText::given(PemFile::Certificate, certificate);
        let key = PemText::given(PemFile::Key, key);
        Self::load(&ca, &certificate, &key, server_name, check)
    }

    fn load(
        ca: &PemText,
        certificate: &PemText,
        key: &PemText,
        server_name: &str,
        check: Check,
    ) -> Result<Self, TlsError> {
        let server_name = parse_server_name(server_name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let believed = Believed::new(ca, &provider)?;
        let own = certified_key(certificate, key, &provider)?;
        if check == Check::AsPeersWill {
            believed.check_own(&own, &server_name).map_err(|why| refusal(&why, certificate))?;
        }
        Self::build(believed, own, server_name, provider).map_err(|why| refusal(&why, certificate))
    }

    fn build(
        believed: Believed,
        own: CertifiedKey,
        server_name: ServerName<'static>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let fingerprint = fingerprint_of(own.end_entity_cert()?);
        let own = Arc::new(SingleCertAndKey::from(own));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(believed.clients)
            .with_cert_resolver(own.clone());
        // Connections live long: a resumed session would only save one signature and would need shared secrets.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_webpki_verifier(believed.servers)
            .with_client_cert_resolver(own);
        client.resumption = Resumption::disabled();
        Ok(Self { inner: Arc::new(Inner { server, client, server_name, fingerprint }) })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint: String = self.inner.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
        f.debug_struct("Credentials")
            .field("server_name", &self.inner.server_name)
            .field("fingerprint", &fingerprint)
            .finish_non_exhaustive()
    }
}

/// How much of a node's own certificate is checked when it is loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    AsPeersWill,
    KeyOnly,
}

/// A PEM text and where it came from.
struct PemText {
    file: PemFile,
    origin: PemOrigin,
    text: Vec<u8>,
}

impl PemText {
    fn read(file: PemFile, path: &Path) -> Result<Self, TlsError> {
        let text = std::fs::read(path).map_err(|source| TlsError::Unreadable {
            file,
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { file, origin: PemOrigin::File(path.to_owned()), text })
    }

    fn given(file: PemFile, text: &[u8]) -> Self {
        Self { file, origin: PemOrigin::Memory, text: text.to_vec() }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        match found {
            Ok(found) if found.is_empty() => Err(self.no_certificate("it holds no CERTIFICATE section")),
            Ok(found) => Ok(found),
            Err(error) => Err(self.no_certificate(&error.to_string())),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => self.bad_key("it holds no PRIVATE KEY section"),
            other => self.bad_key(&other.to_string()),
        })
    }

    fn no_certificate(&self, reason: &str) -> TlsError {
        TlsError::NoCertificate { file: self.file, origin: self.origin.clone(), reason: reason.to_owned() }
    }

    fn bad_key(&self, reason: &str) -> TlsError {
        TlsError::BadKey { origin: self.origin.clone(), reason: reason.to_owned() }
    }
}

/// The checks that a certificate must pass, in both directions.
struct Believed {
    clients: Arc<dyn ClientCertVerifier>,
    servers: Arc<rustls::client::WebPkiServerVerifier>,
}

impl Believed {
    fn new(ca: &PemText, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in ca.certificates()? {
            roots.add(certificate).map_err(|error| ca.no_certificate(&error.to_string()))?;
        }
        let roots = Arc::new(roots);
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let servers =
            rustls::client::WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        Ok(Self {
            clients: clients.map_err(|error| ca.no_certificate(&error.to_string()))?,
            servers: servers.map_err(|error| ca.no_certificate(&error.to_string()))?,
        })
    }

    /// Does to this node's own certificate what every peer will do to it.
    fn check_own(&self, own: &CertifiedKey, name: &ServerName<'_>) -> Result<(), rustls::Error> {
        let now = UnixTime::now();
        let between = own.cert.get(1..).unwrap_or_default();
        let certificate = own.end_entity_cert()?;
        self.servers.verify_server_cert(certificate, between, name, &[], now)?;
        self.clients.verify_client_cert(certificate, between, now)?;
        Ok(())
    }
}

fn certified_key(
    certificate: &PemText,
    key: &PemText,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = certificate.certificates()?;
    CertifiedKey::from_der(chain, key.private_key()?, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::KeyMismatch { certificate: certificate.origin.clone(), key: key.origin.clone() }
        }
        rustls::Error::InvalidCertificate(why) => certificate.no_certificate(&why.to_string()),
        other => key.bad_key(&other.to_string()),
    })
}

fn refusal(error: &rustls::Error, certificate: &PemText) -> TlsError {
    let certificate = certificate.origin.clone();
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => TlsError::Expired { certificate },
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => TlsError::NotYetValid { certificate },
        rustls::Error::InvalidCertificate(why) => {
            TlsError::WouldBeRefused { certificate, reason: format!("it {}", explain::certificate(why)) }
        }
        other => TlsError::WouldBeRefused { certificate, reason: other.to_string() },
    }
}

fn parse_server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::BadServerName { name: name.to_owned() })
}

#[cfg(test)]
mod tests;
