//! `config/deploy` for real: three containers of the shop and an etcd, one of which is told to end while all are called.
//!
//! It must drain: end by itself, with 0, within the time that the manifests give it, while no call to the others fails; and every
//! write that was acknowledged, by whichever node, must be in the carts afterwards. The image is that of the real recipe where the
//! recipe's base is there; elsewhere its second stage, filled with the same program as it is built here.

mod callers;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::compose::Compose;
use super::stand_in::{self, StandIns};
use super::{free_port, image, images};
use crate::capture::run_within;
use crate::servers::run_quietly;
use crate::step::Outcome;
use crate::workspace::Workspace;
use callers::Callers;

/// Builds the image, lets one of three nodes drain under load, and removes everything.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    let lines = build(workspace).and_then(|how| Ok([vec![how], drain(workspace)?].concat()));
    // Without a build there is none.
    drop(run_quietly(workspace.command("docker").args(["rmi", IMAGE]), "docker rmi"));
    lines.map_or_else(Outcome::failed, Outcome::Ok)
}

/// `cargo xtask deployment`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask deployment".to_owned());
    }
    let outcome = step(workspace);
    outcome.lines().iter().for_each(|line| println!("{line}"));
    println!("{outcome}");
    Ok(matches!(outcome, Outcome::Ok(_)))
}

/// Builds the image; says how.
fn build(workspace: &Workspace) -> Result<String, String> {
    let recipe = std::fs::read_to_string(workspace.root().join(RECIPE))
        .map_err(|error| format!("{RECIPE}: {error}"))?;
    let base = base(&recipe).ok_or_else(|| format!("{RECIPE} has no first stage"))?;
    let mut command = workspace.command("docker");
    if stand_in::is_there(workspace, base) {
        command.args(["build", "--quiet", "--tag", IMAGE, "--file", RECIPE, "."]);
        run_quietly(&mut command, "docker build")?;
        return Ok(format!("the image was built by {RECIPE}"));
    }
    let folder = workspace.target().join("shop-image");
    let program = image::link(workspace, "shop")?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fill(workspace, &folder, &program, &recipe).map_err(failed)?;
    command.args(["build", "--quiet", "--tag", IMAGE]).arg(&folder);
    run_quietly(&mut command, "docker build")?;
    Ok(format!(
        "{base} is not here: the image is the second stage of {RECIPE}, with the program as it is built for tests"
    ))
}

/// What the second stage copies, under the names by which [`second_stage`] asks for it.
fn fill(workspace: &Workspace, folder: &Path, program: &Path, recipe: &str) -> std::io::Result<()> {
    let (examples, etc) = (folder.join("src/target/release/examples"), folder.join("out/etc"));
    for path in [&examples, &etc, &folder.join("out/var/lib/shop"), &folder.join("config/deploy")] {
        std::fs::create_dir_all(path)?;
    }
    std::fs::copy(program, examples.join("shop"))?;
    std::fs::write(etc.join("nsswitch.conf"), "hosts: files dns\n")?;
    let settings = "config/deploy/archipelago.toml";
    std::fs::copy(workspace.root().join(settings), folder.join(settings))?;
    std::fs::write(folder.join("Dockerfile"), second_stage(recipe))
}

/// The image that the first stage begins with.
fn base(recipe: &str) -> Option<&str> {
    recipe.lines().find_map(|line| line.strip_prefix("FROM ")?.split(' ').next())
}

/// What follows the last `FROM`, with everything that the first stage would have left taken from the context instead.
fn second_stage(recipe: &str) -> String {
    let begins = recipe.rfind("FROM ").unwrap_or(0);
    recipe[begins..]
        .replace("--from=build --chown=65532:65532 /", "--chown=65532:65532 ")
        .replace("--from=build /", "")
}

/// Three nodes, of which one drains under load; what was seen.
fn drain(workspace: &Workspace) -> Result<Vec<String>, String> {
    let compose = Compose::find(workspace)?;
    let servers = StandIns::provide(workspace, &images(workspace, &["etcd"])?)?;
    let shops = Shops {
        workspace,
        compose,
        project: format!("archipelago-shop-{}", std::process::id()),
        ports: [free_port()?, free_port()?, free_port()?],
    };
    let told = shops.up().and_then(|()| shops.drain());
    if told.is_err() {
        // What the nodes complain of; nothing depends on it.
        let _ = run_within(shops.compose().args(["logs", "--tail=30"]), DOCKER_LIMIT);
    }
    Ok([servers.said(), vec![told?]].concat())
}

/// The containers of one run. Dropped, they are gone.
struct Shops<'a> {
    workspace: &'a Workspace,
    compose: Compose,
    project: String,
    ports: [u16; 3],
}

impl Shops<'_> {
    fn up(&self) -> Result<(), String> {
        run_quietly(self.compose().args(["up", "-d"]), "compose up")?;
        let until = Instant::now() + READY_LIMIT;
        for port in self.ports {
            while !callers::answers(port) {
                if Instant::now() > until {
                    return Err(format!("no shop answers on port {port} after {READY_LIMIT:?}"));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Tells the first to end while all three are called.
    fn drain(&self) -> Result<String, String> {
        let callers = Callers::begin(self.ports);
        callers.wait_for(WARM, READY_LIMIT)?;
        let container =
            self.compose().args(["ps", "-q", "shop-1"]).output().map_err(|error| error.to_string())?;
        let container = String::from_utf8_lossy(&container.stdout).trim().to_owned();
        let began = Instant::now();
        run_quietly(self.docker().args(["kill", "--signal=TERM", &container]), "docker kill")?;
        let ended = run_within(self.docker().args(["wait", &container]), TIME_TO_END)?;
        let took = began.elapsed();
        if ended.is_none() {
            return Err(format!(
                "the node that was told to end still runs after {} s",
                TIME_TO_END.as_secs()
            ));
        }
        let code = self.workspace.ask("docker", &["inspect", "--format", "{{.State.ExitCode}}", &container]);
        if code.as_deref() != Some("0") {
            return Err(format!("the node that was told to end ended with {code:?}"));
        }
        // The others go on alone for as long again, and at least for some calls.
        callers.wait_for(WARM, READY_LIMIT)?;
        let verdict = callers.end()?;
        Ok(format!("a container drained under load in {:.1} s; {verdict}", took.as_secs_f64()))
    }

    fn compose(&self) -> Command {
        let mut command = self.compose.command(self.workspace);
        command.args(["-f", FILE, "-p", &self.project]);
        let named = ["SHOP_PORT_1", "SHOP_PORT_2", "SHOP_PORT_3"].into_iter().zip(self.ports);
        command.envs(named.map(|(name, port)| (name, port.to_string())));
        command
    }

    fn docker(&self) -> Command {
        self.workspace.command("docker")
    }
}

impl Drop for Shops<'_> {
    fn drop(&mut self) {
        if let Err(why) =
            run_quietly(self.compose().args(["down", "--volumes", "--timeout=5"]), "compose down")
        {
            println!("{} is left behind: {why}", self.project);
        }
    }
}

const FILE: &str = "config/deploy/compose.yaml";
const RECIPE: &str = "config/deploy/Dockerfile";
/// As in the compose file.
const IMAGE: &str = "archipelago-shop:local";
/// 10 s for requests under way, `node.stop_budget`, and some for goodbyes: `config/deploy` gives no less.
const TIME_TO_END: Duration = Duration::from_secs(50);
const READY_LIMIT: Duration = Duration::from_secs(90);
const DOCKER_LIMIT: Duration = Duration::from_secs(60);
/// So many calls to each node before and after.
const WARM: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_stage_of_the_recipe_asks_for_nothing_of_the_first() {
        let recipe = include_str!("../../../config/deploy/Dockerfile");
        let stage = second_stage(recipe);
        assert!(stage.starts_with("FROM scratch\n") && !stage.contains("--from"), "{stage}");
        for source in
            ["src/target/release/examples/shop /shop", "out/etc/nsswitch.conf ", "out/var/lib/shop "]
        {
            assert!(stage.contains(source), "{source}");
        }
        assert_eq!(base(recipe), Some("rust:1.89-slim"));
    }

    #[test]
    fn the_compose_file_uses_this_image_and_an_etcd_that_can_be_stood_in_for() {
        let text = include_str!("../../../config/deploy/compose.yaml");
        let stores = include_str!("../../../config/compose.yaml");
        assert!(text.contains(&format!("image: {IMAGE}\n")));
        let etcd = super::super::images_in(text, &["etcd"]);
        assert_eq!(etcd, super::super::images_in(stores, &["etcd"]));
        for number in 1..=3 {
            assert!(text.contains(&format!("${{SHOP_PORT_{number}:-808{number}}}:8080")), "{number}");
        }
    }
}
