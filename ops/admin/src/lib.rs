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
//! `/v1/openapi.json`, with `/livez` and `/readyz` beside them, and with the cargo feature `prometheus` `/metrics`. Whatever a GET shows
//! is a copy that costs little and is bounded.
//! A POST changes something: it needs the token of [`AdminSettings`], and without one nothing can be changed.
//!
//! With the cargo feature `dashboard` the service has a page for people, too, at `/dashboard`.
//!
//! Invariant: no request waits for an actor but the one that asks it, which has a deadline; and what one request may cost does not
//! depend on how many actors there are.

mod actors;
mod acts;
mod calls;
mod cluster;
mod config;
mod events;
mod gate;
mod health;
mod host;
mod kinds;
mod messages;
mod node;
mod openapi;
#[cfg(feature = "dashboard")]
mod page;
mod peers;
#[cfg(feature = "prometheus")]
mod prometheus;
mod rate;
mod refusal;
mod routes;
mod server;
mod settings;
mod shards;
mod state;
mod token;
mod weight;
mod wire;

pub use cluster::Neighbours;
pub use config::show_configuration;
#[cfg(feature = "prometheus")]
pub use prometheus::{MetricsError, install_metrics};
pub use routes::{AdminService, admin};
pub use server::{Listen, NotLoopback, ServeError, serve, served_at};
pub use settings::{AdminSettings, install};
pub use token::{Token, TokenError};
