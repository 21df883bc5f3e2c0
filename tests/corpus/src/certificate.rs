//! The certificate of a peer, as far as this project looks into it.

use archipelago_tls::{DevelopmentAuthority, Validity, identity_of};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::memory;

/// A certificate in DER.
pub(crate) fn certificate(bytes: &[u8]) -> bool {
    let chain = [CertificateDer::from(bytes.to_vec())];
    let identity = memory::within(bytes.len(), MEMORY, || identity_of(&chain));
    assert!(identity.fingerprint.is_some());
    let text: usize = identity.names.iter().map(String::len).sum();
    assert!(text <= bytes.len(), "the names are in the certificate");
    assert_eq!(identity_of(&chain), identity, "the same certificate is always the same peer");
    !identity.names.is_empty()
}

/// Certificates for one name and for a longer one.
pub(crate) fn certificates() -> Vec<Vec<u8>> {
    let authority = DevelopmentAuthority::in_memory().expect("an authority can be made");
    let certificate = |name: &str| {
        let issued = authority.issue(name, Validity::Current).expect("a certificate can be issued");
        CertificateDer::from_pem_slice(issued.certificate.as_bytes()).expect("it is PEM").to_vec()
    };
    let (short, long) = (certificate("a.test"), certificate("cluster-7.north.example.org"));
    vec![short[..short.len() / 2].to_vec(), short, long]
}

/// A name takes 3 bytes at least in the certificate, and 24 in the list.
const MEMORY: (usize, usize) = (32, 1 << 10);
