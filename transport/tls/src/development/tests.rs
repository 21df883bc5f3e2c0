use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Barrier, Mutex};

use super::*;

const NAME: &str = "cluster.test";

#[test]
fn what_was_created_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = DevelopmentAuthority::create(dir.path(), NAME).unwrap();
    let second = DevelopmentAuthority::open_or_create(dir.path(), NAME).unwrap();
    assert_eq!(first.certificate(), second.certificate());
    let issued = second.issue(NAME, Validity::Current).unwrap();
    Credentials::from_pem(
        first.certificate().as_bytes(),
        issued.certificate.as_bytes(),
        issued.key.as_bytes(),
        NAME,
    )
    .unwrap();
}

#[test]
fn creating_twice_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    DevelopmentAuthority::create(dir.path(), NAME).unwrap();
    let error = DevelopmentAuthority::create(dir.path(), NAME).unwrap_err();
    assert!(matches!(error, TlsError::Unwritable { .. }), "{error}");
}

#[test]
fn the_written_files_load_and_belong_to_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    DevelopmentAuthority::open_or_create(dir.path(), NAME).unwrap();
    Credentials::from_files(&DevelopmentAuthority::files(dir.path()), NAME).unwrap();
    let names: BTreeSet<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ca.key", "ca.pem", "node.key", "node.pem"].map(Into::into).into());
    #[cfg(unix)]
    for name in names {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name:?}");
    }
}

#[test]
fn many_that_start_at_once_end_with_one_authority() {
    let dir = tempfile::tempdir().unwrap();
    let start = Barrier::new(8);
    let authorities: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    DevelopmentAuthority::open_or_create(dir.path(), NAME).unwrap()
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let certificates: BTreeSet<_> = authorities.iter().map(|one| one.certificate().to_owned()).collect();
    assert_eq!(certificates.len(), 1);
    for authority in &authorities {
        authority.credentials(NAME).unwrap();
    }
    Credentials::from_files(&DevelopmentAuthority::files(dir.path()), NAME).unwrap();
}

#[test]
fn a_directory_that_holds_garbage_is_refused_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.key"), "garbage").unwrap();
    let error = DevelopmentAuthority::open_or_create(dir.path(), NAME).unwrap_err();
    assert!(matches!(error, TlsError::BadKey { .. }) && error.to_string().contains("ca.key"), "{error}");
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    let authority = DevelopmentAuthority::in_memory().unwrap();
    assert!(matches!(authority.credentials("bj\u{f6}rn").unwrap_err(), TlsError::BadServerName { .. }));
}

#[test]
fn the_debug_text_of_an_issued_pair_hides_the_key() {
    let authority = DevelopmentAuthority::in_memory().unwrap();
    let issued = authority.issue(NAME, Validity::Current).unwrap();
    assert!(!format!("{issued:?}").contains("PRIVATE"));
    assert!(!format!("{authority:?}").contains("PRIVATE"));
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Each time, not only when it is made.
#[test]
fn whoever_uses_development_certificates_is_warned_loudly() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            DevelopmentAuthority::open_or_create(dir.path(), NAME).unwrap();
        });
        let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("WARN") && logged.contains("never use them in production"), "{logged}");
        assert!(logged.contains(&dir.path().display().to_string()), "{logged}");
    }
}
