//! The dashboard: one page and what belongs to it, which are part of the program. Nothing of it comes from anywhere else.
//!
//! The files hold no data and are given to everybody; the page asks the API like any other client, with the token if the API wants
//! one. What the browser may do with the page is said by a policy that forbids whatever the page does not need: scripts that stand
//! in the page itself, code made of text, and every other server.

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::http::header::{self, HeaderName};
use actix_web::{HttpResponse, web};

use crate::wire::Answer;

/// Everything under `/dashboard`.
pub(crate) fn register(config: &mut AppService) {
    // The names of the files are relative to the page, wherever it is mounted.
    web::resource("/dashboard").route(web::get().to(to_the_page)).register(config);
    web::resource("/dashboard/{file:.*}").route(web::get().to(file)).register(config);
}

async fn to_the_page() -> HttpResponse {
    HttpResponse::TemporaryRedirect().insert_header((header::LOCATION, "dashboard/")).finish()
}

async fn file(path: web::Path<String>) -> Answer {
    let wanted = match path.as_str() {
        "" => "index.html",
        path => path,
    };
    let file = FILES.iter().find(|(name, _)| *name == wanted);
    let (name, text) = file.ok_or_else(crate::refusal::Refusal::no_such_path)?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, kind_of(name)));
    for (name, value) in HEADERS {
        response.insert_header((name, value));
    }
    Ok(response.body(*text))
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

/// What every file is sent with. Another build of the program may have others under the same names, so none is kept.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-cache"),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../dashboard/", $name)))),*]
    };
}

/// The files, by the names under which they are served.
const FILES: [(&str, &str); 23] = files![
    "index.html",
    "style.css",
    "icon.svg",
    "main.js",
    "api.js",
    "act.js",
    "charts.js",
    "dom.js",
    "format.js",
    "live.js",
    "parts.js",
    "poll.js",
    "rates.js",
    "screens/overview.js",
    "screens/members.js",
    "screens/shards.js",
    "screens/actors.js",
    "screens/messages.js",
    "screens/datacenters.js",
    "screens/peers.js",
    "screens/letters.js",
    "screens/events.js",
    "screens/config.js",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file that the folder holds is served, so that none is forgotten or left over.
    #[test]
    fn every_file_of_the_folder_is_part_of_the_program() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard");
        let names = |folder: &std::path::Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let files = entries.filter(|path| path.is_file());
            files.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        let screens = names(&folder.join("screens")).into_iter().map(|name| format!("screens/{name}"));
        let mut there: Vec<String> = names(&folder).into_iter().chain(screens).collect();
        let mut served: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        there.sort_unstable();
        served.sort_unstable();
        assert_eq!(there, served);
    }

    /// Data reaches the page as text alone: there is no place where text becomes markup or code.
    #[test]
    fn no_file_makes_markup_or_code_of_text() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
            "DOMParser",
            "createContextualFragment",
            "javascript:",
            "http://",
            "https://",
            "//cdn",
            "style=\"",
        ];
        for (name, text) in FILES {
            // The names of the languages of markup are addresses that nobody visits.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for word in forbidden {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
        let page = FILES.iter().find(|(name, _)| *name == "index.html").unwrap().1;
        assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\" src=").count());
    }
}
