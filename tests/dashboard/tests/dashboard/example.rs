//! What somebody sees who has just cloned the repository: `cargo run --example multidc -- --dashboard`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use archipelago_dashboard_tests::Browser;

#[actix::test]
async fn the_example_prints_where_its_page_is_and_the_page_shows_three_datacenters() {
    let Some(browser) = Browser::start().await else { return };
    let (example, url) = Example::start();
    let printed = Instant::now();
    browser.open(&url).await;
    browser.until_text("[data-tile=datacenters] .tile-value", "3 of 3").await;
    println!("figure dashboard.three_datacenters_after_ms {}", printed.elapsed().as_millis());
    browser.show("datacenters").await;
    for name in ["north", "south", "west"] {
        browser.until_text(&format!("tr[data-key$='{name}']"), "active").await;
    }
    drop(example);
    browser.close().await;
}

/// The example, built beside these tests. Dropped, it is gone.
struct Example {
    process: Child,
    _folder: tempfile::TempDir,
}

impl Example {
    /// Starts it and waits until it says where the page is.
    fn start() -> (Self, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command.arg("--dashboard").env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.by_ref().find_map(|line| {
            let (_, url) = line.split_once("the dashboard is at ")?;
            Some(url.trim().to_owned())
        });
        // Nobody may keep it waiting.
        drop(std::thread::spawn(move || lines.for_each(drop)));
        (Self { process, _folder: folder }, url.expect("the example says where its page is"))
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let program = this.parent().unwrap().with_file_name("examples").join("multidc");
    assert!(program.is_file(), "build it first: cargo build --example multidc");
    program
}
