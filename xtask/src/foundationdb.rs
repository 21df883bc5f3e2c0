//! The one layer that links `libfdb_c`: linked against a stub of that library which is made here.
//!
//! With `ARCHIPELAGO_TEST_FDB=<cluster file>` it is linked against the real library instead, and the whole suite of backends
//! runs on that database.

use std::path::{Path, PathBuf};

use crate::capture::{Captured, capture, counts_tests};
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Runs what needs the client. It is not in the other steps, because linking it takes the library; linting does not, and is
/// done with everything else where the headers [can be compiled](can_compile).
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    if !can_compile() {
        let why = "no libclang to compile the headers with; on Debian: apt-get install libclang-dev";
        let in_ci = std::env::var_os("CI").is_some();
        return if in_ci { Outcome::failed(why) } else { Outcome::Skipped(why.to_owned()) };
    }
    if std::env::var_os("ARCHIPELAGO_TEST_FDB").is_some() {
        return workspace.cargo_keeping(&ON_CLUSTER, counts_tests);
    }
    match make_stub(workspace) {
        Ok(folder) => linked(workspace, &folder),
        Err(why) => Outcome::failed(why),
    }
}

/// The library's own folders go first, so that an installed one is not taken.
fn linked(workspace: &Workspace, stub: &Path) -> Outcome {
    let mut command = workspace.cargo_command(&ON_STUB);
    for variable in ["LIBRARY_PATH", "LD_LIBRARY_PATH"] {
        let before = std::env::var_os(variable).unwrap_or_default();
        let folders = [stub.to_owned()].into_iter().chain(std::env::split_paths(&before));
        match std::env::join_paths(folders.filter(|folder| !folder.as_os_str().is_empty())) {
            Ok(folders) => command.env(variable, folders),
            Err(error) => return Outcome::failed(error.to_string()),
        };
    }
    match capture(&mut command, counts_tests) {
        Ok(Captured { status, lines }) if status.success() => Outcome::Ok(lines),
        Ok(Captured { status, lines }) => {
            Outcome::Failed(format!("cargo {}: {status}", ON_STUB.join(" ")), lines)
        }
        Err(message) => Outcome::failed(message),
    }
}

/// Compiles the stub; answers the folder that holds it.
fn make_stub(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.target().join("fdb-stub");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = workspace.command(compiler);
    command.args(["-shared", "-fPIC", "-o"]).arg(folder.join("libfdb_c.so")).arg(STUB);
    match command.status() {
        Ok(status) if status.success() => Ok(folder),
        Ok(status) => Err(format!("cannot compile {STUB}: {status}")),
        Err(error) => Err(format!("cannot run a C compiler: {error}")),
    }
}

/// Whether there is a libclang where bindgen looks for it: the variable, or the folders of libraries, at most two deep.
pub(crate) fn can_compile() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let within =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let roots = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    let folders = roots.iter().flat_map(|root| within(root).chain([root.clone()]));
    let folders = folders.flat_map(|folder| [folder.join("lib"), folder]);
    let is_libclang = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Not libclang-cpp, which is another library.
        let of_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let is_it = name.starts_with("libclang.") || name.strip_prefix("libclang-").is_some_and(of_version);
        is_it && name.contains(".so")
    };
    folders.into_iter().any(|folder| within(&folder).any(is_libclang))
}

const STUB: &str = "backends/foundationdb/tests/stub/fdb_c.c";

/// Those of every build, and the client.
pub(crate) const FEATURES: &str = "--features=archipelago/dashboard,archipelago/prometheus,archipelago/etcd,archipelago/nats,\
    archipelago/foundationdb,archipelago-bench-backends/foundationdb-client";

/// Not the facade's: it would be built for nothing.
const CLIENT: &str = "--features=archipelago/dashboard,archipelago/prometheus,archipelago/etcd,archipelago/nats,archipelago-foundationdb/client";

const ON_STUB: [&str; 5] = ["test", "--workspace", CLIENT, "--test=linked", "--quiet"];

const ON_CLUSTER: [&str; 4] = ["test", "--workspace", CLIENT, "--test=cluster"];
