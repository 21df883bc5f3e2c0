//! What would keep a node from running on this machine: one line for each thing that was looked at, with the cause and what to do.
//!
//! Each module looks at one thing and answers [`Finding`]s. Nothing is changed, and every look is bounded by a few seconds.

mod certificates;
mod finding;
mod machine;
mod mtu;
mod ports;
mod store;
mod store_answers;
mod token;

use archipelago::config::{Fault, Inspection, Problem, Settings};
pub(crate) use finding::{Finding, Standing};
use serde_json::{Value, json};

use crate::api::Api;
use crate::arguments::{Common, Source};
use crate::check;
use crate::screen::Screen;
use crate::trouble::{Ended, Verdict};

/// Looks at everything, and says it.
pub(crate) fn doctor(screen: &mut Screen, common: &Common, source: &Source) -> Ended {
    let api = Api::new(&common.api, common.token_file.as_deref(), common.within())?;
    let findings = examine(&api, source);
    let failed = findings.iter().any(|finding| finding.standing == Standing::Fail);
    if screen.is_for_programs() {
        let checks: Vec<Value> = findings.iter().map(Finding::as_json).collect();
        screen.json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        for line in findings.iter().flat_map(Finding::lines) {
            screen.line(&line)?;
        }
    }
    Ok(if failed { Verdict::No } else { Verdict::Yes })
}

fn examine(api: &Api, source: &Source) -> Vec<Finding> {
    let node = api.get("/v1/node", &[]).ok();
    let Inspection { settings, problems, .. } = check::inspect(source);
    let mut findings = configuration(&problems);
    let mut dates = Vec::new();
    match &settings {
        Some(settings) => {
            findings.extend(of_settings((settings, &problems), (node.as_ref(), api.base()), &mut dates))
        }
        None => {
            findings.push(Finding::skip("other settings", "not looked at: the configuration cannot be read"))
        }
    }
    findings.push(machine::clock(&dates));
    findings.push(machine::files(settings.as_ref()));
    if let Some(settings) = &settings {
        findings.extend(mtu::look(settings, &source.root));
    }
    findings.push(match &node {
        Some(node) => {
            Finding::ok("node", format!("{} answers at {}", crate::cells::text(&node["id"]), api.base()))
        }
        None => Finding::skip("node", format!("none answers at {}", api.base())),
    });
    findings
}

fn of_settings(
    (settings, problems): (&Settings, &[Problem]),
    (node, api): (Option<&Value>, &str),
    dates: &mut Vec<store::Dated>,
) -> Vec<Finding> {
    let mut findings = certificates::look(settings);
    findings.extend(token::look(settings, problems));
    findings.extend(store::look(settings, dates));
    findings.extend(ports::look(settings, node, api));
    findings
}

/// What the configuration says, beside the files that other checks look into.
fn configuration(problems: &[Problem]) -> Vec<Finding> {
    let elsewhere = |problem: &&Problem| {
        matches!(problem.fault, Fault::Certificates { .. })
            || problem.key.as_deref() == Some("admin.token_file")
    };
    let (build, own): (Vec<&Problem>, Vec<&Problem>) = problems
        .iter()
        .filter(|problem| !elsewhere(problem))
        .partition(|problem| problem.is_about_the_build());
    let mut findings: Vec<Finding> = own
        .iter()
        .map(|problem| {
            Finding::fail("configuration", problem.to_string(), &format!("mend it in {}", problem.origin))
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok("configuration", "a node would take it"));
    }
    let unknown = |problem: &&Problem| {
        Finding::warn("configuration", problem.to_string(), "make sure that your node is built with it")
    };
    findings.extend(build.iter().map(unknown));
    findings
}
