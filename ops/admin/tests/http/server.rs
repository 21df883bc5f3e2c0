//! The API on a port of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use actix_web::web;
use archipelago_admin::{Listen, NotLoopback, serve, served_at};

use crate::support::{builder, node, node_with};

fn request(at: SocketAddr, path: &str) -> std::io::Result<String> {
    request_to(at, &at.to_string(), path)
}

fn request_to(at: SocketAddr, host: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(at)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[actix::test]
async fn a_port_of_its_own_answers_until_the_node_has_stopped() {
    let node = node().await;
    let at = serve(&node, Listen::on_loopback("127.0.0.1:0".parse().unwrap()).unwrap()).unwrap();
    let answer = web::block(move || request(at, "/v1/node")).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains(&node.id().to_string()), "{answer}");
    node.stop().await.unwrap();
    for _ in 0..2_000 {
        if web::block(move || request(at, "/livez")).await.unwrap().is_err() {
            return;
        }
        actix::clock::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the port is still open");
}

#[actix::test]
async fn a_page_that_lets_its_name_lead_here_is_told_nothing() {
    let node = node().await;
    let at = serve(&node, Listen::on_loopback("127.0.0.1:0".parse().unwrap()).unwrap()).unwrap();
    for (host, status) in
        [("evil.example", 421), ("evil.example:4780", 421), ("localhost:1", 200), ("[::1]", 200)]
    {
        let answer = web::block(move || request_to(at, host, "/v1/node")).await.unwrap().unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
        assert_eq!(answer.contains(&node.id().to_string()), status == 200, "{host}: {answer}");
        assert!(status != 200 || answer.contains("x-content-type-options: nosniff"), "{answer}");
    }
    node.stop().await.unwrap();
}

#[test]
fn only_this_machine_is_let_in_unless_it_is_said() {
    for outside in ["0.0.0.0:4780", "192.0.2.1:4780", "[::]:4780"] {
        let outside = outside.parse().unwrap();
        assert_eq!(Listen::on_loopback(outside), Err(NotLoopback(outside)));
        assert_eq!(format!("{:?}", Listen::exposed(outside)), format!("Listen({outside})"));
    }
    for inside in ["127.0.0.1:4780", "[::1]:4780"] {
        assert!(Listen::on_loopback(inside.parse().unwrap()).is_ok(), "{inside}");
    }
}

#[actix::test]
async fn a_port_that_is_taken_is_named() {
    let node = node().await;
    let listen = |at| Listen::on_loopback(at).unwrap();
    let at = serve(&node, listen("127.0.0.1:0".parse().unwrap())).unwrap();
    let error = serve(&node, listen(at)).unwrap_err();
    assert_eq!(error.to_string(), format!("the admin API cannot listen at {at}"));
    assert_eq!(served_at(&node), Some(at));
    node.stop().await.unwrap();
}

#[actix::test]
async fn the_configuration_opens_a_port_and_shows_itself() {
    let node =
        node_with(&[("admin.serve", "true"), ("admin.bind", "127.0.0.1:0"), ("calls.timeout", "7s")]).await;
    let at = served_at(&node).expect("it is served");
    let answer = web::block(move || request(at, "/v1/config")).await.unwrap().unwrap();
    assert!(answer.contains(r#""calls.timeout":"7s""#), "{answer}");
    assert!(answer.contains(r#""admin.token_file":"#) && !answer.contains(crate::support::TOKEN), "{answer}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_node_whose_api_cannot_be_had_does_not_start() {
    let nowhere = builder(&Default::default(), &[("admin.token_file", "/nowhere/at/all")]);
    let error = nowhere.start().await.unwrap_err().to_string();
    assert!(error.contains("cannot read the token in /nowhere/at/all"), "{error}");
    let node = node_with(&[("admin.serve", "true"), ("admin.bind", "127.0.0.1:0")]).await;
    let taken = served_at(&node).unwrap().to_string();
    let twice = builder(&Default::default(), &[("admin.serve", "true"), ("admin.bind", &taken)]);
    let error = twice.start().await.unwrap_err().to_string();
    assert!(error.contains(&format!("the admin API cannot listen at {taken}")), "{error}");
    node.stop().await.unwrap();
}
