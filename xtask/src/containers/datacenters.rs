//! The profile `multidc` of the compose file: `examples/multidc` with a container per node and a network per datacenter.
//!
//! The story is told in a container and judges itself; what it cannot do in there, pull the cable of a container and put it
//! back, it asks for in lines that begin with `do`, and this does as it is told. All containers, networks and volumes bear the name
//! of the run and are removed however it ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::compose::Compose;
use super::stand_in::StandIns;
use super::{FILE, image, images};
use crate::capture::run_within;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Builds the image, lets the story be told, and removes everything, the image as well.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    let project = format!("archipelago-multidc-{}", std::process::id());
    let net = format!("10.{}", 100 + std::process::id() % 100);
    let told = image::build(workspace).and_then(|()| tell(workspace, &project, &net));
    // Without a build there is none.
    let _ = image::remove(workspace);
    told.map_or_else(Outcome::failed, Outcome::Ok)
}

/// `cargo xtask multidc [image]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    let only_image = match arguments {
        [] => false,
        [word] if word == "image" => true,
        _ => return Err("usage: cargo xtask multidc [image]".to_owned()),
    };
    image::build(workspace)?;
    if only_image {
        println!("{} is built", image::IMAGE);
    } else {
        tell(workspace, "archipelago-multidc", "10.87")?.iter().for_each(|line| println!("{line}"));
    }
    Ok(true)
}

/// Tells the story among containers whose names begin with `project` and whose addresses begin with `net`.
fn tell(workspace: &Workspace, project: &str, net: &str) -> Result<Vec<String>, String> {
    let compose = Compose::find(workspace)?;
    let servers = StandIns::provide(workspace, &images(workspace, &["nats"])?)?;
    let stage = Stage { workspace, compose, project, net };
    // An earlier run of that name may have been interrupted.
    stage.clear()?;
    let told = stage.tell();
    if told.is_err() {
        // What nodes complain of; nothing depends on it.
        let _ = run_within(stage.compose().args(["logs", "--tail=10"]), DOCKER_LIMIT);
    }
    Ok([servers.said(), vec![told?]].concat())
}

/// The containers, networks and volumes of one run. Dropped, they are gone.
struct Stage<'a> {
    workspace: &'a Workspace,
    compose: Compose,
    project: &'a str,
    net: &'a str,
}

impl Stage<'_> {
    /// Starts everything, and does what the story asks for until it ends; gives its last words.
    fn tell(&self) -> Result<String, String> {
        let began = Instant::now();
        let mut story = Story::start(self.compose().args(["run", "--rm", "-T", "story"]))?;
        let mut heard = Heard::default();
        while let Some(line) = story.line(began + STORY_LIMIT)? {
            println!("{line}");
            if let Some(words) = asked(&line) {
                self.docker(&words)?;
            }
            heard.note(&line);
        }
        story.end()?;
        let summary = heard.verdict()?;
        Ok(format!("{summary}; all of it took {} s", began.elapsed().as_secs()))
    }

    fn compose(&self) -> Command {
        let mut command = self.compose.command(self.workspace);
        command.args(["-f", FILE, "--profile", "multidc"]);
        command.envs([("COMPOSE_PROJECT_NAME", self.project), ("ARCHIPELAGO_MULTIDC_NET", self.net)]);
        command
    }

    fn docker(&self, words: &[&str]) -> Result<(), String> {
        let mut command = self.workspace.command("docker");
        match run_within(command.args(words).stdout(Stdio::null()), DOCKER_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            other => Err(format!("docker {}: {other:?}", words.join(" "))),
        }
    }

    /// Removes all that bears the name of this run.
    fn clear(&self) -> Result<(), String> {
        let label = format!("label=com.docker.compose.project={}", self.project);
        for (list, remove) in [
            (["ps", "-aq"].as_slice(), ["rm", "--force", "--volumes"].as_slice()),
            (&["network", "ls", "-q"], &["network", "rm"]),
            (&["volume", "ls", "-q"], &["volume", "rm"]),
        ] {
            let found = self.workspace.ask("docker", &[list, &["--filter", &label]].concat());
            let found = found.ok_or_else(|| format!("docker {} fails", list.join(" ")))?;
            let found: Vec<&str> = found.lines().collect();
            if !found.is_empty() {
                self.docker(&[remove, &found].concat())?;
            }
        }
        Ok(())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if let Err(why) = self.clear() {
            println!("{} is left behind: {why}", self.project);
        }
    }
}

/// The process that shows what the story's container says.
struct Story {
    process: Child,
    lines: Receiver<String>,
}

impl Story {
    fn start(command: &mut Command) -> Result<Self, String> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("compose run: {error}"))?;
        let out = process.stdout.take().ok_or("compose run has no output")?;
        let (says, lines) = sync_channel(1);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if says.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, lines })
    }

    /// The next line; none at the end.
    fn line(&self, deadline: Instant) -> Result<Option<String>, String> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("the story did not end within {} s", STORY_LIMIT.as_secs()))
            }
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.process.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the story ended with {status}")),
            Err(error) => Err(format!("the story cannot be waited for: {error}")),
        }
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        // An error only says that it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What docker is asked to do, without its own name; nothing but what has to do with cables.
fn asked(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["do", "docker", "network", "disconnect" | "connect", ..] => Some(words[2..].to_vec()),
        _ => None,
    }
}

/// What the story has said.
#[derive(Debug, Default)]
struct Heard {
    pulled: usize,
    plugged: usize,
    summary: Option<String>,
}

impl Heard {
    fn note(&mut self, line: &str) {
        match asked(line).as_deref() {
            Some(["network", "disconnect", ..]) => self.pulled += 1,
            Some(_) => self.plugged += 1,
            None if line.contains(" promises kept, ") => self.summary = Some(line.trim().to_owned()),
            None => {}
        }
    }

    /// The summary of a story in which networks were cut and healed, and nothing left out.
    fn verdict(self) -> Result<String, String> {
        let summary = self.summary.ok_or("the story has no summary")?;
        let cut_and_healed = self.pulled > 0 && self.pulled == self.plugged;
        if !cut_and_healed || !summary.contains(", 0 broken,") || summary.contains("skipped") {
            return Err(format!("{summary}; {} cables pulled, {} put back", self.pulled, self.plugged));
        }
        Ok(format!("{summary}; {} cables pulled and put back", self.pulled))
    }
}

/// From the first container to the last word.
const STORY_LIMIT: Duration = Duration::from_secs(240);
const DOCKER_LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_but_what_has_to_do_with_cables() {
        let pull = asked("do    docker network disconnect x_wan x-west-1");
        assert_eq!(pull, Some(vec!["network", "disconnect", "x_wan", "x-west-1"]));
        assert!(asked("do    docker network connect --ip 10.0.0.31 x_wan x-west-1").is_some());
        for line in ["do    docker network rm x_wan", "do rm -r /", "docker network connect a b", ""] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    #[test]
    fn a_story_counts_only_if_networks_were_cut_and_healed_and_nothing_left_out() {
        let verdict = |lines: &[&str]| {
            let mut heard = Heard::default();
            lines.iter().for_each(|line| heard.note(line));
            heard.verdict()
        };
        let (pull, plug) = ("do docker network disconnect n c", "do docker network connect n c");
        let good = "      24 promises kept, 0 broken, in 60.0 s";
        assert!(verdict(&[pull, plug, good]).unwrap().starts_with("24 promises kept"));
        assert!(verdict(&[pull, plug]).is_err());
        assert!(verdict(&[good]).is_err());
        assert!(verdict(&[pull, good]).is_err());
        assert!(verdict(&[pull, plug, "      23 promises kept, 1 broken, in 60.0 s"]).is_err());
        assert!(verdict(&[pull, plug, "  20 promises kept, 0 broken, 1 chapter skipped, in 9 s"]).is_err());
    }

    #[test]
    fn the_compose_file_has_a_container_for_every_node_and_a_network_for_every_datacenter() {
        let text = include_str!("../../../config/compose.yaml");
        for name in ["north", "south", "west"] {
            assert!(text.contains(&format!("\n  {name}:\n    internal: true\n")), "network {name}");
            for node in [format!("{name}-1"), format!("{name}-2")] {
                assert!(text.contains(&format!("\n  {node}:\n    <<: *node\n")), "container {node}");
            }
        }
        assert!(text.contains(&format!("image: {}\n", image::IMAGE)));
    }
}
