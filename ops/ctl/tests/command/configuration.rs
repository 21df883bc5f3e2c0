//! Whether a node would start with a configuration.

use crate::support::{program, ran, run_here};

fn file(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("node.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn every_mistake_is_said_with_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let broken = file(
        &folder,
        "namespace = \"shop\"\n\n[calls]\ntimeoot = \"1s\"\ninbox = 0\n\n[session]\nttl = \"soon\"\n",
    );
    let checked = run_here(&["config", "check", &broken]);
    assert_eq!((checked.code, checked.err.as_str()), (1, ""), "{checked:?}");
    for (line, key) in [(4, "calls.timeoot"), (5, "calls.inbox"), (8, "session.ttl")] {
        let begin = format!("{broken}:{line}: {key}");
        assert!(checked.out.lines().any(|said| said.starts_with(&begin)), "{begin} in {checked:?}");
    }
    let answer = run_here(&["config", "check", &broken, "--json"]);
    let problems = answer.json()["problems"].as_array().unwrap().clone();
    assert_eq!((answer.code, problems.len()), (1, 3), "{answer:?}");
    assert_eq!((&problems[0]["line"], &problems[0]["key"]), (&4.into(), &"calls.timeoot".into()));
}

#[test]
fn what_only_the_start_would_find_out_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (text, line, word) in [
        ("[transport]\nkind = \"quic\"\n", 2, "needs certificates"),
        (
            "[transport]\nkind = \"tcp\"\nca = \"/no/ca\"\ncertificate = \"/no/n\"\nkey = \"/no/k\"\n",
            3,
            "/no/ca",
        ),
        ("[admin]\ntoken_file = \"/no/token\"\n", 2, "/no/token"),
        ("[admin]\nserve = true\nbind = \"0.0.0.0:4780\"\n", 3, "other machines"),
        ("[backend]\nkind = \"etcd\"\n[backend.etcd]\nuser = \"me\"\n", 0, "password_file"),
        ("[backend]\nkind = \"nats\"\n[backend.nats]\ntoken_file = \"/no/t\"\n", 4, "/no/t"),
        ("[session]\nttl = \"1s\"\nheartbeat = \"500ms\"\n", 2, "heartbeats"),
        ("[session\n", 1, "TOML"),
    ] {
        let broken = file(&folder, text);
        let checked = run_here(&["config", "check", &broken]);
        assert_eq!(checked.code, 1, "{text}: {checked:?}");
        let place = if line == 0 { String::new() } else { format!("{broken}:{line}:") };
        let found = checked.out.lines().any(|said| said.starts_with(&place) && said.contains(word));
        assert!(found, "{place} {word}: {checked:?}");
    }
}

#[test]
fn a_good_configuration_is_called_that_and_one_for_another_build_is_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(&folder, "namespace = \"shop\"\n");
    assert_eq!(run_here(&["config", "check", &good]).code, 0);
    let other = file(&folder, "[backend]\nkind = \"foundationdb\"\n");
    let checked = run_here(&["config", "check", &other]);
    assert_eq!((checked.code, checked.out.contains("note:")), (0, true), "{checked:?}");
    let missing = run_here(&["config", "check", "/no/such.toml"]);
    assert_eq!((missing.code, missing.out.contains("does not exist")), (1, true), "{missing:?}");
}

#[test]
fn variables_count_as_for_a_node_and_those_of_the_command_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(&folder, "namespace = \"shop\"\n");
    let with = |arguments: &[&str]| {
        let mut program = program(arguments);
        program.env("ARCHIPELAGO_CALLS__TIMEOUT", "soon").env("ARCHIPELAGO_API", "http://a:1");
        program.env("ARCHIPELAGO_TOKEN_FILE", "/no/token");
        ran(program)
    };
    let checked = with(&["config", "check", &good]);
    assert_eq!((checked.code, checked.out.lines().count()), (1, 1), "{checked:?}");
    assert!(checked.out.contains("ARCHIPELAGO_CALLS__TIMEOUT"), "{checked:?}");
    assert_eq!(with(&["config", "check", &good, "--no-environment"]).code, 0);
}
