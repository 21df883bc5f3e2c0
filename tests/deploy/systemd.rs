//! The unit for systemd: its times and signals, and what systemd itself says to it.

use std::process::Command;
use std::time::Duration;

use super::{shop, text, time_to_end};

/// What is wrong with a unit, as far as the program can be compared with it.
fn faults(unit: &str) -> Vec<String> {
    let value = |key: &str| {
        let mut lines = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        lines.next().unwrap_or_default().to_owned()
    };
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let seconds = value("TimeoutStopSec").trim_end_matches('s').parse().map(Duration::from_secs);
    must(seconds.is_ok_and(|time| time >= time_to_end(&shop())), "it is killed while it drains");
    must(value("KillSignal") == "SIGTERM", "another signal ends it");
    // Nothing in the program tells systemd that it is ready.
    must(value("Type") == "exec", "systemd waits for a word that nobody says");
    must(value("Restart") == "on-failure", "a node that was killed does not come back");
    must(value("LimitNOFILE").parse::<u64>().is_ok_and(|files| files >= 65_536), "connections run out");
    must(unit.lines().any(|line| line == "NoNewPrivileges=yes"), "it may gain privileges");
    let program = value("ExecStart");
    must(program.ends_with("/shop") && program.starts_with('/'), "it starts something else");
    faults
}

#[test]
fn the_unit_gives_a_node_time_to_drain_and_files_for_its_connections() {
    assert_eq!(faults(&text("shop.service")), Vec::<String>::new());
}

#[test]
fn each_thing_that_is_wrong_with_a_unit_is_found() {
    let unit = text("shop.service");
    for (right, wrong) in [
        ("TimeoutStopSec=60s", "TimeoutStopSec=30s"),
        ("KillSignal=SIGTERM", "KillSignal=SIGKILL"),
        ("Type=exec", "Type=notify"),
        ("Restart=on-failure", "Restart=no"),
        ("LimitNOFILE=65536", "LimitNOFILE=1024"),
        ("NoNewPrivileges=yes", "NoNewPrivileges=no"),
        ("/usr/local/bin/shop", "/usr/local/bin/ship"),
    ] {
        assert!(unit.contains(right), "{right} is not in the unit");
        assert_eq!(faults(&unit.replace(right, wrong)).len(), 1, "{wrong}");
    }
}

/// Where systemd is installed. The program is not where the unit expects it, so one that is stands in for it.
#[test]
fn systemd_understands_every_line_of_the_unit() {
    let unit = text("shop.service");
    let Some(right) = understood(&unit) else {
        archipelago_test_servers::program::skip("systemd", "systemd-analyze is not installed");
        return;
    };
    assert!(right, "systemd-analyze verify objects");
    assert_eq!(
        understood(&unit.replace("KillMode=mixed", "KillMode=gentle")),
        Some(false),
        "it objects to nothing"
    );
}

/// Whether systemd has nothing to say to a unit; none where it is not installed.
fn understood(unit: &str) -> Option<bool> {
    let folder = std::env::temp_dir().join(format!("archipelago-unit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("shop.service");
    std::fs::write(&file, unit.replace("/usr/local/bin/shop", "/bin/true")).unwrap();
    let said = Command::new("systemd-analyze").arg("verify").arg(&file).output().ok();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = said?;
    // It passes over words that it does not know, and says so; of other units on the machine it speaks, too.
    let words =
        String::from_utf8_lossy(&said.stderr).lines().filter(|line| line.contains("shop.service")).count();
    Some(said.status.success() && words == 0)
}
