//! The recipe of the image: its stages, what they copy, and what the program finds in it.

use super::{root, text};

/// What is wrong with a recipe.
fn faults(recipe: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = instructions(recipe);
    let of = |word: &str| {
        lines.iter().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let oldest = manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    must(
        of("FROM ") == [format!("rust:{oldest}-slim AS build"), "scratch".to_owned()],
        "the stages are others",
    );
    let build = of("RUN ").join(" ");
    must(
        build.contains("--example shop ") && root().join("examples/shop.rs").exists(),
        "no example is built",
    );
    must(build.contains("+crt-static"), "what begins with nothing needs a program that needs nothing");
    let features =
        build.split("--features ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    must(features.split(',').all(|one| manifest.contains(&format!("\n{one} = ["))), "a feature is not there");
    let mut there = Vec::new();
    for copy in of("COPY ") {
        let words: Vec<&str> = copy.split(' ').filter(|word| !word.starts_with("--")).collect();
        let [sources @ .., to] = words.as_slice() else { continue };
        let from_tree = !copy.contains("--from=build");
        must(
            !from_tree || sources.iter().all(|source| root().join(source).exists()),
            "a source is not there",
        );
        must(from_tree || sources.iter().all(|source| built(&build, source)), "nothing builds a source");
        there.push((*to).to_owned());
    }
    let entry = of("ENTRYPOINT ").join("");
    must(there.iter().any(|path| entry == format!("[\"{path}\"]")), "the entry point is not there");
    let config =
        of("ENV ").iter().find_map(|line| line.strip_prefix("ARCHIPELAGO_CONFIG=").map(str::to_owned));
    must(config.is_some_and(|path| there.contains(&path)), "the configuration is not there");
    must(of("STOPSIGNAL ") == ["SIGTERM"], "another signal ends it");
    must(
        of("USER ").iter().any(|user| !user.starts_with('0') && !user.starts_with("root")),
        "it runs as root",
    );
    must(of("HEALTHCHECK ").join("").contains("\"--ready\""), "nobody asks whether it is ready");
    faults
}

/// The lines, with what is continued joined, and without remarks.
fn instructions(recipe: &str) -> Vec<String> {
    let joined = recipe.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Whether the build leaves something at this path.
fn built(build: &str, path: &str) -> bool {
    match path.rsplit_once("/examples/") {
        Some((folder, name)) => {
            folder == "/src/target/release" && build.contains(&format!("--example {name} "))
        }
        None => build.contains(path),
    }
}

#[test]
fn the_recipe_of_the_image_names_what_is_there() {
    assert_eq!(faults(&text("Dockerfile")), Vec::<String>::new());
}

#[test]
fn each_thing_that_is_wrong_with_a_recipe_is_found() {
    let recipe = text("Dockerfile");
    for (right, wrong) in [
        ("rust:1.89-slim", "rust:1.88-slim"),
        ("--example shop", "--example shops"),
        ("+crt-static", "-crt-static"),
        ("--features admin,etcd", "--features admin,etdc"),
        ("COPY config/deploy/archipelago.toml", "COPY config/archipelagos.toml"),
        (
            "COPY --from=build /src/target/release/examples/shop",
            "COPY --from=build /src/target/debug/examples/shop",
        ),
        ("ENTRYPOINT [\"/shop\"]", "ENTRYPOINT [\"/bin/shop\"]"),
        ("ENV ARCHIPELAGO_CONFIG=/etc/shop/", "ENV ARCHIPELAGO_CONFIG=/etc/"),
        ("STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL"),
        ("USER 65532:65532", "USER root"),
        ("\"--ready\"", "\"--read\""),
    ] {
        assert!(recipe.contains(right), "{right} is not in the recipe");
        assert!(!faults(&recipe.replace(right, wrong)).is_empty(), "{wrong} is not found");
    }
}
