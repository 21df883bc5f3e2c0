//! The OpenAPI document. It is kept by hand; a test holds it against the routes and against what a node answers.

use actix_web::HttpResponse;
use actix_web::http::header;

use crate::wire::Answer;

/// The document.
pub(crate) const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn document() -> Answer {
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/json")).body(DOCUMENT))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::routes::routes;

    fn document() -> Value {
        serde_json::from_str(DOCUMENT).expect("the document is JSON")
    }

    #[test]
    fn every_route_is_in_the_document_and_nothing_else() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let methods = |(path, item): (&String, &Value)| {
            let item = item.as_object().unwrap().clone();
            item.keys().map(|method| (method.clone(), path.clone())).collect::<Vec<_>>()
        };
        let described: BTreeSet<_> = paths.iter().flat_map(methods).collect();
        let of_route = |entry: &crate::routes::Entry| (entry.method.to_owned(), format!("/v1{}", entry.path));
        let mut served: BTreeSet<_> = routes().iter().map(of_route).collect();
        served.extend(["/livez", "/readyz"].map(|path| ("get".to_owned(), path.to_owned())));
        assert_eq!(described, served);
    }

    /// Proves that no answer can have a field that the document does not name.
    #[test]
    fn every_object_of_the_document_says_what_it_may_hold() {
        fn look(at: &str, value: &Value) {
            if value["type"] == "object" && value.get("properties").is_some() {
                assert_eq!(value["additionalProperties"], false, "{at}");
                assert!(value["required"].is_array(), "{at}");
            }
            for (name, inner) in value.as_object().into_iter().flatten() {
                look(&format!("{at}.{name}"), inner);
            }
        }
        look("schemas", &document()["components"]["schemas"]);
    }

    #[test]
    fn whatever_changes_something_needs_the_token() {
        for entry in routes() {
            let operation = &document()["paths"][format!("/v1{}", entry.path)][entry.method];
            assert_eq!(operation.get("security").is_some(), entry.method == "post", "{}", entry.path);
            assert!(operation["responses"].get("429").is_some(), "{}", entry.path);
        }
    }
}
