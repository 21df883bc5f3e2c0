//! The token, and what it is needed for.

use archipelago_dashboard_tests::{Cluster, TOKEN, Wanted};

use crate::opened;

/// The page stands below another path of an application, and shows nothing without the token.
#[actix::test]
async fn a_guarded_page_below_another_path_asks_for_the_token_and_forgets_it_when_it_is_told() {
    let wanted = Wanted { below: "/ops/archipelago", guarded: true, ..Wanted::default() };
    let Some((_cluster, browser)) = opened(wanted).await else { return };
    browser.until_text("[data-key=locked]", "without its token").await;
    assert!(!browser.text("main").await.contains("north-2"));
    browser.press_button("Give the token").await;
    browser.fill("dialog input", "not the token of this node").await;
    browser.press_button("Use it").await;
    browser.until_text("[data-key=locked]", "without its token").await;
    browser.press_button("Give the token").await;
    browser.fill("dialog input", TOKEN).await;
    browser.press_button("Use it").await;
    browser.until_text("[data-tile=nodes] .tile-value", "3 of 3").await;
    browser.until_text("main", "north-2").await;
    let kept = browser.run("return JSON.stringify(localStorage) + document.cookie").await;
    assert!(!kept.as_str().unwrap().contains(TOKEN), "{kept}");
    browser.press_button("Forget token").await;
    browser.until_text("[data-key=locked]", "without its token").await;
    browser.close().await;
}

#[actix::test]
async fn a_shard_is_moved_after_it_was_confirmed_with_the_token() {
    let Some((cluster, browser)) = opened(Wanted::default()).await else { return };
    for number in 0..40 {
        cluster.greet(&format!("guest-{number}")).await;
    }
    let before = shard(&cluster, 0);
    browser.show("shards").await;
    browser.until("return document.querySelectorAll('.cell').length === 32").await;
    browser.run("document.querySelector('[data-shard=\"0\"]').click()").await;
    browser.press_button("Move …").await;
    browser.until_text("dialog[open]", "Shard 0 of Guest").await;
    browser.press_button("Cancel").await;
    assert_eq!(shard(&cluster, 0), before, "nothing was confirmed");
    browser.press_button("Move …").await;
    browser.fill("dialog input", "not the token of this node").await;
    browser.press_button("Move shard").await;
    browser.until_text("dialog[open] .outcome", "token").await;
    assert_eq!(shard(&cluster, 0), before, "nobody may with a wrong token");
    browser.fill("dialog input", TOKEN).await;
    browser.press_button("Move shard").await;
    browser.until_text("dialog[open] .outcome", "has moved").await;
    let after = shard(&cluster, 0);
    assert_ne!(after, before);
    browser.press_button("Close").await;
    browser.until_text("[data-changes]", &after.1).await;
    browser.close().await;
}

/// The owner and the generation of a shard of the guests.
fn shard(cluster: &Cluster, number: usize) -> (String, String) {
    let answer = cluster.api("shards?kind=Guest");
    let shards = answer["items"].as_array().unwrap();
    let shard = shards.iter().find(|shard| shard["shard"] == number).unwrap();
    (shard["node"].as_str().unwrap().to_owned(), shard["generation"].as_str().unwrap().to_owned())
}
