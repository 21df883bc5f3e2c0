//! archipelago inside an actix-web application: shopping carts behind HTTP.
//!
//! `cargo run --example webapp` serves on 127.0.0.1:8080 until ctrl-c. Try
//! `curl -X POST localhost:8080/carts/alice -H 'content-type: application/json' -d '{"item":"tea","count":2}'`.
//! With `-- --self-test` it calls itself and ends.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own"
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use actix_web::dev::Server;
use actix_web::http::StatusCode;
use actix_web::{App, HttpServer, ResponseError, get, post, web};
use archipelago::prelude::*;

type Items = BTreeMap<String, u32>;

/// Puts something into the cart. The same type is the body of the request.
#[remote(Items)]
struct Put {
    item: String,
    count: u32,
}

#[remote(Items, read_only)]
struct Look;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Put, Look))]
struct Cart {
    items: Items,
}

impl Actor for Cart {
    type Context = Context<Self>;
}

impl Handler<Put> for Cart {
    type Result = MessageResult<Put>;

    fn handle(&mut self, Put { item, count }: Put, _: &mut Context<Self>) -> Self::Result {
        *self.items.entry(item).or_default() += count;
        MessageResult(self.items.clone())
    }
}

impl Handler<Look> for Cart {
    type Result = MessageResult<Look>;

    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.items.clone())
    }
}

/// A failed call as HTTP sees it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(#[from] CallError);

impl ResponseError for Failed {
    fn status_code(&self) -> StatusCode {
        match &self.0 {
            CallError::InvalidId { .. } => StatusCode::BAD_REQUEST,
            // The handler never ran: the client may try again.
            error if error.is_not_started() => StatusCode::SERVICE_UNAVAILABLE,
            CallError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
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
    Ok(web::Json(node.actor::<Cart>(&*owner).send(put.into_inner()).await?))
}

#[get("/carts/{owner}")]
async fn look(node: web::Data<Node>, owner: web::Path<String>) -> Result<web::Json<Items>, Failed> {
    Ok(web::Json(node.actor::<Cart>(&*owner).send(Look).await?))
}

/// The node that hosts the carts.
pub(crate) async fn start_node() -> Result<Node, archipelago::Error> {
    Node::builder().actor::<Cart>().start().await
}

/// The web server, and where it listens. Each of its workers has a handle to the node. It does not listen for signals: the node does,
/// and a server of actix-web would stop the whole system under it.
pub(crate) fn start_server(node: &Node, address: &str) -> std::io::Result<(Server, SocketAddr)> {
    let node = web::Data::new(node.clone());
    let app = move || App::new().app_data(node.clone()).service(put).service(look);
    let server = HttpServer::new(app).workers(2).disable_signals().bind(address)?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

/// Serves until ctrl-c, or until the node can serve no longer. Then the server goes first, because its last requests still need
/// actors.
pub(crate) async fn serve(server: Server, node: &Node) -> Result<(), BoxError> {
    let door = server.handle();
    let server = actix::spawn(server);
    let ran = node.run_closing(|| door.stop(true)).await;
    server.await??;
    Ok(ran?)
}

/// One request over a connection of its own: the status line and the body.
pub(crate) fn request(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(to)?;
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

/// Calls the server as a client would.
fn self_test(at: SocketAddr) -> std::io::Result<()> {
    for (method, path, body) in [
        ("POST", "/carts/alice", r#"{"item":"tea","count":2}"#),
        ("POST", "/carts/alice", r#"{"item":"cups","count":6}"#),
        ("GET", "/carts/alice", ""),
        ("GET", "/carts/bob", ""),
    ] {
        let (status, body) = request(at, method, path, body)?;
        println!("{method} {path}: {status} {body}");
        if status != "HTTP/1.1 200 OK" {
            return Err(std::io::Error::other(status));
        }
    }
    Ok(())
}

#[actix::main]
async fn main() -> Result<(), BoxError> {
    let testing = std::env::args().any(|argument| argument == "--self-test");
    let node = start_node().await?;
    let (server, at) = start_server(&node, if testing { "127.0.0.1:0" } else { "127.0.0.1:8080" })?;
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
