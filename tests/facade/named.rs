//! Existing actors under a path: registered, found, addressed, and missed.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use crate::support::builder;
use archipelago::identity::{ActorPath, NodeAddress};
use archipelago::prelude::*;
use archipelago::{DeadLetter, Event, NameError, Notice};

#[remote(String)]
struct Hello(String);

/// A plain actor, nothing virtual about it.
#[derive(NamedActor)]
#[named_actor(handles(Hello))]
struct Doorman;

impl Actor for Doorman {
    type Context = Context<Self>;
}

impl Handler<Hello> for Doorman {
    type Result = String;

    fn handle(&mut self, Hello(name): Hello, _: &mut Context<Self>) -> String {
        format!("hello {name}")
    }
}

/// An actor on threads of its own can be named too, though it can never be virtual.
#[derive(NamedActor)]
#[named_actor(handles(Hello))]
struct Worker;

impl Actor for Worker {
    type Context = SyncContext<Self>;
}

impl Handler<Hello> for Worker {
    type Result = String;

    fn handle(&mut self, Hello(name): Hello, _: &mut SyncContext<Self>) -> String {
        format!("worker says hello {name}")
    }
}

fn hello() -> Hello {
    Hello("you".to_owned())
}

/// Proves: R46, R48, R49, R53, R125
#[actix::test]
async fn a_registered_actor_is_found_by_its_path_and_answers() {
    let node = builder().start().await.unwrap();
    let registered = node.register("/front/doorman", Doorman.start()).unwrap();
    assert_eq!(registered.path().to_uri(), "archipelago://default/front/doorman");
    let found = node.named::<Doorman>("/front/doorman").unwrap();
    assert_eq!(found.send(hello()).await, Ok("hello you".to_owned()));
    let resolved = node.resolve::<Doorman>(registered.path()).unwrap();
    assert_eq!(resolved.send(hello()).await, Ok("hello you".to_owned()));
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_sync_actor_can_be_named() {
    let node = builder().start().await.unwrap();
    let workers = node.register("/workers", SyncArbiter::start(1, || Worker)).unwrap();
    assert_eq!(workers.send(hello()).await, Ok("worker says hello you".to_owned()));
    node.stop().await.unwrap();
}

/// Proves: R50, R446
#[actix::test]
async fn a_message_to_an_unknown_path_becomes_a_dead_letter() {
    let node = builder().start().await.unwrap();
    let mut events = node.events().subscribe();
    let nobody = node.named::<Doorman>("/nobody").unwrap();
    let reason = CallError::NoSuchActor { path: "archipelago://default/nobody".into() };
    assert_eq!(nobody.tell(hello()), Ok(()), "no error to the one who only tells");
    assert_eq!(nobody.send(hello()).await, Err(reason.clone()), "who waits must know");
    let letter = DeadLetter {
        target: "archipelago://default/nobody".to_owned(),
        message: "archipelago.Hello".to_owned(),
        reason,
    };
    for _ in 0..2 {
        assert_eq!(events.next().await, Some(Notice::Event(Event::DeadLetter(letter.clone()))));
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn paths_are_checked_and_taken_once() {
    let node = builder().start().await.unwrap();
    node.register("/doorman", Doorman.start()).unwrap();
    let taken = node.register("/doorman", Doorman.start()).unwrap_err();
    assert_eq!(taken, NameError::Taken { path: "archipelago://default/doorman".to_owned() });
    assert!(matches!(node.register("no-slash", Doorman.start()), Err(NameError::Path(_))));
    assert!(matches!(node.named::<Worker>("/doorman"), Err(NameError::OtherType { .. })));
    assert!(node.unregister("/doorman"));
    assert!(!node.unregister("/doorman"));
    node.register("/doorman", Doorman.start()).unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_address_on_another_node_is_refused_while_there_is_no_transport() {
    let node = builder().start().await.unwrap();
    let there =
        ActorPath::remote("default", NodeAddress::new("elsewhere", 4000).unwrap(), "/doorman").unwrap();
    assert!(matches!(node.resolve::<Doorman>(&there), Err(NameError::Elsewhere { .. })));
    node.stop().await.unwrap();
}
