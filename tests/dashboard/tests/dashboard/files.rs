//! The files of the page, as a server gives them to anybody.

use archipelago_dashboard_tests::{Cluster, TOKEN, Wanted};

#[actix::test]
async fn files_are_given_to_everybody_with_a_policy_that_allows_only_their_own_server() {
    let cluster = Cluster::start(Wanted { guarded: true, ..Wanted::default() }).await;
    for file in ["", "main.js", "style.css", "screens/members.js", "icon.svg"] {
        let answer = cluster.ask("GET", &format!("/dashboard/{file}"), None, "");
        let head = answer.head.to_lowercase();
        assert_eq!(answer.status, 200, "{file}");
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"] {
            assert!(head.contains(rule), "{file}: {head}");
        }
        assert!(!head.contains("unsafe"), "{file}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{file}: {head}");
    }
    let guarded = cluster.ask("GET", "/v1/node", None, "");
    assert_eq!(guarded.status, 401, "the page shows nothing that its reader may not see");
    assert_eq!(cluster.ask("GET", "/v1/node", Some(TOKEN), "").status, 200);
}

#[actix::test]
async fn what_is_no_file_of_the_page_is_not_found() {
    let cluster = Cluster::start(Wanted::default()).await;
    for path in
        ["nothing.js", "../Cargo.toml", "..%2f..%2fetc%2fpasswd", "screens/", "screens", "index.html/x"]
    {
        let answer = cluster.ask("GET", &format!("/dashboard/{path}"), None, "");
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    let moved = cluster.ask("GET", "/dashboard", None, "");
    assert_eq!(moved.status, 307);
    assert!(
        moved.head.contains("location: dashboard/"),
        "relative, so that it works below any path: {}",
        moved.head
    );
}
