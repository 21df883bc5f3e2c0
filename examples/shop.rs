//! A shop to be deployed: carts that outlive their nodes, behind HTTP, in a process that drains when it is told to end. `config/deploy`
//! has what runs it: an image, manifests for Kubernetes and a unit for systemd ([the guide](../docs/deployment.md)).
//!
//! It is told everything by `archipelago.toml` and the environment, but for where it serves: `SHOP_BIND`, or 127.0.0.1:8080.
//!
//! ```text
//! shop              serves until SIGTERM, SIGINT or an operator ends it
//! shop --ready      asks the admin API of such a process whether it is ready; for the health checks of containers
//! shop --self-test  calls itself and ends
//! ```
//!
//! Its end: SIGTERM closes the door, requests under way are answered, then the node hands its carts over and stops. Whoever sends
//! requests here, a load balancer for instance, should have stopped before. It ends with 0 if nothing was left undone.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own"
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::StatusCode;
use actix_web::{App, HttpServer, ResponseError, get, post, web};
use archipelago::config::Loader;
use archipelago::prelude::*;

type Items = BTreeMap<String, u32>;

/// Puts something into the cart. The same type is the body of the request.
#[remote(Result<Items, String>)]
struct Put {
    item: String,
    count: u32,
}

#[remote(Items, read_only)]
struct Look;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Put, Look), persistent, lifecycle)]
struct Cart {
    items: Items,
    here: Option<Activation>,
}

impl Actor for Cart {
    type Context = Context<Self>;
}

impl Persistent for Cart {
    type State = Items;

    fn state(&self) -> Option<Items> {
        Some(self.items.clone())
    }

    fn restore(&mut self, items: Items) {
        self.items = items;
    }
}

impl Lifecycle for Cart {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.here = Some(here);
        Ok(())
    }
}

/// What is answered is saved: the next node has it, also after a crash of this one.
impl Handler<Put> for Cart {
    type Result = ResponseFuture<Result<Items, String>>;

    fn handle(&mut self, Put { item, count }: Put, _: &mut Context<Self>) -> Self::Result {
        *self.items.entry(item).or_default() += count;
        let items = self.items.clone();
        let saving = self.here.as_ref().map(|here| here.save(self));
        Box::pin(async move {
            let saved = saving.ok_or("the cart is not activated")?.await;
            saved.map(|()| items).map_err(|error| error.to_string())
        })
    }
}

impl Handler<Look> for Cart {
    type Result = MessageResult<Look>;

    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.items.clone())
    }
}

/// A request that came to nothing, as HTTP sees it.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the cart may not have been saved: {0}")]
    Unsaved(String),
}

impl ResponseError for Failed {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Call(CallError::InvalidId { .. }) => StatusCode::BAD_REQUEST,
            // The handler never ran: the client may try again.
            Self::Call(error) if error.is_not_started() => StatusCode::SERVICE_UNAVAILABLE,
            Self::Call(CallError::Timeout { .. }) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

#[post("/carts/{owner}")]
async fn put(
    node: web::Data<Node>,
    owner: web::Path<String>,
    put: web::Json<Put>,
) -> Result<web::Json<Items>, Failed> {
    let saved = node.actor::<Cart>(&*owner).send(put.into_inner()).await?;
    saved.map(web::Json).map_err(Failed::Unsaved)
}

#[get("/carts/{owner}")]
async fn look(node: web::Data<Node>, owner: web::Path<String>) -> Result<web::Json<Items>, Failed> {
    Ok(web::Json(node.actor::<Cart>(&*owner).send(Look).await?))
}

/// The web server, and where it listens. It does not listen for signals: the node does, and a server of actix-web would stop the whole
/// system under it.
fn start_server(node: &Node, address: &str) -> std::io::Result<(Server, SocketAddr)> {
    let node = web::Data::new(node.clone());
    let app = move || App::new().app_data(node.clone()).service(put).service(look);
    let server = HttpServer::new(app).workers(2).disable_signals().shutdown_timeout(DOOR_LIMIT.as_secs());
    let server = server.bind(address)?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

/// Serves until SIGTERM or SIGINT, until an operator stops the node, or until it can serve no longer. The server goes first, when what it
/// had begun is answered: its last requests still need actors.
async fn serve(server: Server, node: &Node) -> Result<(), BoxError> {
    let door = server.handle();
    let server = actix::spawn(server);
    let ran = node.run_closing(|| door.stop(true)).await;
    server.await??;
    Ok(ran?)
}

/// One request over a connection of its own: the status line and the body.
fn request(to: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

/// Whether the process that this configuration is of says that it is ready.
fn ready() -> Result<(), BoxError> {
    let bind = Loader::new().load()?.admin.bind;
    let to = if bind.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], bind.port())) } else { bind };
    let (status, _) = request(to, "GET", "/readyz", "")?;
    if status.ends_with(" 200 OK") { Ok(()) } else { Err(status.into()) }
}

/// Calls the server as a client would.
fn self_test(at: SocketAddr) -> std::io::Result<()> {
    for (method, path, body) in
        [("POST", "/carts/alice", r#"{"item":"tea","count":2}"#), ("GET", "/carts/alice", "")]
    {
        let (status, body) = request(at, method, path, body)?;
        println!("{method} {path}: {status} {body}");
        if status != "HTTP/1.1 200 OK" || body != r#"{"tea":2}"# {
            return Err(std::io::Error::other(status));
        }
    }
    Ok(())
}

#[actix::main]
async fn main() -> Result<(), BoxError> {
    let option = std::env::args().nth(1);
    if option.as_deref() == Some("--ready") {
        return ready();
    }
    let testing = option.as_deref() == Some("--self-test");
    tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(std::io::stderr).init();
    let node = Node::builder().actor::<Cart>().start().await?;
    let bind = std::env::var("SHOP_BIND").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let (server, at) = start_server(&node, if testing { "127.0.0.1:0" } else { &bind })?;
    println!("serving on http://{at}");
    let serving = node.clone();
    let client = testing.then(|| {
        actix::spawn(async move {
            let tested = web::block(move || self_test(at)).await;
            serving.begin_stop().map(|()| tested)
        })
    });
    serve(server, &node).await?;
    println!("stopped");
    if let Some(client) = client {
        client.await????;
    }
    Ok(())
}

/// How long requests that were begun may take once the door is closed. Before `node.stop_budget`, in the times that
/// `config/deploy` gives a process to end.
pub(crate) const DOOR_LIMIT: Duration = Duration::from_secs(10);
