//! Who a certificate says its holder is.

use archipelago_protocol::contract::PeerIdentity;
use rustls::pki_types::CertificateDer;

/// What the holder of `chain` has proven about itself; `chain` is as rustls gives it after the handshake, the
/// holder's own certificate first.
///
/// The names are the DNS names of the certificate, read by the parser that checked the certificate in the handshake
/// (webpki), so that the two cannot disagree and no second X.509 parser is built in. A certificate that cannot be
/// parsed has no names; rustls accepts none of those.
pub fn identity_of(chain: &[CertificateDer<'_>]) -> PeerIdentity {
    let Some(own) = chain.first() else { return PeerIdentity::default() };
    PeerIdentity { names: names_of(own), fingerprint: Some(fingerprint_of(own)) }
}

/// The SHA-256 of a certificate.
pub(crate) fn fingerprint_of(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest.as_ref());
    fingerprint
}

fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    webpki::EndEntityCert::try_from(certificate)
        .map(|parsed| parsed.valid_dns_names().map(str::to_owned).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::{DevelopmentAuthority, Validity};

    fn leaf() -> CertificateDer<'static> {
        let authority = DevelopmentAuthority::in_memory().unwrap();
        let pem = authority.issue("cluster.test", Validity::Current).unwrap().certificate;
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn an_identity_has_the_dns_names_and_the_sha256_of_the_first_certificate() {
        let leaf = leaf();
        let identity = identity_of(&[leaf.clone(), CertificateDer::from(vec![1, 2, 3])]);
        assert_eq!(identity.names, ["cluster.test", "localhost"]);
        assert_eq!(identity.fingerprint, Some(fingerprint_of(&leaf)));
    }

    #[test]
    fn two_certificates_for_one_name_have_different_fingerprints() {
        assert_ne!(identity_of(&[leaf()]).fingerprint, identity_of(&[leaf()]).fingerprint);
    }

    #[test]
    fn nothing_is_said_about_nobody_and_garbage_has_no_names() {
        assert_eq!(identity_of(&[]), PeerIdentity::default());
        assert!(identity_of(&[CertificateDer::from(vec![0x30, 0xff])]).names.is_empty());
    }
}
