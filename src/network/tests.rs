//! Which transport comes of which settings, and what is said about certificates that cannot be used.
#![cfg(all(feature = "quic", feature = "tcp"))]

use std::path::PathBuf;

use archipelago_tls::DevelopmentAuthority;

use super::*;
use crate::config::TransportSettings;

/// A directory of its own for one test, removed when the test is over.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("archipelago-network-{}-{test}", std::process::id())))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn settings(kind: TransportKind, change: impl FnOnce(&mut TransportSettings)) -> Settings {
    let mut settings = Settings::default();
    settings.transport.kind = kind;
    change(&mut settings.transport);
    settings
}

fn with_files(directory: &Directory) -> Settings {
    DevelopmentAuthority::open_or_create(&directory.0, "archipelago").unwrap();
    let files = DevelopmentAuthority::files(&directory.0);
    settings(TransportKind::Quic, |transport| {
        transport.ca = Some(files.ca);
        transport.certificate = Some(files.certificate);
        transport.key = Some(files.key);
    })
}

fn name(settings: &Settings) -> Option<&'static str> {
    transport(settings, &Origins::of_code(), None).unwrap().map(|transport| transport.name())
}

fn refusal(settings: &Settings) -> String {
    match transport(settings, &Origins::of_code(), None) {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_kind_becomes_its_transport() {
    let directory = Directory::new("kinds");
    let proven = |transport: &mut TransportSettings| transport.development = Some(directory.0.clone());
    assert_eq!(name(&Settings::default()), None);
    assert_eq!(name(&settings(TransportKind::Quic, proven)), Some("quic"));
    assert_eq!(name(&settings(TransportKind::Tcp, proven)), Some("tcp"));
    assert_eq!(name(&settings(TransportKind::Tcp, |transport| transport.insecure = true)), Some("tcp"));
}

#[test]
fn a_transport_that_is_to_come_from_code_has_to_be_given() {
    let said = refusal(&settings(TransportKind::Own, |_| {}));
    assert!(
        said.contains("transport.kind: the transport is to come from code: call Builder::transport"),
        "{said}"
    );
    let given =
        transport(&settings(TransportKind::Tcp, |tcp| tcp.insecure = true), &Origins::of_code(), None);
    let own = settings(TransportKind::Own, |_| {});
    let own = transport(&own, &Origins::of_code(), given.unwrap()).unwrap();
    assert_eq!(own.map(|transport| transport.name()), Some("tcp"));
}

#[test]
fn certificates_of_files_are_loaded() {
    let directory = Directory::new("files");
    assert_eq!(name(&with_files(&directory)), Some("quic"));
}

#[test]
fn file_that_cannot_be_used_is_named_with_its_key() {
    let directory = Directory::new("bad-files");
    let good = with_files(&directory);
    let bad = PathBuf::from("/nowhere/x.pem");
    let mut without_ca = good.clone();
    without_ca.transport.ca = Some(bad.clone());
    assert_eq!(
        refusal(&without_ca),
        "settings: transport.ca: cannot read the authority (ca) file /nowhere/x.pem: \
         No such file or directory (os error 2) (environment variable ARCHIPELAGO_TRANSPORT__CA)"
    );
    let mut without_certificate = good.clone();
    without_certificate.transport.certificate = Some(bad.clone());
    let said = refusal(&without_certificate);
    assert!(
        said.starts_with("settings: transport.certificate: cannot read the certificate file /n"),
        "{said}"
    );
    let mut without_key = good.clone();
    without_key.transport.key = Some(bad);
    let said = refusal(&without_key);
    assert!(said.starts_with("settings: transport.key: cannot read the key file /nowhere/x.pem"), "{said}");
    let mut other_key = good.clone();
    other_key.transport.key = Some(directory.0.join("ca.key"));
    let said = refusal(&other_key);
    assert!(said.starts_with("settings: transport.key: the private key "), "{said}");
    let mut other_name = good;
    other_name.transport.server_name = "another".to_owned();
    let said = refusal(&other_name);
    assert!(said.starts_with("settings: transport.certificate: other nodes would refuse"), "{said}");
}

#[test]
fn name_that_no_certificate_can_carry_is_refused() {
    let directory = Directory::new("bad-name");
    let mut settings = with_files(&directory);
    settings.transport.server_name = "a name".to_owned();
    assert_eq!(
        refusal(&settings),
        "settings: transport.server_name: the server name \"a name\" is neither a DNS name nor an IP address \
         (environment variable ARCHIPELAGO_TRANSPORT__SERVER_NAME)"
    );
}

#[test]
fn directory_that_cannot_be_written_is_named_with_its_key() {
    let file = Directory::new("no-directory");
    std::fs::write(&file.0, "a file where a directory is wanted").unwrap();
    let inside = file.0.join("certs");
    let said = refusal(&settings(TransportKind::Tcp, |transport| transport.development = Some(inside)));
    std::fs::remove_file(&file.0).unwrap();
    assert!(said.starts_with("settings: transport.development: cannot write "), "{said}");
}
