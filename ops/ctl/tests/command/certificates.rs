//! Certificates for development.

use std::os::unix::fs::PermissionsExt;

use crate::support::run_here;

#[test]
fn an_authority_is_made_once_and_a_node_takes_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("certs");
    let arguments = ["certs", "init", "--dir", dir.to_str().unwrap(), "--server-name", "shop"];
    let made = run_here(&arguments);
    assert_eq!((made.code, made.err.as_str()), (0, ""), "{made:?}");
    for name in ["ca.key", "node.key", "ca.pem", "node.pem"] {
        let mode = std::fs::metadata(dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let file = folder.path().join("archipelago.toml");
    let printed: Vec<&str> = made.out.lines().skip_while(|line| !line.starts_with('[')).collect();
    std::fs::write(&file, printed.join("\n")).unwrap();
    let checked = run_here(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let key = std::fs::read_to_string(dir.join("ca.key")).unwrap();
    let again = run_here(&arguments);
    assert_eq!((again.code, again.out.as_str()), (1, ""), "{again:?}");
    assert!(again.err.contains("already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(dir.join("ca.key")).unwrap(), key, "nothing was written");
}

#[test]
fn a_directory_with_any_of_the_files_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("node.pem"), "mine").unwrap();
    let refused = run_here(&["certs", "init", "--dir", folder.path().to_str().unwrap()]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let empty = tempfile::tempdir().unwrap();
    let named =
        run_here(&["certs", "init", "--dir", empty.path().to_str().unwrap(), "--server-name", "no name"]);
    assert_eq!(named.code, 2, "{named:?}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "nothing is half made");
}
