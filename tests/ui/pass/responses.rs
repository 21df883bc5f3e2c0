//! Handlers may answer in every way that actix knows.

use archipelago::prelude::*;

use crate::support::builder;

#[remote(u8)]
struct Now;

#[remote(u8)]
struct Later;

#[remote(u8)]
struct LaterWithState;

#[remote(u8)]
struct Alone;

#[remote(Result<u8, String>)]
struct Fallible;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Now, Later, LaterWithState, Alone, Fallible))]
struct Answers {
    given: u8,
}

impl Actor for Answers {
    type Context = Context<Self>;
}

impl Handler<Now> for Answers {
    type Result = u8;
    fn handle(&mut self, _: Now, _: &mut Context<Self>) -> u8 {
        1
    }
}

impl Handler<Later> for Answers {
    type Result = ResponseFuture<u8>;
    fn handle(&mut self, _: Later, _: &mut Context<Self>) -> ResponseFuture<u8> {
        Box::pin(async { 2 })
    }
}

impl Handler<LaterWithState> for Answers {
    type Result = ResponseActFuture<Self, u8>;
    fn handle(&mut self, _: LaterWithState, _: &mut Context<Self>) -> ResponseActFuture<Self, u8> {
        let later = async { 3 }.into_actor(self).map(|reply, actor: &mut Self, _| {
            actor.given = reply;
            reply
        });
        Box::pin(later)
    }
}

impl Handler<Alone> for Answers {
    type Result = AtomicResponse<Self, u8>;
    fn handle(&mut self, _: Alone, _: &mut Context<Self>) -> AtomicResponse<Self, u8> {
        let later = async {}.into_actor(self).map(|(), actor: &mut Self, _| actor.given + 1);
        AtomicResponse::new(Box::pin(later))
    }
}

impl Handler<Fallible> for Answers {
    type Result = ResponseFuture<Result<u8, String>>;
    fn handle(&mut self, _: Fallible, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async { Err("no".to_owned()) })
    }
}

#[actix::test]
async fn every_kind_of_response_reaches_the_caller() {
    let node = builder().actor::<Answers>().start().await.unwrap();
    let actor = node.actor::<Answers>("a");
    assert_eq!(actor.send(Now).await.unwrap(), 1);
    assert_eq!(actor.send(Later).await.unwrap(), 2);
    assert_eq!(actor.send(LaterWithState).await.unwrap(), 3);
    assert_eq!(actor.send(Alone).await.unwrap(), 4);
    assert_eq!(actor.send(Fallible).await.unwrap(), Err("no".to_owned()));
    node.stop().await.unwrap();
}
