use std::io::{Read, Write};

use rustls::{ClientConnection, ServerConnection};

use super::*;
use crate::{DevelopmentAuthority, IssuedPem, Validity, explain};

const NAME: &str = "cluster.test";

/// Runs a handshake in memory and says how it ended for the client and for the server.
fn shake(
    client: &Credentials,
    server: &Credentials,
) -> (Result<(), rustls::Error>, Result<(), rustls::Error>) {
    let mut client = ClientConnection::new(client.client_config(&[b"test"]), client.server_name()).unwrap();
    let mut server = ServerConnection::new(server.server_config(&[b"test"])).unwrap();
    let (mut of_client, mut of_server) = (Ok(()), Ok(()));
    for _ in 0..4 {
        if of_server.is_ok() {
            of_server = pass(&mut client, &mut server);
        }
        if of_client.is_ok() {
            of_client = pass(&mut server, &mut client);
        }
    }
    (of_client, of_server)
}

fn pass<A, B>(
    from: &mut rustls::ConnectionCommon<A>,
    to: &mut rustls::ConnectionCommon<B>,
) -> Result<(), rustls::Error> {
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    let mut wire = wire.as_slice();
    while !wire.is_empty() {
        to.read_tls(&mut wire).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

fn load(ca: &DevelopmentAuthority, node: &IssuedPem) -> Result<Credentials, TlsError> {
    Credentials::from_pem(ca.certificate().as_bytes(), node.certificate.as_bytes(), node.key.as_bytes(), NAME)
}

fn authority() -> DevelopmentAuthority {
    DevelopmentAuthority::in_memory().unwrap()
}

#[test]
fn two_nodes_of_one_authority_trust_each_other() {
    let ca = authority();
    let (client, server) = shake(&ca.credentials(NAME).unwrap(), &ca.credentials(NAME).unwrap());
    client.unwrap();
    server.unwrap();
}

#[test]
fn only_tls_1_3_with_the_named_protocols_is_offered() {
    let credentials = authority().credentials(NAME).unwrap();
    let mut client =
        ClientConnection::new(credentials.client_config(&[b"one"]), credentials.server_name()).unwrap();
    let mut server = ServerConnection::new(credentials.server_config(&[b"two", b"one"])).unwrap();
    for _ in 0..3 {
        pass(&mut client, &mut server).unwrap();
        pass(&mut server, &mut client).unwrap();
    }
    assert_eq!(server.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    assert_eq!(client.alpn_protocol(), Some(&b"one"[..]));
    client.writer().write_all(b"hello").unwrap();
    pass(&mut client, &mut server).unwrap();
    let mut got = [0; 5];
    server.reader().read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");
}

#[test]
fn a_server_of_another_authority_is_refused_in_words_on_both_sides() {
    let ours = authority().credentials(NAME).unwrap();
    let theirs = authority().credentials(NAME).unwrap();
    let (client, server) = shake(&ours, &theirs);
    assert_eq!(explain(&client.unwrap_err()), "the peer's certificate was issued by another authority");
    assert_eq!(
        explain(&server.unwrap_err()),
        "the peer refused this node's certificate: it was issued by another authority"
    );
}

#[test]
fn a_client_with_an_expired_certificate_is_refused_in_words_on_both_sides() {
    let ca = authority();
    let expired = ca.credentials_with(NAME, Validity::Expired).unwrap();
    let (client, server) = shake(&expired, &ca.credentials(NAME).unwrap());
    assert_eq!(explain(&server.unwrap_err()), "the peer's certificate has expired");
    assert_eq!(explain(&client.unwrap_err()), "the peer refused this node's certificate: it has expired");
}

#[test]
fn a_server_whose_certificate_is_not_valid_yet_is_refused() {
    let ca = authority();
    let early = ca.credentials_with(NAME, Validity::NotYet).unwrap();
    let (client, _) = shake(&ca.credentials(NAME).unwrap(), &early);
    assert!(explain(&client.unwrap_err()).contains("is not valid yet"));
}

#[test]
fn a_server_with_another_name_is_refused() {
    let ca = authority();
    let (client, _) = shake(&ca.credentials(NAME).unwrap(), &ca.credentials("other.test").unwrap());
    let why = explain(&client.unwrap_err());
    assert!(why.contains("is not for the name cluster.test but for"), "{why}");
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let ca = authority();
    let ours = ca.credentials(NAME).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.certificate().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let bare = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(bare), ours.server_name()).unwrap();
    let mut server = ServerConnection::new(ours.server_config(&[])).unwrap();
    pass(&mut client, &mut server).unwrap();
    pass(&mut server, &mut client).unwrap();
    let refused = pass(&mut client, &mut server).unwrap_err();
    assert_eq!(explain(&refused), "the peer has shown no certificate");
}

#[test]
fn a_missing_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    DevelopmentAuthority::create(dir.path(), NAME).unwrap();
    let mut files = DevelopmentAuthority::files(dir.path());
    Credentials::from_files(&files, NAME).unwrap();
    files.key = dir.path().join("absent.key");
    let error = Credentials::from_files(&files, NAME).unwrap_err();
    assert!(matches!(&error, TlsError::Unreadable { file: PemFile::Key, path, .. } if *path == files.key));
    assert!(error.to_string().contains("absent.key"), "{error}");
}

#[test]
fn an_expired_certificate_is_refused_when_it_is_loaded_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let ca = DevelopmentAuthority::create(dir.path(), NAME).unwrap();
    let files = DevelopmentAuthority::files(dir.path());
    let expired = ca.issue(NAME, Validity::Expired).unwrap();
    std::fs::write(&files.certificate, expired.certificate).unwrap();
    std::fs::write(&files.key, expired.key).unwrap();
    let error = Credentials::from_files(&files, NAME).unwrap_err();
    assert!(matches!(error, TlsError::Expired { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("node.pem has expired"), "{text}");
}

#[test]
fn a_certificate_of_the_future_is_refused_when_it_is_loaded() {
    let ca = authority();
    let error = load(&ca, &ca.issue(NAME, Validity::NotYet).unwrap()).unwrap_err();
    assert!(matches!(error, TlsError::NotYetValid { .. }), "{error}");
}

#[test]
fn a_certificate_of_another_authority_is_refused_when_it_is_loaded() {
    let error = load(&authority(), &authority().issue(NAME, Validity::Current).unwrap()).unwrap_err();
    assert!(matches!(error, TlsError::WouldBeRefused { .. }), "{error}");
    assert!(error.to_string().contains("it was issued by another authority"), "{error}");
}

#[test]
fn a_certificate_for_another_name_is_refused_when_it_is_loaded() {
    let ca = authority();
    let error = load(&ca, &ca.issue("other.test", Validity::Current).unwrap()).unwrap_err();
    assert!(error.to_string().contains("not for the name cluster.test"), "{error}");
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let ca = authority();
    let mut node = ca.issue(NAME, Validity::Current).unwrap();
    node.key = ca.issue(NAME, Validity::Current).unwrap().key;
    assert!(matches!(load(&ca, &node).unwrap_err(), TlsError::KeyMismatch { .. }));
}

#[test]
fn garbage_is_told_apart_by_file() {
    let ca = authority();
    let good = ca.issue(NAME, Validity::Current).unwrap();
    let garbage = [
        "",
        "hello",
        "\0\u{7f}",
        "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    ];
    for text in garbage {
        let of_ca =
            Credentials::from_pem(text.as_bytes(), good.certificate.as_bytes(), good.key.as_bytes(), NAME);
        assert!(
            matches!(of_ca.unwrap_err(), TlsError::NoCertificate { file: PemFile::Authority, .. }),
            "{text}"
        );
        let bad = IssuedPem { certificate: text.into(), key: good.key.clone() };
        let of_certificate = load(&ca, &bad).unwrap_err();
        assert!(
            matches!(of_certificate, TlsError::NoCertificate { file: PemFile::Certificate, .. }),
            "{text}: {of_certificate}"
        );
        let bad = IssuedPem { certificate: good.certificate.clone(), key: text.into() };
        let of_key = load(&ca, &bad).unwrap_err();
        assert!(matches!(of_key, TlsError::BadKey { .. }), "{text}: {of_key}");
    }
}

#[test]
fn a_server_name_that_is_no_name_is_refused() {
    let ca = authority();
    let node = ca.issue(NAME, Validity::Current).unwrap();
    let error = Credentials::from_pem(
        ca.certificate().as_bytes(),
        node.certificate.as_bytes(),
        node.key.as_bytes(),
        "not a name",
    );
    assert!(matches!(error.unwrap_err(), TlsError::BadServerName { .. }));
}

#[test]
fn the_debug_text_holds_no_secret() {
    let text = format!("{:?}", authority().credentials(NAME).unwrap());
    assert!(text.contains(NAME) && text.contains("fingerprint"), "{text}");
    assert!(text.len() < 200, "{text}");
}
