//! Which request is answered by what.

use std::sync::Arc;

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::error::{JsonPayloadError, PathError, QueryPayloadError};
use actix_web::http::header;
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::{Error, FromRequest, Handler, HttpRequest, Responder, Route, web};
use archipelago_runtime::Node;

use crate::gate::LONGEST_BODY;
use crate::refusal::Refusal;
use crate::state::AdminState;
use crate::wire::Answer;
use crate::{
    actors, acts, calls, cluster, config, events, gate, health, kinds, messages, node, openapi, peers, shards,
};

/// What every handler gets.
pub(crate) struct Admin {
    pub(crate) node: Node,
    pub(crate) state: Arc<AdminState>,
}

/// The admin API of one node, to be given to [`App::service`](actix_web::App::service): `/v1/..`, `/livez`, `/readyz` and, with
/// the cargo features `prometheus` and `dashboard`, `/metrics` and the page at `/dashboard`. A scope around it puts all of them under
/// a path of your own.
pub struct AdminService {
    node: Node,
}

/// The admin API of a node, as a part of an actix-web application. All that are made for one node share its settings
/// ([`install`](crate::install)) and its rate.
pub fn admin(node: &Node) -> AdminService {
    AdminService { node: node.clone() }
}

impl HttpServiceFactory for AdminService {
    fn register(self, config: &mut AppService) {
        let admin = web::Data::new(Admin { state: AdminState::of(&self.node), node: self.node });
        let gated = admin.clone();
        let routes = routes().into_iter().fold(web::scope("/v1"), |scope, entry| {
            let resource = web::resource(entry.path).route(entry.route);
            scope.service(resource.default_service(web::to(wrong_method)))
        });
        routes
            .default_service(web::to(no_such_path))
            .app_data(web::JsonConfig::default().limit(LONGEST_BODY).error_handler(bad_json))
            .app_data(web::QueryConfig::default().error_handler(bad_query))
            .app_data(web::PathConfig::default().error_handler(bad_path))
            .app_data(admin.clone())
            .wrap(from_fn(move |request, next| gate::pass(gated.clone(), request, next)))
            .wrap(DefaultHeaders::new().add((header::X_CONTENT_TYPE_OPTIONS, "nosniff")))
            .register(config);
        #[cfg(feature = "prometheus")]
        web::resource("/metrics")
            .app_data(admin.clone())
            .route(web::get().to(crate::prometheus::scrape))
            .register(config);
        web::resource("/livez").route(web::get().to(health::live)).register(config);
        web::resource("/readyz").app_data(admin).route(web::get().to(health::ready)).register(config);
        #[cfg(feature = "dashboard")]
        crate::page::register(config);
    }
}

/// One path under `/v1`.
pub(crate) struct Entry {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the test that holds the document against the routes")
    )]
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    route: Route,
}

impl Entry {
    fn get<F, Args>(path: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self { method: "get", path, route: web::get().to(handler) }
    }

    fn post<F, Args>(path: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self { method: "post", path, route: web::post().to(handler) }
    }
}

/// Everything under `/v1`.
pub(crate) fn routes() -> Vec<Entry> {
    vec![
        Entry::get("/node", node::node),
        Entry::get("/session", node::session),
        Entry::get("/members", node::members),
        Entry::get("/kinds", kinds::kinds),
        Entry::get("/ranges", kinds::ranges),
        Entry::get("/actors", actors::list),
        Entry::get("/actors/{kind}/{key}", actors::one),
        Entry::get("/shards", shards::list),
        Entry::get("/moves", shards::moves),
        Entry::get("/datacenters", peers::datacenters),
        Entry::get("/peers", peers::peers),
        Entry::get("/lanes", peers::lanes),
        Entry::get("/dead-letters", peers::dead_letters),
        Entry::get("/messages", messages::messages),
        Entry::get("/config", config::config),
        Entry::get("/events", events::events),
        Entry::get("/openapi.json", openapi::document),
        Entry::get("/cluster/{what}", cluster::cluster),
        Entry::post("/node/leave", acts::leave),
        Entry::post("/shards/move", acts::move_shard),
        Entry::post("/shards/rebalance", acts::rebalance),
        Entry::post("/actors/{kind}/{key}/deactivate", acts::deactivate),
        Entry::post("/actors/{kind}/{key}/call", calls::call),
        Entry::post("/datacenter/drain", acts::drain_datacenter),
        Entry::post("/ranges/split", acts::split_range),
        Entry::post("/ranges/merge", acts::merge_range),
        Entry::post("/ranges/move", acts::move_range),
    ]
}

async fn no_such_path() -> Answer {
    Err(Refusal::no_such_path())
}

async fn wrong_method() -> Answer {
    Err(Refusal::wrong_method())
}

fn bad_json(error: JsonPayloadError, _: &HttpRequest) -> Error {
    match error {
        JsonPayloadError::OverflowKnownLength { .. } | JsonPayloadError::Overflow { .. } => {
            Refusal::too_large().into()
        }
        other => Refusal::invalid(format!("the body: {other}")).into(),
    }
}

fn bad_query(error: QueryPayloadError, _: &HttpRequest) -> Error {
    Refusal::invalid(format!("the query: {error}")).into()
}

fn bad_path(error: PathError, _: &HttpRequest) -> Error {
    Refusal::invalid(format!("the path: {error}")).into()
}
