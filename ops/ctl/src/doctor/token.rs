//! Whether the admin token can be used, and whether files with secrets are kept from others.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use archipelago::config::{Problem, Settings};

use super::Finding;

/// Looks at the token of the admin API.
pub(super) fn look(settings: &Settings, problems: &[Problem]) -> Vec<Finding> {
    let Some(file) = &settings.admin.token_file else {
        return vec![Finding::ok(CHECK, "there is none: nothing can be changed through the admin API")];
    };
    let broken = problems.iter().find(|problem| problem.key.as_deref() == Some("admin.token_file"));
    if let Some(problem) = broken {
        let advice = "write 16 to 1024 visible ASCII characters into it, as by `openssl rand -hex 32`";
        return vec![Finding::fail(CHECK, problem.to_string(), advice)];
    }
    let others = exposed(CHECK, "the admin token", file);
    if others.is_empty() {
        vec![Finding::ok(CHECK, format!("{} is in order", file.display()))]
    } else {
        others
    }
}

/// Says that others than its owner can read a file.
pub(super) fn exposed(check: &'static str, what: &str, file: &Path) -> Vec<Finding> {
    let Ok(found) = std::fs::metadata(file) else { return Vec::new() };
    let mode = found.permissions().mode() & 0o777;
    if mode & OTHERS == 0 {
        return Vec::new();
    }
    let words = format!("others can read or change {what}: {} has mode {mode:o}", file.display());
    vec![Finding::warn(check, words, &format!("chmod 600 {}", file.display()))]
}

const CHECK: &str = "admin token";

/// What nobody but the owner, and perhaps readers of its group, should be able to do.
const OTHERS: u32 = 0o027;
