//! What the command can be told. `docs/command.md` describes each of it; a test holds the two against each other.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Looks at a cluster of archipelago nodes and operates it.
///
/// Whatever concerns running nodes goes through the admin API of one of them. Exit codes: 0 good, 1 the answer is no or the node
/// refused, 2 the command makes no sense, 3 nobody answers.
#[derive(Debug, Parser)]
#[command(
    name = "archipelago",
    version,
    about,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where a node serves its admin API.
    #[arg(
        long,
        global = true,
        env = "ARCHIPELAGO_API",
        value_name = "URL",
        default_value = "http://127.0.0.1:4780"
    )]
    pub(crate) api: String,
    /// The file with the admin token, which every change needs.
    #[arg(long, global = true, env = "ARCHIPELAGO_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Shows JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How long one request may take, in seconds.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) timeout: u64,
}

impl Common {
    pub(crate) const fn within(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Read(ReadCommand),
    #[command(flatten)]
    Change(ChangeCommand),
    /// Shows the configuration of a node, or checks that of one that does not run.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Looks for whatever would keep a node from running on this machine, and says what to do about it.
    Doctor(Source),
    /// Makes certificates for development.
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Writes what completes this command in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// What looks at running nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum ReadCommand {
    /// Shows the node that answers, and its session.
    Node,
    /// Shows the members of the cluster.
    Members,
    /// Shows the kinds of actors.
    Kinds(OfCluster),
    /// Shows who owns the shards.
    Shards {
        /// Shows each shard of this kind, not the counts of all kinds.
        #[arg(long)]
        kind: Option<String>,
    },
    /// Shows actors that are active.
    Actors {
        /// Only this kind.
        #[arg(long)]
        kind: Option<String>,
        /// Only keys that begin so.
        #[arg(long, default_value = "")]
        prefix: String,
        /// How many at most, of each node.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
        #[command(flatten)]
        of: OfCluster,
    },
    /// Shows who owns an actor, and how it is doing.
    Actor {
        /// The actor, as Kind/key.
        id: String,
    },
    /// Shows the shards that are being handed over.
    Moves(OfCluster),
    /// Shows how the keys of a kind are divided into ranges.
    Ranges {
        /// The kind.
        kind: String,
    },
    /// Shows the datacenters.
    Dcs,
    /// Shows the nodes that the node has met.
    Peers(OfCluster),
    /// Shows what waits on the way to other nodes.
    Lanes(OfCluster),
    /// Shows which messages take how long.
    Messages(OfCluster),
    /// Shows the last messages that were not delivered and that nobody waited for.
    DeadLetters(OfCluster),
    /// Shows events as they happen.
    Events {
        /// Goes on until it is interrupted.
        #[arg(long, short)]
        follow: bool,
        /// Without --follow, for how many seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        seconds: u64,
        /// Ends after so many events.
        #[arg(long, value_name = "COUNT")]
        count: Option<u64>,
    },
    /// Shows the cluster as it is now, again and again. The key q ends it.
    Top {
        /// Shows it once.
        #[arg(long)]
        once: bool,
        /// How often to look, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        every: u64,
    },
}

/// What changes something, which needs the token.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangeCommand {
    /// Tells the node to leave, and does not wait.
    Leave,
    /// Tells the node to leave, and follows its shards until it has gone.
    Drain {
        /// Drains the datacenter of the node instead: nothing new is placed in it from outside.
        #[arg(long)]
        datacenter: bool,
        /// How long to wait, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        within: u64,
    },
    /// Spreads shards evenly over the nodes, and follows them.
    Rebalance {
        /// Only this kind.
        #[arg(long)]
        kind: Option<String>,
        /// Begins one round and does not wait.
        #[arg(long)]
        once: bool,
        /// How long to wait, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        within: u64,
    },
    /// Has a shard handed to another node.
    MoveShard {
        /// The kind.
        kind: String,
        /// The number of the shard.
        shard: u32,
        /// The id of the node that is to get it, or its name if only one has it.
        node: String,
    },
    /// Divides the range that holds a key, before that key.
    Split {
        /// The kind.
        kind: String,
        /// The first key of the new range.
        at: String,
    },
    /// Makes the range that holds a key and the next one range.
    Merge {
        /// The kind.
        kind: String,
        /// A key in the first of the two.
        key: String,
    },
    /// Gives the range that holds a key to another node.
    MoveRange {
        /// The kind.
        kind: String,
        /// A key in the range.
        key: String,
        /// The id of the node that is to get it, or its name if only one has it.
        node: String,
    },
    /// Asks an actor of the node to go; its next message brings it back.
    Deactivate {
        /// The actor, as Kind/key.
        id: String,
    },
    /// Asks an actor, wherever it lives, for debugging.
    Call {
        /// The actor, as Kind/key.
        id: String,
        /// The name of the message, as `kinds` lists it.
        message: String,
        /// The message as JSON; null for one without fields.
        #[arg(default_value = "null", value_name = "JSON")]
        body: String,
        /// How long to wait for the reply, in milliseconds; without it as long as the node's calls wait.
        #[arg(long, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(1..=300_000))]
        deadline: Option<u64>,
    },
}

/// What can be asked of one node, or of all.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OfCluster {
    /// Asks all members, not only the node that answers.
    #[arg(long)]
    pub(crate) cluster: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Shows what a node was configured with; secrets are masked.
    Show(OfCluster),
    /// Finds everything on this machine for which a node would refuse to start, with file and line.
    Check(Source),
}

/// A configuration, as a node would read it.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The file; without it what a node in this directory would read.
    pub(crate) file: Option<PathBuf>,
    /// The profile whose file is read on top.
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Ignores what ARCHIPELAGO_SECTION__KEY variables say.
    #[arg(long)]
    pub(crate) no_environment: bool,
    /// Where /proc and /sys are; for tests.
    #[arg(long, hide = true, value_name = "DIRECTORY", default_value = "/")]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    /// Makes an authority and a certificate of a node. Whoever can read them can be any node: never use them in production.
    Init {
        /// The directory to make them in.
        #[arg(long, value_name = "DIRECTORY", default_value = "certs")]
        dir: PathBuf,
        /// The name that the certificate of every node carries.
        #[arg(long, default_value = "archipelago")]
        server_name: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The names of all commands, `certs init` among them.
    fn commands(command: &clap::Command, before: &str, into: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            let name = format!("{before}{}", inner.get_name());
            if inner.has_subcommands() {
                commands(inner, &format!("{name} "), into);
            } else {
                into.push(name);
            }
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_is_described_and_nothing_else() {
        let page = include_str!("../../../docs/command.md");
        let mut command = Arguments::command();
        command.build();
        let mut known = Vec::new();
        commands(&command, "", &mut known);
        let first_cell = |line: &'static str| line.strip_prefix("| `")?.split_once('`').map(|(cell, _)| cell);
        let described: Vec<&str> = page.lines().filter_map(first_cell).collect();
        for name in &known {
            let found = described.iter().any(|cell| *cell == name || cell.starts_with(&format!("{name} ")));
            assert!(found, "`{name}` is not described");
        }
        for cell in
            described.iter().filter(|cell| !cell.starts_with('-') && cell.starts_with(char::is_lowercase))
        {
            let found = known.iter().any(|name| *cell == name || cell.starts_with(&format!("{name} ")));
            assert!(found, "`{cell}` is described and no command");
        }
        let mut options = Vec::new();
        collect_options(&command, &mut options);
        for option in options {
            assert!(
                page.contains(&format!("`{option}")) || page.contains(&format!(" {option}")),
                "{option} is not described"
            );
        }
    }

    fn collect_options(command: &clap::Command, into: &mut Vec<String>) {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let long = shown
            .filter_map(|argument| argument.get_long())
            .filter(|long| !["help", "version"].contains(long));
        into.extend(long.map(|long| format!("--{long}")));
        command.get_subcommands().for_each(|inner| collect_options(inner, into));
    }
}
