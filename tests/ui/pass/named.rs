//! `#[derive(NamedActor)]`: any actix actor under a path.

use archipelago::prelude::*;

use crate::support::builder;

#[remote(String)]
struct Greet {
    name: String,
}

#[remote]
struct Forget;

#[derive(NamedActor)]
#[named_actor(handles(Greet, Forget))]
struct Greeter;

impl Actor for Greeter {
    type Context = Context<Self>;
}

impl Handler<Greet> for Greeter {
    type Result = String;
    fn handle(&mut self, message: Greet, _: &mut Context<Self>) -> String {
        format!("hello {}", message.name)
    }
}

impl Handler<Forget> for Greeter {
    type Result = ();
    fn handle(&mut self, _: Forget, _: &mut Context<Self>) {}
}

/// Its context has no `AsyncContext`, so it could not be virtual.
#[derive(NamedActor)]
#[named_actor(handles(Forget))]
struct Worker;

impl Actor for Worker {
    type Context = SyncContext<Self>;
}

impl Handler<Forget> for Worker {
    type Result = ();
    fn handle(&mut self, _: Forget, _: &mut SyncContext<Self>) {}
}

fn takes_a_named_actor<A: NamedActor>() {}

#[test]
fn any_context_will_do() {
    takes_a_named_actor::<Greeter>();
    takes_a_named_actor::<Worker>();
}

#[actix::test]
async fn a_named_actor_answers_under_its_path() {
    let node = builder().start().await.unwrap();
    let greeter = node.register("/greeter", Greeter.start()).unwrap();
    assert_eq!(greeter.send(Greet { name: "ann".to_owned() }).await.unwrap(), "hello ann");
    greeter.send(Forget).await.unwrap();
    node.stop().await.unwrap();
}
