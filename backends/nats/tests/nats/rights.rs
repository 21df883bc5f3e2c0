//! Who may connect, and who may write what.

use std::path::Path;
use std::sync::Arc;

use crate::rig::{self, connect, owner, put, with_server_told, write};
use archipelago_directory::{Expect, RecordId, Space, Store, StoreError};
use archipelago_nats::{NatsConfig, NatsStore, NatsTls, StartError};
use archipelago_test_servers::ServerProcess;
use futures_util::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

/// Writes an authority, and a certificate of it for the server and one for a node.
fn issue(folder: &Path) -> String {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&key).unwrap().pem();
    std::fs::write(folder.join("ca.pem"), authority_pem).unwrap();
    let issuer = Issuer::new(authority, key);
    let uses =
        [("server", ExtendedKeyUsagePurpose::ServerAuth), ("node", ExtendedKeyUsagePurpose::ClientAuth)];
    for (name, usage) in uses {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), params.signed_by(&key, &issuer).unwrap().pem())
            .unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let file = |name: &str| folder.join(name).display().to_string();
    format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    )
}

fn with_tls(server: &ServerProcess, own: bool) -> NatsConfig {
    let file = |name: &str| Some(server.place().folder().join(name));
    let mut tls = NatsTls::default();
    tls.ca_file = file("ca.pem");
    if own {
        (tls.cert_file, tls.key_file) = (file("node.pem"), file("node.key"));
    }
    let mut config = rig::config(server);
    config.tls = Some(tls);
    config
}

/// Proves: R490
#[test]
fn only_nodes_with_a_certificate_are_let_in() {
    with_server_told(issue, async |server| {
        write(&*connect(with_tls(&server, true)).await, &owner("k"), Expect::Absent, put("a", "x")).await;
        let anonymous = NatsStore::connect(with_tls(&server, false)).await.expect_err("has no certificate");
        assert!(matches!(anonymous, StartError::Unreachable { .. }), "{anonymous:?}");
        let mut distrustful = with_tls(&server, true);
        distrustful.tls = Some(NatsTls::default());
        let error = NatsStore::connect(distrustful).await.expect_err("does not know the authority");
        assert!(matches!(error, StartError::Unreachable { .. }), "{error:?}");
    });
}

/// One user per datacenter, with the rights that the crate's documentation names, and one who may create the stream.
fn users(_: &Path) -> String {
    let datacenter = |name: &str| {
        format!(
            r#"{{ user: {name}, password: pw-{name}, permissions: {{
                publish: ["archipelago.META.>", "$JS.API.STREAM.INFO.archipelago", "$JS.API.STREAM.MSG.GET.archipelago",
                    "$JS.API.DIRECT.GET.archipelago.>", "$JS.API.CONSUMER.CREATE.archipelago.>", "$JS.FC.>",
                    "archipelago.dc.{name}"],
                subscribe: ["_INBOX.>"] }} }}"#
        )
    };
    let all = r#"{ user: admin, password: pw-admin }"#;
    format!("authorization {{ users: [ {all}, {}, {} ] }}", datacenter("eu"), datacenter("us"))
}

async fn store_of(server: &ServerProcess, user: &str) -> Arc<NatsStore> {
    let file = server.place().folder().join(user);
    std::fs::write(&file, format!("pw-{user}")).unwrap();
    let mut config = rig::config(server);
    (config.user, config.password_file) = (Some(user.into()), Some(file));
    connect(config).await
}

/// Proves: R491
#[test]
fn a_datacenter_writes_its_own_record_and_no_other() {
    with_server_told(users, async |server| {
        store_of(&server, "admin").await;
        let (eu, us) = (store_of(&server, "eu").await, store_of(&server, "us").await);
        for (store, own, other) in [(&eu, "eu", "us"), (&us, "us", "eu")] {
            let record = |name: &str| RecordId::new(Space::DATA_CENTERS, name);
            write(&**store, &record(own), Expect::Absent, put(own, "mine")).await;
            let answer = store.cas(&record(other), Expect::Absent, put(own, "mine too"), None).await;
            assert!(matches!(answer, Err(StoreError::Fatal { .. })), "{own} on {other}: {answer:?}");
            let answer = store.cas(&owner("k"), Expect::Absent, put(own, "mine too"), None).await;
            assert!(matches!(answer, Err(StoreError::Fatal { .. })), "{own}: {answer:?}");
        }
        let listed = eu.list(Space::DATA_CENTERS, None).await.unwrap();
        let mut tags: Vec<_> = listed.records.iter().map(|record| record.tag.clone().unwrap()).collect();
        tags.sort();
        assert_eq!(tags, ["eu", "us"], "everybody reads everything, and nothing was overwritten");
        let position = us.list(Space::DATA_CENTERS, None).await.unwrap().position;
        let mut watch = us.watch(Space::DATA_CENTERS, position).await.unwrap();
        let seen = listed.records.iter().find(|record| record.id.key == "eu").unwrap();
        write(&*eu, &seen.id, seen.expect(), put("eu", "again")).await;
        assert_eq!(watch.next().await.unwrap().unwrap().id(), &seen.id);
    });
}
