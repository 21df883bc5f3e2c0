//! Which program reads compose files.

use std::process::Command;

use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compose {
    /// `docker compose`
    Plugin,
    /// `docker-compose`
    Program,
}

impl Compose {
    /// The one that is installed, if a docker engine answers.
    pub(super) fn find(workspace: &Workspace) -> Result<Self, String> {
        workspace.ask("docker", &["info"]).ok_or("no docker engine answers, but it was asked for")?;
        let answers = |compose: Self| compose.command(workspace).arg("version").output();
        let works = |compose: &Self| answers(*compose).is_ok_and(|output| output.status.success());
        let found = [Self::Plugin, Self::Program].into_iter().find(works);
        found.ok_or_else(|| "neither `docker compose` nor `docker-compose` is installed".to_owned())
    }

    pub(super) fn command(self, workspace: &Workspace) -> Command {
        match self {
            Self::Plugin => {
                let mut command = workspace.command("docker");
                command.arg("compose");
                command
            }
            Self::Program => workspace.command("docker-compose"),
        }
    }
}
