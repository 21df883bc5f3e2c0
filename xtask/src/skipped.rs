//! Which tests ran without doing anything, because the machine lacks what they need.
//!
//! Such a test passes, and its runner hides what a test says that passes. So it also writes a line into the file that
//! `ARCHIPELAGO_TEST_SKIPPED` names, and the summary repeats it.

use std::path::PathBuf;

use crate::workspace::Workspace;

/// The file into which tests write that they were skipped.
pub(crate) struct Skipped {
    file: PathBuf,
}

impl Skipped {
    /// Begins with an empty file and tells all children of `workspace` about it.
    pub(crate) fn begin(workspace: &mut Workspace) -> Result<Self, String> {
        let file = workspace.target().join("skipped-tests");
        let written = std::fs::create_dir_all(workspace.target()).and_then(|()| std::fs::write(&file, ""));
        written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        workspace.set("ARCHIPELAGO_TEST_SKIPPED", &file);
        Ok(Self { file })
    }

    /// What to say about them at the end; nothing if there were none.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file)
            .unwrap_or_else(|error| format!("unknown: cannot read {}: {error}", self.file.display()));
        let mut tests: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        tests.sort();
        tests.dedup();
        if !tests.is_empty() {
            tests.insert(0, format!("{} tests did nothing, because something is missing here:", tests.len()));
        }
        tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_did_nothing_is_told_once() {
        let root = std::env::temp_dir().join(format!("xtask-skipped-{}", std::process::id()));
        let skipped = Skipped { file: root.join("skipped-tests") };
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(&skipped.file, "").unwrap();
        assert!(skipped.lines().is_empty());
        std::fs::write(&skipped.file, "b: no etcd\na: no ip\nb: no etcd\n").unwrap();
        let told = ["2 tests did nothing, because something is missing here:", "  a: no ip", "  b: no etcd"];
        assert_eq!(skipped.lines(), told);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(skipped.lines()[1].contains("cannot read"));
    }
}
