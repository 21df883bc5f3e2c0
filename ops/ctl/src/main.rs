//! The command `archipelago`: looks at a cluster through the admin API of one node, operates it, and finds what is wrong with a
//! configuration or a machine.
//!
//! Each command is a function that asks, shows and says how it ended; what concerns running nodes goes through [`api::Api`] and
//! nothing else. Invariant: no command waits for ever but those that are told to, `events --follow` and `top`.

mod actor_id;
mod acts;
mod api;
mod arguments;
mod cells;
mod certs;
mod check;
mod doctor;
mod events;
mod host;
mod moving;
mod names;
mod progress;
mod screen;
mod show;
mod table;
mod top;
mod trouble;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::api::Api;
use crate::arguments::{Arguments, CertsCommand, ChangeCommand, Command, Common, ConfigCommand, ReadCommand};
use crate::screen::{Screen, clean};
use crate::trouble::{Ended, Trouble, Verdict};

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(Verdict::Yes) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(1),
        Err(trouble) => {
            if !trouble.is_silent() {
                eprintln!("archipelago: {}", clean(&trouble.to_string()));
            }
            ExitCode::from(trouble.exit_code())
        }
    }
}

fn run(Arguments { common, command }: Arguments) -> Ended {
    let mut screen = Screen::new(common.json);
    match command {
        Command::Config(ConfigCommand::Check(source)) => check::check(&mut screen, &source),
        Command::Doctor(source) => doctor::doctor(&mut screen, &common, &source),
        Command::Certs(CertsCommand::Init { dir, server_name }) => {
            certs::init(&mut screen, &dir, &server_name)
        }
        Command::Completions { shell } => completions(&mut screen, shell),
        Command::Config(ConfigCommand::Show(of)) => {
            show::read_of((&api_of(&common)?, &mut screen), of, "config", cells::config)
        }
        Command::Read(command) => read(&api_of(&common)?, &mut screen, command),
        Command::Change(command) => change(&api_of(&common)?, &mut screen, command),
    }
}

fn api_of(common: &Common) -> Result<Api, Trouble> {
    Api::new(&common.api, common.token_file.as_deref(), common.within())
}

/// The commands that look at running nodes.
fn read(api: &Api, screen: &mut Screen, command: ReadCommand) -> Ended {
    match command {
        ReadCommand::Node => show::read(api, screen, "/v1/node", cells::node),
        ReadCommand::Members => show::read(api, screen, "/v1/members", cells::members),
        ReadCommand::Kinds(of) => show::read_of((api, screen), of, "kinds", cells::kinds),
        ReadCommand::Shards { kind } => show::shards(api, screen, kind.as_deref()),
        ReadCommand::Actors { kind, prefix, limit, of } => {
            let wanted = show::Actors { kind: kind.as_deref(), prefix: &prefix, limit, of };
            show::actors(api, screen, &wanted)
        }
        ReadCommand::Actor { id } => show::actor(api, screen, &id),
        ReadCommand::Moves(of) => moving::moves(api, screen, of),
        ReadCommand::Ranges { kind } => show::ranges(api, screen, &kind),
        ReadCommand::Dcs => show::read(api, screen, "/v1/datacenters", cells::datacenters),
        ReadCommand::Peers(of) => show::read_of((api, screen), of, "peers", cells::peers),
        ReadCommand::Lanes(of) => show::read_of((api, screen), of, "lanes", cells::lanes),
        ReadCommand::Messages(of) => show::messages(api, screen, of),
        ReadCommand::DeadLetters(of) => show::read_of((api, screen), of, "dead-letters", cells::dead_letters),
        ReadCommand::Events { follow, seconds, count } => {
            let time = (!follow).then(|| Duration::from_secs(seconds));
            events::follow(api, screen, &events::Until { time, count })
        }
        ReadCommand::Top { once, every } => top::top(api, screen, once, Duration::from_secs(every)),
    }
}

/// The commands that change something.
fn change(api: &Api, screen: &mut Screen, command: ChangeCommand) -> Ended {
    match command {
        ChangeCommand::Leave => acts::leave(api, screen),
        ChangeCommand::Drain { datacenter: true, .. } => acts::drain_datacenter(api, screen),
        ChangeCommand::Drain { within, .. } => moving::drain(api, screen, Duration::from_secs(within)),
        ChangeCommand::Rebalance { kind, once, within } => {
            let within = Duration::from_secs(within);
            moving::rebalance(api, screen, &moving::Rebalance { kind: kind.as_deref(), once, within })
        }
        ChangeCommand::MoveShard { kind, shard, node } => {
            moving::move_shard(api, screen, (&kind, shard), &node)
        }
        ChangeCommand::Split { kind, at } => acts::split(api, screen, &kind, &at),
        ChangeCommand::Merge { kind, key } => acts::merge(api, screen, &kind, &key),
        ChangeCommand::MoveRange { kind, key, node } => acts::move_range(api, screen, (&kind, &key), &node),
        ChangeCommand::Deactivate { id } => acts::deactivate(api, screen, &id),
        ChangeCommand::Call { id, message, body, deadline } => {
            acts::call(api, screen, &acts::Call { id: &id, message: &message, body: &body, deadline })
        }
    }
}

fn completions(screen: &mut Screen, shell: clap_complete::Shell) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "archipelago", &mut script);
    screen.raw(&script)?;
    Ok(Verdict::Yes)
}
