//! Writing a file once, also when several processes want to write it at the same time.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The content of `path`, if there is such a file.
pub(crate) fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts `text` at `path` unless there is something already, and returns what is there then.
///
/// The first one wins: everybody, also another process at the same time, returns the same content. No reader ever
/// sees half a file, because the content is written under another name and then linked to `path`, which fails if
/// something is there already. The file can be read and written by its owner only.
pub(crate) fn install_once(path: &Path, text: &str) -> io::Result<String> {
    let draft = path.with_extension(draft_extension());
    let installed = write_private(&draft, text).and_then(|()| fs::hard_link(&draft, path));
    // The draft is only a second name by now; whoever cleans the directory later may remove it as well.
    let _ = fs::remove_file(&draft);
    match installed {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => fs::read_to_string(path),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn draft_extension() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("draft-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_content_stays_and_no_draft_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        assert_eq!(read_if_there(&path).unwrap(), None);
        assert_eq!(install_once(&path, "one").unwrap(), "one");
        assert_eq!(install_once(&path, "two").unwrap(), "one");
        assert_eq!(read_if_there(&path).unwrap().as_deref(), Some("one"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_what_was_written() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        install_once(&path, "secret").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
