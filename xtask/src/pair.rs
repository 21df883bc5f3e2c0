//! The example of two processes: one hosts and the other calls it; then two members of a cluster, by README's own commands.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use crate::background::Background;
use crate::capture::run_within;
use crate::workspace::Workspace;

/// Runs both, each within `limit`.
pub(crate) fn run(workspace: &Workspace, limit: Duration) -> Result<(), String> {
    host_and_caller(workspace, limit)?;
    members(workspace, limit)
}

/// Starts the host, lets the caller run to its end, and ends the host in good order.
fn host_and_caller(workspace: &Workspace, limit: Duration) -> Result<(), String> {
    let address = free_address()?;
    let mut command = workspace.command(workspace.example("pair"));
    let host = Background::start("host", command.args(["host", &address, UNTIL]), limit)?;
    host.wait_for("hosting")?;
    call(workspace, &address, limit)?;
    host.end()
}

fn call(workspace: &Workspace, address: &str, limit: Duration) -> Result<(), String> {
    let mut caller = workspace.command(workspace.example("pair"));
    match run_within(caller.args(["call", address]), limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("the caller ended with {status}")),
        None => Err(format!("the caller did not end within {} s", limit.as_secs())),
    }
}

/// Starts the two members of README, each after the other; the second must find what the first has counted.
fn members(workspace: &Workspace, limit: Duration) -> Result<(), String> {
    let readme = workspace.root().join("README.md");
    let readme =
        std::fs::read_to_string(readme).map_err(|error| format!("cannot read README.md: {error}"))?;
    let [serving, joining] = ShellLine::members(&readme)?;
    let address = free_address()?;
    let start = |name, line: &ShellLine| {
        let line = line.at(&address);
        let mut command = workspace.command(workspace.example("pair"));
        Background::start(name, line.fill(&mut command).arg(UNTIL), limit)
    };
    let first = start("member that serves", &serving)?;
    first.wait_for("apples + 1 = 1")?;
    first.wait_for("a member at")?;
    let second = start("member that joins", &joining)?;
    second.wait_for("apples + 1 = 2")?;
    second.wait_for("a member at")?;
    second.end()?;
    first.end()
}

/// What a line of README tells a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShellLine {
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl ShellLine {
    /// The commands of the two members, with what is exported for both.
    fn members(readme: &str) -> Result<[Self; 2], String> {
        let block = readme.split("```").find(|block| block.contains("BACKEND__EMBEDDED__SERVE=true"));
        let lines = block.unwrap_or_default().lines().map(Self::parse);
        let (members, exported): (Vec<Self>, Vec<Self>) =
            lines.filter(|line| !line.variables.is_empty()).partition(|line| !line.arguments.is_empty());
        let exported: Vec<_> = exported.into_iter().flat_map(|line| line.variables).collect();
        let with_exported = |line: Self| Self { variables: [&*exported, &*line.variables].concat(), ..line };
        let members: Vec<Self> = members.into_iter().map(with_exported).collect();
        members
            .try_into()
            .map_err(|found: Vec<Self>| format!("README.md has {} members, not two", found.len()))
    }

    /// `export A=b C=d # why`, or `A=b cargo run .. -- word`.
    fn parse(line: &str) -> Self {
        let words = line.split('#').next().unwrap_or_default().split_whitespace();
        let (variables, rest): (Vec<&str>, Vec<&str>) =
            words.filter(|word| *word != "export").partition(|word| word.contains('='));
        let both = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let arguments =
            rest.into_iter().skip_while(|word| *word != "--").skip(1).map(str::to_owned).collect();
        Self { variables: variables.into_iter().filter_map(both).collect(), arguments }
    }

    /// The same where `address` is free: the first member listens there, the second anywhere.
    fn at(&self, address: &str) -> Self {
        let moved = |(name, value): &(String, String)| {
            let value = match value.as_str() {
                "127.0.0.1:4710" => address,
                "127.0.0.1:4720" => "127.0.0.1:0",
                other => other,
            };
            (name.clone(), value.to_owned())
        };
        Self { variables: self.variables.iter().map(moved).collect(), ..self.clone() }
    }

    fn fill<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).args(&self.arguments)
    }
}

fn free_address() -> Result<String, String> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map(|address| address.to_string()).map_err(|error| format!("no free port: {error}"))
}

const UNTIL: &str = "--until-stdin-closes";

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "```text\nother\n```\n```text\nexport A=tcp B=true  # why\n\
        BIND=127.0.0.1:4710 ARCHIPELAGO_BACKEND__EMBEDDED__SERVE=true cargo run --example pair -- member\n\
        BIND=127.0.0.1:4720 JOIN=127.0.0.1:4710 cargo run --example pair -- member\n```\n";

    #[test]
    fn the_commands_of_readme_are_read_as_a_shell_would() {
        let [serving, joining] = ShellLine::members(README).unwrap();
        let joining = joining.at("127.0.0.1:7");
        let told: Vec<String> =
            joining.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["A=tcp", "B=true", "BIND=127.0.0.1:0", "JOIN=127.0.0.1:7"]);
        assert_eq!((joining.arguments, serving.variables.len()), (vec!["member".to_owned()], 4));
    }

    #[test]
    fn a_readme_without_the_commands_is_an_error() {
        assert!(ShellLine::members("```text\nother\n```\n").is_err());
    }
}
