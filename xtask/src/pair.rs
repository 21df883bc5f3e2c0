//! The example of two processes: one hosts, the other calls it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::capture::run_within;
use crate::workspace::Workspace;

/// Starts the host, lets the caller run to its end, and ends the host in good order.
pub(crate) fn run(workspace: &Workspace, limit: Duration) -> Result<(), String> {
    let address = free_address().map_err(|error| format!("no free port: {error}"))?;
    let mut host = workspace
        .command(workspace.example("pair"))
        .args(["host", &address, "--until-stdin-closes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the host does not start: {error}"))?;
    let called = wait_for_host(&mut host).and_then(|()| call(workspace, &address, limit));
    drop(host.stdin.take());
    let ended = host.wait().map_err(|error| format!("the host does not end: {error}"))?;
    called?;
    if ended.success() { Ok(()) } else { Err(format!("the host ended with {ended}")) }
}

fn call(workspace: &Workspace, address: &str, limit: Duration) -> Result<(), String> {
    let mut caller = workspace.command(workspace.example("pair"));
    match run_within(caller.args(["call", address]), limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("the caller ended with {status}")),
        None => Err(format!("the caller did not end within {} s", limit.as_secs())),
    }
}

/// The host says a line when it serves.
fn wait_for_host(host: &mut Child) -> Result<(), String> {
    let out = host.stdout.take().ok_or("the host has no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(|error| format!("the host says nothing: {error}"))?;
    if line.is_empty() { Err("the host ended before it served".to_owned()) } else { Ok(()) }
}

fn free_address() -> std::io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
