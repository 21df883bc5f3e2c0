//! What happens to the cluster is seen without anybody asking for it.

use archipelago_dashboard_tests::Wanted;

use crate::opened;

#[actix::test]
async fn a_node_that_is_killed_is_missed_on_every_screen_that_shows_nodes() {
    let Some((mut cluster, browser)) = opened(Wanted::default()).await else { return };
    for number in 0..20 {
        cluster.greet(&format!("guest-{number}")).await;
    }
    browser.show("shards").await;
    browser.until("return document.querySelectorAll('.legend li').length === 3").await;
    browser.show("members").await;
    browser.until("return document.querySelector('[data-count]')?.dataset.count === '3'").await;
    let third = cluster.node(2).id().to_string();
    cluster.kill(2);
    // First it is suspected, or does not answer; then it is gone.
    browser.until("return document.querySelector('main').innerText.includes('suspect') || document.querySelector('[data-silent], [data-gone]') !== null").await;
    browser.until("return document.querySelector('[data-count]')?.dataset.count === '2'").await;
    browser
        .until(&format!("return document.querySelector(\"[data-count] tr[data-key='{third}']\") === null"))
        .await;
    browser.until_text("[data-gone]", "north-3").await;
    browser.show("overview").await;
    browser.until_text("[data-tile=nodes] .tile-value", "2 of 2").await;
    browser.show("events").await;
    browser.until_text("ol", "session_ended").await;
    browser.until_text("ol", "north-3").await;
    browser.show("shards").await;
    browser.until("return document.querySelectorAll('.legend li').length === 2").await;
    browser.until_text("[data-changes]", "north-3").await;
    browser.close().await;
}

#[actix::test]
async fn a_page_whose_node_is_gone_says_so_and_marks_what_it_shows_as_old() {
    let Some((cluster, browser)) = opened(Wanted::default()).await else { return };
    browser.show("members").await;
    browser.until("return document.querySelector('[data-count]')?.dataset.count === '3'").await;
    cluster.node(0).stop().await.unwrap();
    browser.until("return document.querySelector('main').classList.contains('stale')").await;
    browser.until_text("[role=alert]", "cannot be reached").await;
    browser.until_text("[role=alert]", "old").await;
    browser.until_text("#status", "no answer").await;
    let rows = "return document.querySelectorAll('[data-count] tbody tr').length > 0";
    browser.until(rows).await;
    browser.close().await;
}
