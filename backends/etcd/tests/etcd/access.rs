//! Who may do what: passwords, roles, certificates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use archipelago_directory::{Expect, RecordId, Space, Store, StoreError, Write};
use archipelago_etcd::{EtcdConfig, EtcdError, EtcdStore, EtcdTls};
use archipelago_protocol::time::Millis;
use archipelago_test_servers::etcd::{EtcdServer, ServerTls};
use bytes::Bytes;
use etcd_client::{Client, Permission};
use futures_util::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;

use crate::support::{RealTimer, connect, create, current, eventually, operator, owner, run, settings};

/// Adds a user who may do what `permissions` say.
async fn add_user(etcd: &mut Client, name: &str, permissions: impl IntoIterator<Item = Permission>) {
    etcd.user_add(name, format!("{name}'s secret"), None).await.unwrap();
    etcd.role_add(name).await.unwrap();
    for permission in permissions {
        etcd.role_grant_permission(name, permission).await.unwrap();
    }
    etcd.user_grant_role(name, name).await.unwrap();
}

/// From here on everybody must log in.
async fn lock(etcd: &mut Client) {
    etcd.user_add("root", "root's secret", None).await.unwrap();
    etcd.role_add("root").await.unwrap();
    etcd.user_grant_role("root", "root").await.unwrap();
    etcd.auth_enable().await.unwrap();
}

/// Settings of a user, whose password is in `folder`.
fn as_user(config: &EtcdConfig, folder: &Path, name: &str, password: &str) -> EtcdConfig {
    let file = folder.join(name);
    std::fs::write(&file, format!("{password}\n")).unwrap();
    EtcdConfig { user: Some(name.into()), password_file: Some(file), ..config.clone() }
}

async fn refused(config: &EtcdConfig) -> String {
    let error = EtcdStore::connect(config, RealTimer::new()).await.err().expect("is refused");
    assert!(matches!(error, EtcdError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn who_has_no_password_or_a_wrong_one_is_refused_at_the_start() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    let folder = TempDir::new().unwrap();
    run(async {
        let config = settings(&server.address());
        let mut etcd = operator(&server.address()).await;
        let everything = Permission::read_write(config.prefix.as_str()).with_prefix();
        add_user(&mut etcd, "app", [everything]).await;
        lock(&mut etcd).await;
        let said = refused(&as_user(&config, folder.path(), "app", "a guess")).await;
        assert!(said.contains(&server.address()) && said.contains("authentication failed"), "{said}");
        let said = refused(&config).await;
        assert!(said.contains("user name is empty"), "{said}");
        let store = connect(&as_user(&config, folder.path(), "app", "app's secret")).await;
        create(&store, &owner("k"), "a").await;
        // The login is lost with the server's memory, and renewed without anybody noticing.
        server.restart();
        let id = owner("k");
        eventually(|| current(&store, &id)).await.expect("was written");
    });
}

/// Each datacenter's credential may read all records, and write its own and no other.
///
/// Proves: R491
#[test]
fn a_credential_of_a_datacenter_writes_its_own_record_only() {
    let Some(server) = EtcdServer::start() else { return };
    let folder = TempDir::new().unwrap();
    run(async {
        let config = settings(&server.address());
        let all = format!("{}/dc/", config.prefix);
        let mut etcd = operator(&server.address()).await;
        for dc in ["east", "west"] {
            let own = Permission::read_write(format!("{all}{dc}"));
            add_user(&mut etcd, dc, [Permission::read(all.as_str()).with_prefix(), own]).await;
        }
        lock(&mut etcd).await;
        let east = connect(&as_user(&config, folder.path(), "east", "east's secret")).await;
        let west = connect(&as_user(&config, folder.path(), "west", "west's secret")).await;
        write(&east, "east").await.unwrap();
        write(&west, "west").await.unwrap();
        let listed = east.list(Space::DATA_CENTERS, None).await.unwrap();
        let names: Vec<&str> = listed.records.iter().map(|record| record.id.key.as_str()).collect();
        assert_eq!(names, ["east", "west"], "all are read");
        let mut watch = east.watch(Space::DATA_CENTERS, listed.position).await.unwrap();
        let theirs = listed.records[1].clone();
        for intrusion in [record(), Write::Delete] {
            let answer = east.cas(&theirs.id, theirs.expect(), intrusion, None).await;
            assert!(matches!(answer, Err(StoreError::Fatal { .. })), "{answer:?}");
        }
        let answer = east.delete_all(std::slice::from_ref(&theirs)).await;
        assert!(matches!(answer, Err(StoreError::Fatal { .. })), "{answer:?}");
        let answer = west.cas(&theirs.id, theirs.expect(), record(), None).await.unwrap();
        assert!(matches!(answer, archipelago_directory::CasAnswer::Applied(_)), "{answer:?}");
        assert_eq!(watch.next().await.unwrap().unwrap().id(), &theirs.id);
        let elsewhere = east.watch(Space::OWNERS, listed.position).await;
        let elsewhere = match elsewhere {
            Ok(mut watch) => watch.next().await.unwrap().map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(elsewhere, Err(StoreError::Fatal { .. })), "{elsewhere:?}");
    });
}

fn record() -> Write {
    Write::Put { tag: None, value: Bytes::from_static(b"{}"), ttl: Some(Millis(60_000)) }
}

async fn write(store: &EtcdStore, dc: &str) -> Result<archipelago_directory::CasAnswer, StoreError> {
    store.cas(&RecordId::new(Space::DATA_CENTERS, dc), Expect::Absent, record(), None).await
}

/// Certificates that sign each other, in files.
struct Papers {
    folder: TempDir,
}

impl Papers {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let papers = Self { folder };
        let authority = papers.authority("ca");
        papers.authority("strangers");
        papers.sign(&authority, "server", ExtendedKeyUsagePurpose::ServerAuth);
        papers.sign(&authority, "client", ExtendedKeyUsagePurpose::ClientAuth);
        papers
    }

    fn authority(&self, name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(self.file(name, "pem"), authority.pem()).unwrap();
        authority
    }

    fn sign(&self, authority: &CertifiedIssuer<'_, KeyPair>, name: &str, usage: ExtendedKeyUsagePurpose) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages.push(usage);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, authority).unwrap();
        std::fs::write(self.file(name, "pem"), certificate.pem()).unwrap();
        std::fs::write(self.file(name, "key"), key.serialize_pem()).unwrap();
    }

    fn file(&self, name: &str, what: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{what}"))
    }

    fn server(&self) -> ServerTls {
        ServerTls {
            client_ca_file: self.file("ca", "pem"),
            certificate_file: self.file("server", "pem"),
            key_file: self.file("server", "key"),
        }
    }

    fn settings(&self, address: &str) -> EtcdConfig {
        let tls = EtcdTls {
            ca_file: self.file("ca", "pem"),
            certificate_file: Some(self.file("client", "pem")),
            key_file: Some(self.file("client", "key")),
            server_name: None,
        };
        let connect_timeout = Duration::from_millis(1_500);
        EtcdConfig { tls: Some(tls), connect_timeout, ..settings(address) }
    }
}

/// Proves: R490
#[test]
fn both_sides_prove_themselves_by_certificates() {
    let papers = Papers::new();
    let Some(server) = EtcdServer::with_tls(papers.server()) else { return };
    run(async {
        let config = papers.settings(&server.address());
        let store = connect(&EtcdConfig { connect_timeout: Duration::from_secs(20), ..config.clone() }).await;
        create(&store, &owner("k"), "a").await;
        let with = |change: fn(&mut EtcdTls, &Papers)| {
            let mut config = config.clone();
            change(config.tls.as_mut().unwrap(), &papers);
            config
        };
        let nameless = with(|tls, _| (tls.certificate_file, tls.key_file) = (None, None));
        let fooled = with(|tls, papers| tls.ca_file = papers.file("strangers", "pem"));
        let misled = with(|tls, _| tls.server_name = Some("elsewhere".into()));
        for (config, why) in [(nameless, "certificate"), (fooled, "unknownissuer"), (misled, "elsewhere")] {
            let error = EtcdStore::connect(&config, RealTimer::new()).await.err().expect("is refused");
            assert!(matches!(error, EtcdError::Unreachable { .. }), "{error:?}");
            let said = error.to_string();
            assert!(said.contains(&server.address()) && said.to_lowercase().contains(why), "{why}: {said}");
        }
    });
}

#[test]
fn a_certificate_that_is_none_is_refused_by_name() {
    let papers = Papers::new();
    run(async {
        let mut config = papers.settings("https://127.0.0.1:1");
        std::fs::write(papers.file("ca", "pem"), "no certificate").unwrap();
        config.tls.as_mut().unwrap().ca_file = papers.file("ca", "pem");
        let error = EtcdStore::connect(&config, RealTimer::new()).await.err().expect("is refused");
        assert!(error.to_string().starts_with("etcd.tls.ca_file: "), "{error}");
    });
}
