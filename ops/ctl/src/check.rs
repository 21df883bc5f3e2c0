//! Whether a node would start with a configuration, as far as this machine can tell.

use archipelago::config::{Inspection, Loader, Origin, Problem};
use serde_json::{Value, json};

use crate::arguments::Source;
use crate::screen::Screen;
use crate::trouble::{Ended, Verdict};

/// Says everything for which a node would refuse the configuration.
pub(crate) fn check(screen: &mut Screen, source: &Source) -> Ended {
    let Inspection { problems, .. } = inspect(source);
    let (build, problems): (Vec<Problem>, Vec<Problem>) =
        problems.into_iter().partition(Problem::is_about_the_build);
    let answer = json!({
        "ok": problems.is_empty(),
        "problems": problems.iter().map(described).collect::<Vec<_>>(),
        "needs": build.iter().map(described).collect::<Vec<_>>(),
    });
    if screen.is_for_programs() {
        screen.json(&answer)?;
    } else {
        for problem in &problems {
            screen.line(&problem.to_string())?;
        }
        for problem in &build {
            screen.line(&format!("note: {problem}; whether your node has it, this command cannot tell"))?;
        }
        if problems.is_empty() {
            screen.line("a node would start with this configuration")?;
        }
    }
    Ok(if problems.is_empty() { Verdict::Yes } else { Verdict::No })
}

/// Reads the configuration as a node would.
pub(crate) fn inspect(source: &Source) -> Inspection {
    let mut loader = Loader::new();
    if let Some(file) = &source.file {
        loader = loader.file(file);
    }
    if let Some(profile) = &source.profile {
        loader = loader.profile(profile);
    }
    if source.no_environment {
        let none: [(&str, &str); 0] = [];
        loader = loader.environment(none);
    }
    loader.inspect()
}

fn described(problem: &Problem) -> Value {
    let (file, line) = match &problem.origin {
        Origin::File { path, line } => (Some(path.display().to_string()), *line),
        _ => (None, None),
    };
    json!({
        "origin": problem.origin.to_string(), "file": file, "line": line, "key": problem.key,
        "fault": problem.fault.to_string(),
    })
}
