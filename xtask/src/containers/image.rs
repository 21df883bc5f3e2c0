//! The image of `examples/multidc`: the program, linked statically, and nothing else, so that it is built where no image can be
//! pulled.

use std::path::PathBuf;

use crate::servers::run_quietly;
use crate::step::Outcome;
use crate::test::FEATURES;
use crate::workspace::Workspace;

/// Builds it, under the name that the compose file uses.
pub(super) fn build(workspace: &Workspace) -> Result<(), String> {
    let program = link(workspace, "multidc")?;
    let folder = workspace.target().join("multidc-image");
    let fill = || {
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(&program, folder.join("multidc"))?;
        std::fs::write(folder.join("nsswitch.conf"), NAMES)?;
        std::fs::write(folder.join("Dockerfile"), RECIPE)
    };
    fill().map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = workspace.command("docker");
    command.args(["build", "--quiet", "--tag", IMAGE]).arg(&folder);
    run_quietly(&mut command, "docker build")
}

/// Removes it.
pub(super) fn remove(workspace: &Workspace) -> Result<(), String> {
    run_quietly(workspace.command("docker").args(["rmi", IMAGE]), "docker rmi")
}

/// Links an example as a program that needs nothing. Only its last step differs from any other build, so that what other steps have
/// built is used.
pub(super) fn link(workspace: &Workspace, example: &str) -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err(
            "the image is built on Linux, for programs are built here for the machine itself".to_owned()
        );
    }
    let words = [
        "rustc",
        "--package",
        "archipelago",
        FEATURES,
        "--example",
        example,
        "--",
        "-C",
        "target-feature=+crt-static",
        "-C",
        "strip=symbols",
    ];
    match workspace.cargo(&words) {
        Outcome::Ok(_) => Ok(workspace.example(example)),
        Outcome::Failed(why, _) | Outcome::Skipped(why) => Err(why),
    }
}

/// As in the compose file.
pub(super) const IMAGE: &str = "archipelago-multidc:local";
const RECIPE: &str = "\
FROM scratch
COPY multidc /multidc
COPY nsswitch.conf /etc/nsswitch.conf
ENTRYPOINT [\"/multidc\"]
";
/// The list of hosts that the compose file gives to a container goes before what docker would say.
const NAMES: &str = "hosts: files dns\n";
