//! What can be done without a mouse, and on a small screen.

use archipelago_dashboard_tests::Wanted;

use crate::{SCREENS, opened};

#[actix::test]
async fn the_whole_page_is_used_with_the_keyboard() {
    let Some((cluster, browser)) = opened(Wanted::default()).await else { return };
    cluster.greet("guest-1").await;
    browser.until_text("[data-tile=nodes] .tile-value", "3 of 3").await;
    for (screen, key) in SCREENS.iter().zip("1234567890".chars()) {
        browser.type_keys(&key.to_string()).await;
        browser.until(&format!("return document.getElementById('main').dataset.screen === '{screen}'")).await;
    }
    browser.type_keys("?").await;
    browser.until_text("dialog[open]", "search or filter").await;
    browser.escape().await;
    browser.until("return document.querySelector('dialog[open]') === null").await;
    browser.type_keys("4").await;
    browser.until("return document.querySelector('input[name=prefix]') !== null").await;
    browser.type_keys("/").await;
    browser.until("return document.activeElement.name === 'prefix'").await;
    // What is typed into a field is no command, and stays there while the page is drawn anew.
    browser.type_keys("guest-1").await;
    browser.until("return document.querySelectorAll('[data-actor]').length === 1").await;
    browser
        .until(
            "return document.activeElement.name === 'prefix' && document.activeElement.value === 'guest-1'",
        )
        .await;
    browser.until("return document.getElementById('main').dataset.screen === 'actors'").await;
    browser.escape().await;
    for theme in ["light", "dark"] {
        browser.type_keys("t").await;
        browser.until(&format!("return document.documentElement.dataset.theme === '{theme}'")).await;
    }
    browser.type_keys("p").await;
    browser.until_text("#status", "paused").await;
    browser.type_keys("p").await;
    browser.until_text("#status", "live").await;
    browser.type_keys("\u{e004}").await;
    let visible = "const one = document.activeElement; return one !== document.body && one.matches(':focus-visible') && getComputedStyle(one).outlineStyle !== 'none'";
    browser.until(visible).await;
    browser.type_keys("3").await;
    browser.until("return document.querySelectorAll('.cell').length === 32").await;
    browser.run("document.querySelector('.cell').focus()").await;
    browser.type_keys("\u{e014}\u{e014}\u{e007}").await;
    browser.until("return document.querySelector('.cell.chosen')?.dataset.shard === '2'").await;
    browser.close().await;
}

#[actix::test]
async fn no_screen_is_wider_than_a_small_phone() {
    let Some((cluster, browser)) = opened(Wanted { another: true, ..Wanted::default() }).await else {
        return;
    };
    cluster.greet(&"a-very-long-key-without-a-place-to-break-".repeat(4)).await;
    browser.size(360, 740);
    for screen in SCREENS {
        browser.show(screen).await;
        browser.until("return !document.getElementById('main').innerText.includes('Asking …')").await;
        browser.until("return innerWidth === 360").await;
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert!(wide.as_u64().unwrap() <= 360, "{screen}: {wide}");
    }
    browser.close().await;
}
