//! A real browser without a window, looking at one dashboard.

use std::time::{Duration, Instant};

use archipelago_test_servers::program;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::Driver;
use crate::http::request;

/// A browser and what drives it.
pub struct Browser {
    client: Client,
    session: String,
    driver: Driver,
    /// Its profile, thrown away after it.
    _folder: TempDir,
}

impl Browser {
    /// Starts one; none if there is no browser here, and the caller leaves its test.
    ///
    /// # Panics
    ///
    /// If there is none and `ARCHIPELAGO_TEST_REQUIRE` names `chromium`, or if it does not start.
    pub async fn start() -> Option<Self> {
        let browser = program::find_program("chromium", "chromium");
        let driver = program::find_program("chromedriver", "chromedriver");
        let Some((browser, driver)) = browser.zip(driver) else {
            program::skip(
                "chromium",
                "no chromium or no chromedriver found; install chromium and chromium-driver",
            );
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let driver = Driver::start(&driver);
        let arguments = [
            "--headless=new".to_owned(),
            // Tests run as root in containers, where it has no sandbox to make.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--force-color-profile=srgb".to_owned(),
            "--window-size=1280,860".to_owned(),
            // Whatever the page wanted from elsewhere it would not get.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1".to_owned(),
            format!("--user-data-dir={}", folder.path().display()),
        ];
        let options = json!({ "binary": browser, "args": arguments });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let capabilities = wanted.as_object().cloned().unwrap_or_default();
        let (mut builder, at) = (ClientBuilder::new(HttpConnector::new()), format!("http://{}", driver.at));
        let client = builder.capabilities(capabilities).connect(&at).await.expect("the browser starts");
        let session = client.session_id().await.expect("it has a session").expect("it has a session");
        Some(Self { client, session, driver, _folder: folder })
    }

    /// Opens a page anew.
    pub async fn open(&self, url: &str) {
        // An address that differs in its fragment alone would open nothing.
        self.client.goto("about:blank").await.expect("it goes");
        self.client.goto(url).await.expect("it goes");
    }

    /// Goes to a screen of the dashboard that is open, and waits until it is shown.
    pub async fn show(&self, screen: &str) {
        self.run(&format!("location.hash = {}", json!(screen))).await;
        let id = screen.split('/').next().unwrap_or(screen);
        self.until(&format!("return document.getElementById('main').dataset.screen === {}", json!(id))).await;
    }

    /// Runs a script and takes what it returns.
    pub async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until a script returns true.
    ///
    /// # Panics
    ///
    /// If it does not within half a minute.
    pub async fn until(&self, script: &str) {
        let until = Instant::now() + PATIENCE;
        let mut seen = Value::Null;
        while Instant::now() < until {
            seen = self.run(script).await;
            if seen == true {
                return;
            }
            actix::clock::sleep(Duration::from_millis(50)).await;
        }
        let page = self.text("body").await;
        panic!("never true, {seen} in the end: {script}\n{page}\n{:?}", self.faults());
    }

    /// The text of the first element that a selector finds; empty if there is none.
    pub async fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({})?.innerText ?? ''", json!(selector));
        self.run(&script).await.as_str().unwrap_or_default().to_owned()
    }

    /// The texts of all elements that a selector finds.
    pub async fn texts(&self, selector: &str) -> Vec<String> {
        let script =
            format!("return [...document.querySelectorAll({})].map((one) => one.innerText)", json!(selector));
        let found = self.run(&script).await;
        let found = found.as_array().cloned().unwrap_or_default();
        found.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until an element is there and has a text.
    pub async fn until_text(&self, selector: &str, text: &str) {
        let of = format!("document.querySelector({})?.innerText", json!(selector));
        self.until(&format!("return ({of} ?? '').includes({})", json!(text))).await;
    }

    /// Clicks on the first button of the open dialog or the screen that begins with `text`.
    pub async fn press_button(&self, text: &str) {
        let script = format!(
            "const place = document.querySelector('dialog[open]') ?? document.body;\
             const wanted = [...place.querySelectorAll('button')].find((one) => one.innerText.startsWith({}) && !one.hidden);\
             if (wanted) wanted.click(); return Boolean(wanted)",
            json!(text)
        );
        self.until(&script).await;
    }

    /// Types keys where the focus is, as a person does.
    pub async fn type_keys(&self, keys: &str) {
        let focused = self.client.active_element().await.expect("there is one");
        focused.send_keys(keys).await.expect("it can be typed into");
    }

    /// Presses escape.
    pub async fn escape(&self) {
        self.type_keys(&char::from(Key::Escape).to_string()).await;
    }

    /// Types into the first input that a selector finds.
    pub async fn fill(&self, selector: &str, text: &str) {
        let input = self.client.find(Locator::Css(selector)).await.expect("it is there");
        input.clear().await.expect("it can be cleared");
        input.send_keys(text).await.expect("it can be typed into");
    }

    /// Makes the page as wide and high as it says, whatever the window is.
    pub fn size(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.develop("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Tells the page which colours the person prefers, `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.develop("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// What the page looks like, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("it can be drawn")
    }

    /// What the browser complains about since it was asked last, answers of servers aside: scripts that fail, and what the
    /// page's policy forbids.
    pub fn faults(&self) -> Vec<String> {
        let said = self.ask("se/log", &json!({ "type": "browser" }));
        let of_server = |entry: &&Value| entry["source"] == "network" || entry["level"] != "SEVERE";
        let entries = said.as_array().cloned().unwrap_or_default();
        entries.iter().filter(|entry| !of_server(entry)).map(ToString::to_string).collect()
    }

    /// Ends it in good order.
    pub async fn close(self) {
        assert_eq!(self.faults(), Vec::<String>::new(), "the browser has nothing to complain about");
        self.client.clone().close().await.expect("it closes");
    }

    fn develop(&self, command: &str, parameters: &Value) {
        self.ask("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Asks the driver something that only this browser knows.
    fn ask(&self, what: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{what}", self.session);
        let answer =
            request(self.driver.at, "POST", &path, None, &body.to_string()).expect("the driver answers");
        assert_eq!(answer.status, 200, "{what}: {}", answer.body);
        answer.body["value"].clone()
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
