//! Set-ups that are broken in one way each: `doctor` names that cause, and finds fault with nothing else.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archipelago_tls::{DevelopmentAuthority, Validity};
use rcgen::{CertificateParams, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

use crate::support::{one, program, ran, run};

/// A set-up in which nothing is wrong, until a test breaks it.
struct SetUp {
    folder: TempDir,
    transport: String,
    more: String,
}

impl SetUp {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = Self {
            folder,
            transport: "kind = \"tcp\"\nbind = \"127.0.0.1:0\"".to_owned(),
            more: String::new(),
        };
        let authority = DevelopmentAuthority::in_memory().unwrap();
        let node = authority.issue("archipelago", Validity::Current).unwrap();
        setup.certificates(authority.certificate(), &node.certificate, &node.key);
        setup.write("token", "0123456789abcdef0123456789abcdef\n");
        setup
    }

    fn with(more: &str) -> Self {
        Self { more: more.to_owned(), ..Self::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }

    fn certificates(&self, ca: &str, certificate: &str, key: &str) {
        self.write("ca.pem", ca);
        self.write("node.pem", certificate);
        self.write("node.key", key);
    }

    fn file(&self) -> PathBuf {
        let at = |name: &str| self.path(name).display().to_string();
        let (ca, certificate, key, token) = (at("ca.pem"), at("node.pem"), at("node.key"), at("token"));
        let Self { transport, more, .. } = self;
        let text = format!(
            "[transport]\n{transport}\nca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}\n\
             [admin]\ntoken_file = {token:?}\n{more}\n"
        );
        let file = self.path("node.toml");
        std::fs::write(&file, text).unwrap();
        file
    }

    fn examine(&self) -> (i32, Vec<Value>) {
        self.examine_by(|program| program)
    }

    fn examine_by(&self, change: impl Fn(Vec<String>) -> Vec<String>) -> (i32, Vec<Value>) {
        let file = self.file().display().to_string();
        let doctor = ["--api", "http://127.0.0.1:1", "--timeout", "2", "--json", "doctor", &file];
        let words = change(
            [&[env!("CARGO_BIN_EXE_archipelago")], doctor.as_slice()]
                .concat()
                .iter()
                .map(|word| (*word).to_owned())
                .collect(),
        );
        let mut program = std::process::Command::new(&words[0]);
        program.args(&words[1..]).env_clear().env("PATH", "/usr/bin:/bin");
        let ran = ran(program);
        let checks = ran.json()["checks"].as_array().unwrap().clone();
        (ran.code, checks)
    }

    /// Asserts that the doctor finds this one cause, and says what to do.
    fn is_broken(&self, check: &str, cause: &str) {
        shows(self.examine(), "FAIL", check, cause);
    }

    /// The same of something that a node can live with.
    fn is_doubtful(&self, check: &str, cause: &str) {
        shows(self.examine(), "warn", check, cause);
    }
}

fn shows((code, checks): (i32, Vec<Value>), standing: &str, check: &str, cause: &str) {
    // How many files may be open here is the machine's affair, unless a test has said it.
    let here = |one: &&Value| one["check"] == "open files" && check != "open files";
    let wrong = |one: &&Value| matches!(one["standing"].as_str(), Some("FAIL" | "warn"));
    let bad: Vec<&Value> = checks.iter().filter(wrong).filter(|one| !here(one)).collect();
    let [only] = bad.as_slice() else { panic!("not one cause: {bad:?}") };
    assert_eq!((only["standing"].as_str(), only["check"].as_str()), (Some(standing), Some(check)), "{only}");
    assert!(only["found"].as_str().unwrap().contains(cause), "{cause} in {only}");
    assert!(!only["advice"].as_str().unwrap().is_empty());
    assert_eq!(code, i32::from(standing == "FAIL"));
}

/// Answers every connection with these bytes.
fn answering(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let greets = answer.starts_with("INFO");
            if !greets {
                let _ = stream.read(&mut [0; 4_096]);
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// An etcd of some version, whose clock says some time.
fn etcd(version: &str, date: &str) -> SetUp {
    let body = format!(r#"{{"etcdserver":"{version}","etcdcluster":"{version}"}}"#);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    etcd_at(answering(answer))
}

fn etcd_at(port: u16) -> SetUp {
    SetUp::with(&format!(
        "[backend]\nkind = \"etcd\"\n[backend.etcd]\nendpoints = [\"http://127.0.0.1:{port}\"]"
    ))
}

fn http_date(at: OffsetDateTime) -> String {
    let day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        [usize::from(at.weekday().number_days_from_monday())];
    let month = &at.month().to_string()[..3];
    let (hour, minute, second) = at.to_hms();
    format!("{day}, {:02} {month} {} {hour:02}:{minute:02}:{second:02} GMT", at.day(), at.year())
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// A port at which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_sound_set_up_is_sound() {
    let (code, checks) = SetUp::new().examine();
    let sound =
        |one: &&Value| matches!(one["standing"].as_str(), Some("ok" | "-")) || one["check"] == "open files";
    let bad: Vec<_> = checks.iter().filter(|one| !sound(one)).collect();
    assert_eq!((code, bad), (0, Vec::<&Value>::new()));
    let (code, _) = etcd("3.5.9", &http_date(now())).examine();
    assert_eq!(code, 0);
}

#[test]
fn a_key_that_is_none_is_named_with_its_line() {
    SetUp::with("[calls]\ntimeoot = \"1s\"").is_broken_unread("calls.timeoot");
}

impl SetUp {
    /// Without a configuration there is little else to look at.
    fn is_broken_unread(&self, cause: &str) {
        let (code, checks) = self.examine();
        let (file, line) = (self.path("node.toml"), 10);
        let found = checks[0]["found"].as_str().unwrap();
        assert_eq!((code, checks[0]["standing"].as_str()), (1, Some("FAIL")));
        assert!(found.starts_with(&format!("{}:{line}: {cause}", file.display())), "{found}");
    }
}

#[test]
fn values_that_contradict_each_other_are_named() {
    SetUp::with("[session]\nttl = \"3s\"\nheartbeat = \"2s\"").is_broken("configuration", "heartbeats");
}

#[test]
fn a_certificate_that_has_expired_is_named() {
    let setup = SetUp::new();
    let authority = DevelopmentAuthority::in_memory().unwrap();
    let node = authority.issue("archipelago", Validity::Expired).unwrap();
    setup.certificates(authority.certificate(), &node.certificate, &node.key);
    setup.is_broken("certificates", "has expired");
}

#[test]
fn a_certificate_that_ends_soon_is_named_with_its_days() {
    let setup = SetUp::new();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let mut node = CertificateParams::new(vec!["archipelago".to_owned()]).unwrap();
    node.not_after = now() + Duration::days(7) + Duration::hours(1);
    let node = node.signed_by(&key, &issuer).unwrap();
    setup.certificates(&authority.pem(), &node.pem(), &key.serialize_pem());
    setup.is_doubtful("certificates", "expires in 7 days");
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let setup = SetUp::new();
    setup.write("node.key", &KeyPair::generate().unwrap().serialize_pem());
    setup.is_broken("certificates", "does not belong to the certificate");
}

#[test]
fn an_authority_that_did_not_sign_is_named() {
    let setup = SetUp::new();
    setup.write("ca.pem", DevelopmentAuthority::in_memory().unwrap().certificate());
    setup.is_broken("certificates", "other nodes would refuse");
}

#[test]
fn a_certificate_that_is_not_there_is_named() {
    let setup = SetUp::new();
    std::fs::remove_file(setup.path("node.pem")).unwrap();
    setup.is_broken("certificates", "node.pem");
}

#[test]
fn a_private_key_that_others_can_read_is_named() {
    let setup = SetUp::new();
    std::fs::set_permissions(setup.path("node.key"), Permissions::from_mode(0o644)).unwrap();
    setup.is_doubtful("certificates", "mode 644");
}

#[test]
fn a_token_that_is_missing_short_or_readable_is_named() {
    let setup = SetUp::new();
    std::fs::set_permissions(setup.path("token"), Permissions::from_mode(0o644)).unwrap();
    setup.is_doubtful("admin token", "mode 644");
    setup.write("token", "short\n");
    setup.is_broken("admin token", "at least 16");
    std::fs::remove_file(setup.path("token")).unwrap();
    setup.is_broken("admin token", "cannot read");
}

/// That this build has no etcd is said beside, which is no fault of the machine.
fn without_build((code, mut checks): (i32, Vec<Value>)) -> (i32, Vec<Value>) {
    checks.retain(|one| !one["found"].as_str().is_some_and(|found| found.contains("cargo feature")));
    (code, checks)
}

#[test]
fn a_store_that_does_not_answer_is_named() {
    let port = closed_port();
    shows(without_build(etcd_at(port).examine()), "FAIL", "store", &format!("127.0.0.1:{port}"));
    let nats = format!("[backend]\nkind = \"nats\"\n[backend.nats]\nurls = [\"nats://127.0.0.1:{port}\"]");
    shows(without_build(SetUp::with(&nats).examine()), "FAIL", "store", "does not answer");
    let joins = format!("[backend.embedded]\njoin = \"127.0.0.1:{port}\"");
    SetUp::with(&joins).is_broken("store", "nobody serves a store");
}

#[test]
fn a_store_that_is_too_old_or_lacks_something_is_named() {
    let old = etcd("3.3.25", &http_date(now()));
    shows(without_build(old.examine()), "FAIL", "store", "version 3.3.25");
    for (info, cause) in [
        (r#"{"version":"2.10.7","jetstream":true}"#, "version 2.10.7"),
        (r#"{"version":"2.11.0"}"#, "no JetStream"),
    ] {
        let port = answering(format!("INFO {info}\r\n"));
        let nats =
            format!("[backend]\nkind = \"nats\"\n[backend.nats]\nurls = [\"nats://127.0.0.1:{port}\"]");
        shows(without_build(SetUp::with(&nats).examine()), "FAIL", "store", cause);
    }
}

#[test]
fn a_cluster_file_that_is_none_is_named() {
    let setup = SetUp::new();
    setup.write("fdb.cluster", "nonsense\n");
    let file = setup.path("fdb.cluster");
    let more = format!("[backend]\nkind = \"foundationdb\"\n[backend.foundationdb]\ncluster_file = {file:?}");
    let setup = SetUp { more, ..setup };
    shows(without_build(setup.examine()), "FAIL", "store", "no cluster file");
}

#[test]
fn a_clock_that_differs_from_the_stores_is_named() {
    let early = etcd("3.5.9", &http_date(now() - Duration::hours(1)));
    shows(without_build(early.examine()), "FAIL", "clock", "differs from etcd");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let setup = SetUp { transport: format!("kind = \"tcp\"\nbind = \"{at}\""), ..SetUp::new() };
    setup.is_broken("ports", &format!("{at} is taken"));
    let admin = format!("serve = true\nbind = \"{at}\"");
    SetUp::with(&admin).is_broken("admin port", "taken by another program");
}

#[test]
fn an_address_of_another_machine_is_named() {
    let elsewhere = "kind = \"tcp\"\nbind = \"192.0.2.7:4710\"".to_owned();
    SetUp { transport: elsewhere, ..SetUp::new() }.is_broken("ports", "no address of this machine");
    let unknown = "kind = \"tcp\"\nbind = \"no-such-host.invalid:4710\"".to_owned();
    SetUp { transport: unknown, ..SetUp::new() }.is_broken("ports", "no-such-host.invalid");
}

#[test]
fn packets_that_would_not_fit_are_named() {
    let quic = "kind = \"quic\"\nbind = \"127.0.0.1:0\"".to_owned();
    let setup = SetUp { transport: quic, ..SetUp::new() };
    setup.write("sys/class/net/lo/mtu", "1200\n");
    let root = setup.folder.path().display().to_string();
    let small = setup.examine_by(|mut words| {
        words.extend(["--root".to_owned(), root.clone()]);
        words
    });
    shows(small, "FAIL", "MTU", "1200 at lo");
}

#[test]
fn a_limit_of_open_files_that_is_too_low_is_named() {
    let few = SetUp::new().examine_by(|words| {
        let script = "ulimit -n 64; exec \"$@\"".to_owned();
        let shell = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        shell.into_iter().chain(words).collect()
    });
    shows(few, "FAIL", "open files", "64 files");
}

#[test]
fn people_are_told_in_lines_what_is_wrong_and_what_to_do() {
    let setup = SetUp::new();
    std::fs::remove_file(setup.path("node.key")).unwrap();
    let file = setup.file();
    let ran = ran(program(&["--api", "http://127.0.0.1:1", "doctor", file.to_str().unwrap()]));
    let lines: Vec<&str> = ran.out.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("FAIL  certificates")).unwrap();
    assert!(lines[at].contains("node.key") && lines[at + 1].trim_start().starts_with("to do: "), "{ran:?}");
    assert_eq!(ran.code, 1);
    assert!(Path::new(&file).exists());
}

#[actix::test]
async fn a_node_that_runs_holds_its_own_ports() {
    let served = one().await;
    let setup = SetUp {
        transport: format!("kind = \"tcp\"\nbind = \"{}\"", served.node.address()),
        more: format!("serve = true\nbind = \"{}\"", served.api.trim_start_matches("http://")),
        ..SetUp::new()
    };
    let file = setup.file();
    let ran = run(&served, &["doctor", file.to_str().unwrap(), "--json"]).await;
    let held = |check: &str| {
        let checks = ran.json()["checks"].as_array().unwrap().clone();
        let found =
            checks.iter().find(|one| one["check"] == check).unwrap()["found"].as_str().unwrap().to_owned();
        found.contains("held by the node that runs")
    };
    assert!(held("ports") && held("admin port"), "{ran:?}");
    served.node.stop().await.unwrap();
}
