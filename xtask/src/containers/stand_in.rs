//! Images for where none can be pulled: the same programs, under the names that the compose file uses.
//!
//! They hold nothing but the static binaries that the other tests run as well, bear a label that says what they are, and
//! are removed when the tests have ended, so that nobody takes them for the real ones.

use std::path::Path;
use std::time::Duration;

use super::server;
use crate::capture::run_within;
use crate::servers::{self, run_quietly};
use crate::workspace::Workspace;

/// The stand-ins that were built.
pub(super) struct StandIns<'a> {
    workspace: &'a Workspace,
    built: Vec<String>,
    said: Vec<String>,
}

impl<'a> StandIns<'a> {
    /// Makes sure that every image is there: as it is, pulled, or built.
    pub(super) fn provide(workspace: &'a Workspace, images: &[String]) -> Result<Self, String> {
        let mut all = Self { workspace, built: Vec::new(), said: Vec::new() };
        for image in images {
            let how = if is_there(workspace, image) {
                "was there".to_owned()
            } else if pull(workspace, image) {
                "was pulled".to_owned()
            } else {
                let recipe = Recipe::of(image)?;
                recipe.build(workspace, image)?;
                all.built.push(image.clone());
                format!("cannot be pulled; stood in for by the {} of PyPI", recipe.server)
            };
            println!("image {image} {how}");
            all.said.push(format!("image {image} {how}"));
        }
        Ok(all)
    }

    /// Where each image came from.
    pub(super) fn said(&self) -> Vec<String> {
        self.said.clone()
    }
}

impl Drop for StandIns<'_> {
    fn drop(&mut self) {
        for image in &self.built {
            let mut command = self.workspace.command("docker");
            if let Err(why) = run_quietly(command.args(["rmi", image]), "docker rmi") {
                println!("the stand-in {image} is left behind: {why}");
            }
        }
    }
}

/// Whether an image is here already.
pub(super) fn is_there(workspace: &Workspace, image: &str) -> bool {
    workspace.ask("docker", &["image", "inspect", image]).is_some()
}

fn pull(workspace: &Workspace, image: &str) -> bool {
    let mut command = workspace.command("docker");
    let ended = run_within(command.args(["pull", "--quiet", image]), PULL_LIMIT);
    ended.is_ok_and(|status| status.is_some_and(|status| status.success()))
}

/// How a stand-in is made.
struct Recipe {
    server: &'static str,
    /// What is copied, from beside the server's program.
    programs: &'static [&'static str],
    lines: &'static str,
}

const RECIPES: [Recipe; 2] = [
    Recipe {
        server: "etcd",
        programs: &["etcd", "etcdctl"],
        lines: "ENV PATH=/usr/local/bin\nCOPY etcd etcdctl /usr/local/bin/\n",
    },
    Recipe {
        server: "nats",
        programs: &["nats-server"],
        lines: "COPY nats-server /nats-server\nENTRYPOINT [\"/nats-server\"]\n",
    },
];

impl Recipe {
    fn of(image: &str) -> Result<&'static Self, String> {
        let name = server(image);
        let recipe = RECIPES.iter().find(|recipe| recipe.server == name);
        recipe.ok_or_else(|| format!("{image} cannot be pulled, and nothing can stand in for it"))
    }

    fn build(&self, workspace: &Workspace, image: &str) -> Result<(), String> {
        let program = servers::program(workspace, self.server)?;
        let folder = workspace.target().join("stand-ins").join(self.server);
        let beside = program.parent().unwrap_or(Path::new("."));
        self.fill(&folder, beside).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = workspace.command("docker");
        command.args(["build", "--quiet", "--tag", image]).arg(&folder);
        run_quietly(&mut command, "docker build")
    }

    fn fill(&self, folder: &Path, programs: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for name in self.programs {
            std::fs::copy(programs.join(name), folder.join(name))?;
        }
        let label = format!("LABEL archipelago.stand-in={}\n", self.server);
        std::fs::write(folder.join("Dockerfile"), ["FROM scratch\n", &label, self.lines].concat())
    }
}

const PULL_LIMIT: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_name_without_registry_and_tag() {
        assert_eq!(Recipe::of("quay.io/coreos/etcd:v3.5.21").map(|recipe| recipe.server), Ok("etcd"));
        assert_eq!(Recipe::of("nats:2.11.4").map(|recipe| recipe.server), Ok("nats"));
        assert!(Recipe::of("localhost:5000/redis:7").is_err());
    }
}
