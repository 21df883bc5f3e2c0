//! Each screen shows what the API answers.

use archipelago_dashboard_tests::{Browser, Cluster, Greet, Guest, Porter, TOKEN, Wanted};
use serde_json::{Value, json};

use crate::{SCREENS, opened};

#[actix::test]
async fn every_screen_shows_what_the_api_answers() {
    let wanted = Wanted { another: true, ..Wanted::default() };
    let Some((cluster, browser)) = opened(wanted).await else { return };
    for number in 0..30 {
        cluster.greet(&format!("guest-{number}")).await;
    }
    let nobody = cluster.node(0).named::<Porter>("/nobody").unwrap();
    (0..3).for_each(|_| nobody.tell(Greet).unwrap());
    cluster.until("they are given up", || cluster.node(0).dead_letters().len() == 3).await;
    overview(&cluster, &browser).await;
    members(&cluster, &browser).await;
    shards(&cluster, &browser).await;
    actors(&cluster, &browser).await;
    messages(&cluster, &browser).await;
    datacenters(&cluster, &browser).await;
    peers(&cluster, &browser).await;
    letters(&browser).await;
    events(&cluster, &browser).await;
    configuration(&cluster, &browser).await;
    browser.close().await;
}

async fn overview(cluster: &Cluster, browser: &Browser) {
    browser.show("overview").await;
    browser.until_text("[data-tile=nodes] .tile-value", "3 of 3").await;
    browser.until_text("[data-tile=datacenters] .tile-value", "2 of 2").await;
    browser.until_text("[data-tile=letters] .tile-value", "3").await;
    browser.until_text("[data-health=well]", "All is well").await;
    let active: u64 = listed(&cluster.api("cluster/actors?limit=1000")).len() as u64;
    // Members tell each other their load from time to time.
    browser.until_text("[data-tile=actors] .tile-value", &active.to_string()).await;
    for name in ["north-1", "north-2", "north-3"] {
        browser.until_text("tbody", name).await;
    }
}

async fn members(cluster: &Cluster, browser: &Browser) {
    browser.show("members").await;
    let answer = cluster.api("members");
    let known = answer["members"].as_array().unwrap();
    browser
        .until(&format!(
            "return document.querySelectorAll('[data-count] tbody tr').length === {}",
            known.len()
        ))
        .await;
    for member in known {
        let row = format!("tr[data-key='{}']", member["id"].as_str().unwrap());
        for field in ["id", "name", "address", "version", "status"] {
            browser.until_text(&row, member[field].as_str().unwrap()).await;
        }
    }
    let leader = format!("tr[data-key='{}']", answer["leader"].as_str().unwrap());
    browser.until_text(&leader, "leads").await;
}

async fn shards(cluster: &Cluster, browser: &Browser) {
    browser.show("shards").await;
    browser.until("return document.querySelectorAll('.cell').length === 32").await;
    let answer = cluster.api("shards?kind=Guest");
    let owned = answer["owned"].as_u64().unwrap();
    browser
        .until(&format!("return document.querySelector('[data-owned]').dataset.owned === '{owned}'"))
        .await;
    for shard in answer["items"].as_array().unwrap() {
        let (number, name) = (&shard["shard"], name_of(cluster, &shard["node"]));
        let generation = shard["generation"].as_str().unwrap();
        let said = format!("shard {number}: {name}, generation {generation}");
        browser
            .until(&format!(
                "return document.querySelector('[data-shard=\"{number}\"]').ariaLabel === {}",
                json!(said)
            ))
            .await;
    }
    // The other kind is divided otherwise.
    browser.run("const list = document.querySelector('select[name=kind]'); list.value = 'Shelf'; list.dispatchEvent(new Event('change'))").await;
    for range in cluster.api("ranges?kind=Shelf")["ranges"].as_array().unwrap() {
        browser.until_text("main", range["range"].as_str().unwrap()).await;
    }
}

async fn actors(cluster: &Cluster, browser: &Browser) {
    browser.show("actors").await;
    browser.until("return document.querySelectorAll('[data-actor]').length === 30").await;
    browser.fill("input[name=prefix]", "guest-2").await;
    let found = listed(&cluster.api("cluster/actors?prefix=guest-2"));
    assert_eq!(found.len(), 11, "2 and 20 to 29");
    browser.until("return document.querySelectorAll('[data-actor]').length === 11").await;
    let mut shown = browser.texts("[data-actor]").await;
    let mut keys: Vec<&str> = found.iter().map(|actor| actor["key"].as_str().unwrap()).collect();
    shown.sort();
    keys.sort_unstable();
    assert_eq!(shown, keys);
    browser.run("[...document.querySelectorAll('[data-actor]')].find((one) => one.innerText === 'guest-21').click()").await;
    let one = cluster.api("actors/Guest/guest-21");
    let owner = name_of(cluster, &one["owner"]["node"]);
    browser.until_text("[data-one]", &owner).await;
    browser.until_text("[data-one]", one["owner"]["generation"].as_str().unwrap()).await;
    browser.until_text("[data-one]", one["actor"].as_str().unwrap()).await;
    browser.until_text("[data-one]", "Nothing that failed names it").await;
    // Nobody can type away the whole of it: the search still shows what fits.
    assert_eq!(browser.texts("[data-actor]").await.len(), 11);
}

async fn messages(cluster: &Cluster, browser: &Browser) {
    browser.show("messages").await;
    let answer = cluster.ask("GET", "/v1/cluster/messages", Some(TOKEN), "");
    if answer.status == 404 {
        return browser.until_text("[data-unavailable]", "Not available").await;
    }
    for shown in answer.body["answers"].as_array().unwrap() {
        for message in shown["answer"]["messages"].as_array().unwrap() {
            browser.until_text("tbody", message["message"].as_str().unwrap()).await;
            browser.until_text("tbody", message["kind"].as_str().unwrap()).await;
        }
    }
    let started = |message: &str| {
        let shown = answer.body["answers"].as_array().unwrap().iter();
        let all = shown.flat_map(|shown| shown["answer"]["messages"].as_array().unwrap());
        let of =
            all.filter(|one| one["message"].as_str().unwrap().ends_with(message) && one["kind"] == "Guest");
        of.map(|one| one["started"].as_u64().unwrap()).sum::<u64>()
    };
    browser.until_text("tbody", &started("Greet").to_string()).await;
    browser.until_text("[data-latencies]", "p99").await;
    // It is a rate of now: more is more.
    let node = cluster.node(0).clone();
    let guest = node.actor::<Guest>("guest-1");
    for _ in 0..2_000 {
        guest.send(Greet).await.unwrap();
    }
    browser.until("return /k \\/s|[1-9][0-9.]* \\/s/.test(document.querySelector('tbody').innerText)").await;
    browser.until("return document.querySelectorAll('.histogram .value').length > 0").await;
}

async fn datacenters(cluster: &Cluster, browser: &Browser) {
    browser.show("datacenters").await;
    let answer = cluster.api("datacenters");
    let known = answer["datacenters"].as_array().unwrap();
    assert_eq!(known.len(), 2);
    for datacenter in known {
        let (name, standing) =
            (datacenter["name"].as_str().unwrap(), datacenter["standing"].as_str().unwrap());
        let row = format!("tr[data-key='{}']", datacenter["id"].as_str().unwrap());
        browser.until_text(&row, name).await;
        browser.until_text(&row, standing).await;
        browser.until_text(&row, datacenter["endpoints"][0].as_str().unwrap()).await;
        browser
            .until(&format!("return document.querySelector('.links').textContent.includes({})", json!(name)))
            .await;
    }
    // Round trips are measured every five seconds.
    cluster
        .until("the other is measured", || {
            let all = cluster.api("datacenters");
            let south =
                all["datacenters"].as_array().unwrap().iter().find(|one| one["name"] == "south").cloned();
            south.is_some_and(|south| south["round_trip_ms"].is_number())
        })
        .await;
    browser
        .until("return / (ms|µs)/.test(document.querySelector(\"tr[data-key='europe.south']\").innerText)")
        .await;
    browser.until("return document.querySelector('.link.holds') !== null").await;
}

async fn peers(cluster: &Cluster, browser: &Browser) {
    browser.show("peers").await;
    for peer in cluster.api("peers")["peers"].as_array().unwrap() {
        let row = format!("tr[data-key^='{} {}']", cluster.node(0).id(), peer["id"].as_str().unwrap());
        browser.until_text(&row, peer["name"].as_str().unwrap()).await;
        browser.until_text(&row, if peer["connected"] == true { "up" } else { "down" }).await;
    }
    for lane in cluster.api("lanes")["lanes"].as_array().unwrap() {
        let words = ["from", "to"].map(|field| lane[field].as_str().unwrap());
        let row =
            format!("{} {} {} {}", cluster.node(0).id(), words[0], lane["node"].as_str().unwrap(), words[1]);
        browser
            .until(&format!(
                "return document.querySelector({}) !== null",
                json!(format!("tr[data-key='{row}']"))
            ))
            .await;
    }
}

async fn letters(browser: &Browser) {
    browser.show("letters").await;
    browser.until("return document.querySelector('[data-count]')?.dataset.count === '3'").await;
    browser.until_text("tbody tr", "nobody").await;
    browser.until_text("tbody tr", "no actor").await;
    browser.fill("input[name=filter]", "nothing has this in it").await;
    browser.until_text("main", "None fits").await;
}

async fn events(cluster: &Cluster, browser: &Browser) {
    browser.show("events").await;
    cluster.ask("POST", "/v1/actors/Guest/nobody-of-this-name/deactivate", Some(TOKEN), "");
    browser.until_text("ol", "operated").await;
    browser.until_text("ol", "nobody-of-this-name").await;
    browser.until_text("ol", "deactivate").await;
}

async fn configuration(cluster: &Cluster, browser: &Browser) {
    browser.show("config").await;
    let answer = cluster.api("config");
    let values = answer["values"].as_object().unwrap();
    browser
        .until(&format!(
            "return document.querySelector('[data-count]')?.dataset.count === '{}'",
            values.len()
        ))
        .await;
    for (key, value) in values {
        let row = format!("tr[data-key={}]", json!(key));
        browser.until_text(&row, value.as_str().unwrap()).await;
    }
    assert!(values.len() > 50, "{}", values.len());
    browser.run("const list = document.querySelector('select[name=show]'); list.value = 'different'; list.dispatchEvent(new Event('change'))").await;
    browser.until("return document.querySelectorAll('tbody tr').length < 10").await;
    browser.until_text("tr[data-key='node.name']", "north-2").await;
}

/// Proves that one page never costs a node much, whatever it shows, and nothing while nobody looks.
#[actix::test]
async fn a_page_asks_at_most_five_times_a_second_and_not_at_all_while_it_is_hidden() {
    let Some((_cluster, browser)) = opened(Wanted::default()).await else { return };
    let asked =
        "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/')).length";
    browser.until_text("[data-tile=nodes] .tile-value", "3 of 3").await;
    let (before, began) = (browser.run(asked).await, std::time::Instant::now());
    for screen in SCREENS {
        browser.show(screen).await;
        let shown = std::time::Instant::now();
        while shown.elapsed() < std::time::Duration::from_millis(700) {
            browser.run("return true").await;
        }
    }
    let asked_for = |value: &Value| value.as_f64().unwrap();
    let (after, took) = (browser.run(asked).await, began.elapsed().as_secs_f64());
    let rate = (asked_for(&after) - asked_for(&before)) / took;
    assert!(rate > 0.5 && rate < 5.0, "{rate} a second");
    browser.run("Object.defineProperty(document, 'hidden', { get: () => true })").await;
    // What was asked before may still be answered.
    let settled = std::time::Instant::now();
    while settled.elapsed() < std::time::Duration::from_secs(1) {
        browser.run("return true").await;
    }
    let (before, began) = (browser.run(asked).await, std::time::Instant::now());
    while began.elapsed() < std::time::Duration::from_secs(3) {
        browser.run("return true").await;
    }
    assert_eq!(browser.run(asked).await, before, "nobody looks");
    browser.close().await;
}

/// Actors of all nodes.
fn listed(answer: &Value) -> Vec<Value> {
    let answers = answer["answers"].as_array().unwrap().iter();
    answers.flat_map(|shown| shown["answer"]["actors"].as_array().unwrap().clone()).collect()
}

fn name_of(cluster: &Cluster, id: &Value) -> String {
    let members = cluster.api("members");
    let member = members["members"].as_array().unwrap().iter().find(|member| member["id"] == *id).cloned();
    member.map(|member| member["name"].as_str().unwrap().to_owned()).unwrap_or_default()
}
