//! The admin API of archipelago: what a node shows and does for whoever operates it, as JSON over HTTP.
//!
//! [`admin`] is a part of an actix-web application:
//!
//! ```no_run
//! # fn serve(node: archipelago_runtime::Node) -> std::io::Result<actix_web::dev::Server> {
//! use actix_web::{App, HttpServer};
//!
//! let app = move || App::new().service(archipelago_admin::admin(&node));
//! Ok(HttpServer::new(app).bind("127.0.0.1:8080")?.run())
//! # }
//! ```
//!
//! [`serve`] gives it a port of its own. Either way the answers are under `/v1`, described by the OpenAPI document at
//! `/v1/openapi.json`, with `/livez` and `/readyz` beside them. Whatever a GET shows is a copy that costs little and is bounded.
//! A POST changes something: it needs the token of [`AdminSettings`], and without one nothing can be changed.
//!
//! With the cargo feature `dashboard` the service has a page for people, too, at `/dashboard`.
//!
//! Invariant: a request never waits for an actor, and what one request may cost does not depend on how many actors there are.

mod actors;
mod acts;
mod cluster;
mod config;
mod events;
mod gate;
mod health;
mod host;
mod kinds;
mod node;
mod openapi;
#[cfg(feature = "dashboard")]
mod page;
mod peers;
mod rate;
mod refusal;
mod routes;
mod server;
mod settings;
mod shards;
mod state;
mod token;
mod wire;

pub use cluster::Neighbours;
pub use config::show_configuration;
pub use routes::{AdminService, admin};
pub use server::{Listen, NotLoopback, ServeError, serve, served_at};
pub use settings::{AdminSettings, install};
pub use token::{Token, TokenError};
