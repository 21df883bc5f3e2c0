//! Servers that are no admin API, or one that lies: the command ends all the same, and no terminal is taken over.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{run_here, token_file};

/// Answers every connection by `answer`, for as long as the process lives; and what it was asked.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, asked): (_, Arc<Mutex<Vec<String>>>) = (listener.local_addr().unwrap(), Arc::default());
    let into = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8_192];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            into.lock().unwrap().push(request.clone());
            answer(&request, &mut stream);
        }
    });
    (format!("http://{at}"), asked)
}

fn said(status: &str, body: &str) -> impl Fn(&str, &mut TcpStream) + Send + 'static {
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    move |_, stream| stream.write_all(answer.as_bytes()).unwrap_or(())
}

#[test]
fn what_a_terminal_would_take_for_orders_is_not_passed_on() {
    let orders = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}x\r\u{200b}";
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let members =
        format!(r#"{{"leader":null,"members":[{{"id":{0},"name":{0},"roles":[{0}]}}]}}"#, json(orders));
    let (api, _) = server(said("200 OK", &members));
    let (refusing, _) = server(said(
        "400 Bad Request",
        &format!(r#"{{"error":{{"code":{0},"message":{0}}}}}"#, json(orders)),
    ));
    for arguments in [&["members"][..], &["members", "--json"]] {
        let ran = run_here(&[&["--api", &api], arguments].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            !ran.out.contains(|c: char| c.is_control() && c != '\n')
                && !ran.out.contains(['\u{202e}', '\u{200b}']),
            "{ran:?}"
        );
    }
    let shown = run_here(&["--api", &api, "members", "--json"]).json();
    assert_eq!(shown["members"][0]["name"], orders, "programs are told what it is");
    let refused = run_here(&["--api", &refusing, "members"]);
    assert!(refused.code == 1 && !refused.err.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{refused:?}");
}

#[test]
fn whoever_is_no_admin_api_is_called_that() {
    for (status, body) in [
        ("200 OK", "<html>"),
        ("200 OK", ""),
        ("404 Not Found", "not found"),
        ("500 Internal Server Error", "{}"),
        ("302 Found", "{}"),
    ] {
        let (api, _) = server(said(status, body));
        let ran = run_here(&["--api", &api, "members"]);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{status}: {ran:?}");
    }
}

#[test]
fn the_token_goes_nowhere_but_where_it_was_told_to() {
    let (thief, stolen) = server(said("200 OK", "{}"));
    let elsewhere =
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {thief}/\r\ncontent-length: 2\r\n\r\n{{}}");
    let (api, asked) = server(move |_, stream| stream.write_all(elsewhere.as_bytes()).unwrap_or(()));
    let token = token_file();
    for command in ["leave", "members"] {
        let words = ["--api", &api, "--token-file", token.to_str().unwrap(), command];
        let mut program = crate::support::program(&words);
        program.env("http_proxy", &thief).env("HTTP_PROXY", &thief).env("all_proxy", &thief);
        assert_eq!(crate::support::ran(program).code, 3, "{command}");
    }
    assert!(asked.lock().unwrap()[0].contains("Bearer "), "it was told once");
    assert!(stolen.lock().unwrap().is_empty(), "and only there");
}

#[test]
fn who_never_answers_or_never_ends_is_given_up() {
    let (silent, _) = server(|_, stream| {
        // For as long as the other side waits.
        let _ = stream.read(&mut [0; 1]);
    });
    let (endless, _) = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        while stream.write_all(&[b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat()).is_ok() {}
    });
    for api in [silent, endless] {
        let begin = Instant::now();
        let ran = run_here(&["--api", &api, "--timeout", "1", "members"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{ran:?}");
    }
}

#[test]
fn a_node_that_counts_no_messages_is_shown_all_the_same() {
    let (api, _) = server(|request, stream| {
        let known = !request.contains("/messages");
        let missing = r#"{"error":{"code":"no_such_path","message":"there is nothing at this path"}}"#;
        let (status, body) =
            if known { ("200 OK", r#"{"members":[],"answers":[]}"#) } else { ("404 Not Found", missing) };
        said(status, body)(request, stream);
    });
    let top = run_here(&["--api", &api, "top", "--once"]);
    assert_eq!((top.code, top.out.contains("do not count their messages")), (0, true), "{top:?}");
    let messages = run_here(&["--api", &api, "messages"]);
    assert_eq!((messages.code, messages.err.contains("does not count")), (1, true), "{messages:?}");
}

#[test]
fn messages_are_shown_as_they_were_counted() {
    let counted = r#"{"uptime_seconds":100.0,"bounds_seconds":[0.001],"messages":[{"kind":"Guest","message":"shop.Greet",
        "started":500,"sampled":50,"mean_seconds":0.002,"slowest_seconds":0.25,"buckets":[40,10]}]}"#;
    let (api, _) = server(move |request, stream| {
        let cluster = format!(
            r#"{{"answers":[{{"node":"00000000000000aa","answer":{counted}}}],"refused":[],"silent":[]}}"#
        );
        let body = match request {
            request if request.contains("/v1/cluster/messages") => cluster.as_str(),
            request if request.contains("/v1/messages") => counted,
            _ => r#"{"members":[],"answers":[]}"#,
        };
        said("200 OK", body)(request, stream);
    });
    let messages = run_here(&["--api", &api, "messages"]);
    assert_eq!(messages.line("Guest"), ["Guest", "shop.Greet", "500", "50", "2.0ms", "250.0ms"]);
    let top = run_here(&["--api", &api, "top", "--once"]);
    assert_eq!(top.line("shop.Greet"), ["shop.Greet", "Guest", "5.0", "2.0ms", "250.0ms"]);
}
