//! Pictures of all screens for the documentation: `ARCHIPELAGO_TEST_PICTURES=docs/img` says where they go. Without it there are
//! none.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archipelago::prelude::*;
use archipelago_dashboard_tests::{Browser, Cluster, Greet, Guest, Porter, Wanted};

use crate::{SCREENS, opened};

#[actix::test]
async fn pictures_of_all_screens_are_drawn_where_they_are_wanted() {
    let Some(folder) = std::env::var_os("ARCHIPELAGO_TEST_PICTURES").map(PathBuf::from) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let Some((cluster, browser)) = opened(Wanted { another: true, ..Wanted::default() }).await else {
        return;
    };
    let work = actix::spawn(work(cluster.node(0).clone()));
    live(&browser, Duration::from_secs(40)).await;
    for screen in SCREENS {
        draw(&browser, screen, &folder.join(format!("{screen}.png"))).await;
    }
    browser.prefer("dark");
    draw(&browser, "overview", &folder.join("overview-dark.png")).await;
    browser.size(360, 740);
    browser.prefer("light");
    draw(&browser, "overview", &folder.join("overview-phone.png")).await;
    work.abort();
    failing(cluster, &browser, &folder).await;
    browser.close().await;
}

/// What the page says while a node is dying.
async fn failing(mut cluster: Cluster, browser: &Browser, folder: &Path) {
    browser.size(1280, 860);
    browser.show("overview").await;
    cluster.kill(2);
    browser.until("return document.querySelector('[data-health]')?.dataset.health !== 'well'").await;
    write(browser, &folder.join("overview-killed.png")).await;
}

/// Somebody uses the cluster, more and less.
async fn work(node: Node) {
    let nobody = node.named::<Porter>("/reports/daily").unwrap();
    for round in 0_u32.. {
        let guests = 40 + (round % 60) * 3;
        for number in 0..guests {
            let guest = node.actor::<Guest>(format!("guest-{}", number % 240));
            drop(guest.send(Greet).await);
        }
        if round % 50 == 0 {
            drop(nobody.tell(Greet));
        }
        actix::clock::sleep(Duration::from_millis(60)).await;
    }
}

/// Lets the page see something of the world.
async fn live(browser: &Browser, length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length {
        browser.until_text("[data-tile=nodes] .tile-value", "3 of 3").await;
        actix::clock::sleep(Duration::from_millis(500)).await;
    }
}

async fn draw(browser: &Browser, screen: &str, file: &Path) {
    let one = if screen == "actors" { "actors/Guest/guest-12" } else { screen };
    browser.show(one).await;
    if screen == "shards" {
        browser.until("return document.querySelectorAll('.cell').length > 0").await;
        browser.run("document.querySelectorAll('.cell')[5].click()").await;
    }
    browser.until("return !document.getElementById('main').innerText.includes('Asking …')").await;
    actix::clock::sleep(Duration::from_millis(600)).await;
    write(browser, file).await;
}

async fn write(browser: &Browser, file: &Path) {
    std::fs::write(file, browser.picture().await).unwrap();
}
