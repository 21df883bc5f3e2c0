//! All Rust files of the workspace.

use std::path::{Path, PathBuf};

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Below the root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Reads all Rust files below `root`, without builds and hidden directories, in a fixed order.
pub(crate) fn read(root: &Path) -> Result<Vec<Source>, String> {
    let paths = paths(root).map_err(|error| format!("cannot list sources: {error}"))?;
    let read = |path: PathBuf| match std::fs::read_to_string(root.join(&path)) {
        Ok(text) => Ok(Source { path, text }),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    };
    paths.into_iter().map(read).collect()
}

fn paths(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = directory.join(&name);
            if entry.file_type()?.is_dir() {
                let skipped = name.starts_with('.') || name == "target" || name.starts_with("target-");
                open.extend((!skipped).then_some(path));
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
