//! What `config/deploy` says is true of the program that it deploys: paths, ports, names and times are compared with the example, the
//! defaults and the routes of the admin API, and each comparison is seen to object.
//!
//! What a running container does is looked at by `cargo xtask test --docker`, step `deployment`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "reads files and runs systemd-analyze")]
#![cfg(all(feature = "admin", feature = "etcd", feature = "quic"))]

mod dockerfile;
mod kubernetes;
mod systemd;

#[allow(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/shop.rs"]
mod shop;

use std::path::{Path, PathBuf};
use std::time::Duration;

use archipelago::config::{Loader, Settings};

/// Where everything is.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of `config/deploy`.
fn text(name: &str) -> String {
    let path = root().join("config/deploy").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a node of the shop is told by its file, with these variables.
fn settings(toml: &str, variables: &[(String, String)]) -> Settings {
    static FILES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path: PathBuf =
        std::env::temp_dir().join(format!("archipelago-deploy-{}-{number}.toml", std::process::id()));
    std::fs::write(&path, toml).unwrap();
    let loaded = Loader::new().file(&path).environment(variables.to_vec()).load();
    std::fs::remove_file(&path).unwrap();
    loaded.unwrap()
}

/// As the image has it, under the name that others dial.
fn shop() -> Settings {
    let advertise = ("ARCHIPELAGO_TRANSPORT__ADVERTISE".to_owned(), "shop-0.shop-nodes".to_owned());
    settings(&text("archipelago.toml"), &[advertise])
}

/// How long the program may take from SIGTERM to its end: requests under way, the node, and goodbyes.
fn time_to_end(settings: &Settings) -> Duration {
    shop::DOOR_LIMIT + settings.node.stop_budget + Duration::from_secs(10)
}

#[test]
fn the_file_in_the_image_needs_nothing_but_a_name_for_others_to_dial() {
    let shop = shop();
    assert_eq!(
        shop.node.stop_budget,
        Settings::default().node.stop_budget,
        "the guide speaks of the default"
    );
    assert!(shop.admin.serve && shop.admin.expose && shop.admin.guard_reads);
    assert_eq!(shop.transport.bind.port(), Settings::default().transport.bind.port());
    assert_eq!(shop.admin.bind.port(), Settings::default().admin.bind.port());
}

/// The grace period of containers in `compose.yaml`.
#[test]
fn containers_have_time_to_drain() {
    let compose = text("compose.yaml");
    let grace = compose.lines().find_map(|line| line.trim().strip_prefix("stop_grace_period: ")).unwrap();
    let grace = Duration::from_secs(grace.trim_end_matches('s').parse().unwrap());
    assert!(grace >= time_to_end(&shop()), "{grace:?}");
}
