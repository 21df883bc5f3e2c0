//! Text from the network that would like to be more than text.

use archipelago_dashboard_tests::{Browser, Greet, Guest, Porter, TOKEN, Wanted};
use serde_json::json;

use crate::{SCREENS, opened};

/// Keys as they are, and how the page writes them.
const KEYS: [(&str, &str); 10] = [
    ("<img src=x onerror=window.hurt=1>", "<img src=x onerror=window.hurt=1>"),
    ("\"><script>window.hurt=1</script>", "\"><script>window.hurt=1</script>"),
    ("</td></tr></table><iframe src=//x>", "</td></tr></table><iframe src=//x>"),
    ("' onmouseover='window.hurt=1", "' onmouseover='window.hurt=1"),
    ("javascript:window.hurt=1", "javascript:window.hurt=1"),
    ("${window.hurt=1}{{window.hurt=1}}", "${window.hurt=1}{{window.hurt=1}}"),
    ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
    ("a\u{200b}\u{2066}b", "a\\u{200b}\\u{2066}b"),
    ("%3Cb%3E&lt;b&gt;", "%3Cb%3E&lt;b&gt;"),
    ("__proto__", "__proto__"),
];

#[actix::test]
async fn hostile_names_and_keys_are_text_on_every_screen_and_run_nothing() {
    let first = "<img src=x onerror=window.hurt=2>";
    let wanted = Wanted { first: Some(first), ..Wanted::default() };
    let Some((cluster, browser)) = opened(wanted).await else { return };
    for (key, _) in KEYS {
        cluster.greet(key).await;
        // An event that names it, and a dead letter that does.
        let path = format!("/v1/actors/Guest/{}/deactivate", percent(&format!("{key}-2")));
        cluster.ask("POST", &path, Some(TOKEN), "");
        if let Ok(nobody) = cluster.node(0).named::<Porter>(&format!("/{key}")) {
            drop(nobody.tell(Greet));
        }
    }
    for screen in SCREENS {
        browser.show(screen).await;
        nothing_but_text(&browser, screen).await;
    }
    browser.show("members").await;
    browser.until_text("[data-count] tbody", first).await;
    browser.show("actors").await;
    browser
        .until(&format!("return document.querySelectorAll('[data-actor]').length === {}", KEYS.len()))
        .await;
    let mut shown = browser.texts("[data-actor]").await;
    let mut written = KEYS.map(|(_, written)| written.to_owned());
    shown.sort();
    written.sort();
    assert_eq!(shown, written);
    for (_, written) in KEYS {
        let click = format!(
            "[...document.querySelectorAll('[data-actor]')].find((one) => one.innerText === {}).click()",
            json!(written)
        );
        browser.run(&click).await;
        browser.until_text("[data-one] .subject", written).await;
        browser.until_text("[data-one]", "Active on").await;
        nothing_but_text(&browser, written).await;
    }
    browser.show("events").await;
    browser.until_text("ol", "<script>window.hurt=1</script>").await;
    nothing_but_text(&browser, "events").await;
    browser.show("letters").await;
    nothing_but_text(&browser, "letters").await;
    // Nor does the address of the page become anything but text.
    browser
        .open(&format!("{}/dashboard/#actors/<img src=x onerror=window.hurt=3>/%3Cscript%3E", cluster.url))
        .await;
    browser.until_text("[data-one] .subject", "<script>").await;
    nothing_but_text(&browser, "the address").await;
    assert!(cluster.node(0).actor::<Guest>("guest").send(Greet).await.is_ok(), "the node is well");
    browser.close().await;
}

/// There is no element that the page does not make, none that names code, and nothing has run.
async fn nothing_but_text(browser: &Browser, where_: &str) {
    let found = browser
        .run(
            "return [window.hurt ?? null, document.querySelectorAll('main img, main script, main iframe, main object, main b:not(.legend b)').length,\
             [...document.querySelectorAll('*')].filter((one) => [...one.attributes].some(({ name }) => name.startsWith('on') || name === 'style')).length,\
             document.scripts.length]",
        )
        .await;
    assert_eq!(found, json!([null, 0, 0, 1]), "{where_}");
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
