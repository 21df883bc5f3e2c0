//! The transport actor as plain code sees it: envelopes go out by `SendRemote` and come in as `InboundMessage`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use archipelago_embedded::EmbeddedStore;
use archipelago_memory::{MemoryNetwork, NetworkSettings, TokioTimer};
use archipelago_process_tests::{Desk, Note, Notes, node, node_over, settings};
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{ActorPath, NodeAddress};
use archipelago_protocol::message::CodecId;
use archipelago_runtime::{
    Event, InboundMessage, MessageEnvelope, Node, Notice, RemoteMessage, SendRemote, SubscribeInbound,
};
use tokio::sync::mpsc;

async fn over_tcp() -> (Node, Node) {
    let store = || Arc::new(EmbeddedStore::default());
    (node(&store()).start().await.unwrap(), node(&store()).start().await.unwrap())
}

async fn over_memory() -> (Node, Node) {
    let network = MemoryNetwork::new(NetworkSettings::default(), 9, Arc::new(TokioTimer::start()));
    let start = async |host: &str| {
        let mut settings = settings();
        settings.remote.bind = NodeAddress::new(host, 4_000).unwrap();
        node_over(network.host(host)).settings(settings).start().await.unwrap()
    };
    (start("here").await, start("there").await)
}

async fn stop(nodes: impl IntoIterator<Item = Node>) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Passes what comes in on to the test.
struct Ear(mpsc::UnboundedSender<MessageEnvelope>);

impl Actor for Ear {
    type Context = Context<Self>;
}

impl Handler<InboundMessage> for Ear {
    type Result = ();
    fn handle(&mut self, message: InboundMessage, _: &mut Context<Self>) {
        drop(self.0.send(message.envelope));
    }
}

async fn listen(node: &Node) -> mpsc::UnboundedReceiver<MessageEnvelope> {
    let (heard, hears) = mpsc::unbounded_channel();
    let ear = Ear(heard).start().recipient();
    node.transport().unwrap().send(SubscribeInbound(ear)).await.unwrap();
    hears
}

fn envelope(from: &Node, to: &Node, path: &str) -> MessageEnvelope {
    MessageEnvelope {
        target: ActorPath::remote("default", to.address(), path).unwrap(),
        sender: Some(ActorPath::remote("default", from.address(), "/sender").unwrap()),
        type_hint: "anything.v1".to_owned(),
        codec: CodecId::JSON,
        payload: "{\"n\":1}".as_bytes().to_vec().into(),
    }
}

async fn send(from: &Node, envelope: MessageEnvelope) -> Result<(), CallError> {
    from.transport().unwrap().send(SendRemote { envelope }).await.unwrap()
}

async fn arrives_as_sent((here, there): (Node, Node)) {
    let mut inbound = listen(&there).await;
    for n in 0..200 {
        let mut envelope = envelope(&here, &there, "/anybody");
        envelope.codec = CodecId(n);
        envelope.type_hint = format!("anything.v{n}");
        send(&here, envelope).await.unwrap();
    }
    for n in 0..200 {
        let came = inbound.recv().await.unwrap();
        let mut sent = envelope(&here, &there, "/anybody");
        sent.codec = CodecId(n);
        sent.type_hint = format!("anything.v{n}");
        assert_eq!(came, sent, "as it was sent, and in order");
    }
    stop([here, there]).await;
}

/// Proves: R98, R99, R100, R115, R116, R117, R118, R125
#[actix::test]
async fn an_envelope_sent_by_the_transport_actor_comes_in_as_it_was_over_tcp() {
    arrives_as_sent(over_tcp().await).await;
}

/// Proves: R98, R99, R100, R115, R116, R118, R125
#[actix::test]
async fn an_envelope_sent_by_the_transport_actor_comes_in_as_it_was_over_memory() {
    arrives_as_sent(over_memory().await).await;
}

/// Proves: R99, R106
#[actix::test]
async fn an_envelope_for_a_registered_actor_goes_to_its_handler() {
    let (here, there) = over_tcp().await;
    let mut inbound = listen(&there).await;
    let desk = there.register("/desk", Desk::default().start()).unwrap();
    let note = |from: &Node, n: u64| MessageEnvelope {
        type_hint: Note::NAME.to_owned(),
        payload: n.to_string().into_bytes().into(),
        ..envelope(from, &there, "/desk")
    };
    send(&here, note(&here, 8)).await.unwrap();
    send(&there, note(&there, 9)).await.unwrap();
    let mut notes = Vec::new();
    while notes.len() < 2 {
        notes = desk.send(Notes).await.unwrap();
    }
    notes.sort_unstable();
    assert_eq!(notes, [8, 9]);
    // Bytes that are no note, and a name that it does not know, are dead letters of its node.
    let mut events = there.events().subscribe();
    let bad = MessageEnvelope { payload: "no number".as_bytes().to_vec().into(), ..note(&here, 1) };
    send(&here, bad).await.unwrap();
    send(&here, envelope(&here, &there, "/desk")).await.unwrap();
    let mut reasons = Vec::new();
    while reasons.len() < 2 {
        if let Some(Notice::Event(Event::DeadLetter(letter))) = events.next().await {
            reasons.push(letter.reason);
        }
    }
    assert!(matches!(reasons[0], CallError::Codec { started: false, .. }), "{}", reasons[0]);
    assert!(matches!(reasons[1], CallError::UnknownMessage(_)), "{}", reasons[1]);
    assert!(inbound.try_recv().is_err(), "none of it was unclaimed");
    stop([here, there]).await;
}

/// Proves: R446
#[actix::test]
async fn an_envelope_that_nobody_takes_is_a_dead_letter() {
    let (here, there) = over_tcp().await;
    let mut events = there.events().subscribe();
    send(&here, envelope(&here, &there, "/nobody")).await.unwrap();
    let letter = loop {
        if let Some(Notice::Event(Event::DeadLetter(letter))) = events.next().await {
            break letter;
        }
    };
    assert_eq!(letter.message, "anything.v1");
    assert!(matches!(letter.reason, CallError::NoSuchActor { .. }), "{}", letter.reason);
    stop([here, there]).await;
}

/// Proves: R447
#[actix::test]
async fn an_envelope_that_cannot_leave_is_refused_or_lost_with_a_notice() {
    let (here, there) = over_tcp().await;
    let nameless = MessageEnvelope { type_hint: String::new(), ..envelope(&here, &there, "/x") };
    assert!(matches!(send(&here, nameless).await, Err(CallError::Codec { started: false, .. })));
    let mut hasty = settings();
    hasty.remote.tell_ttl = archipelago_protocol::time::Millis(200);
    let alone = node(&Arc::new(EmbeddedStore::default())).settings(hasty).start().await.unwrap();
    let mut events = alone.events().subscribe();
    let target = ActorPath::remote("default", NodeAddress::new("127.0.0.1", 1).unwrap(), "/x").unwrap();
    send(&alone, MessageEnvelope { target: target.clone(), ..envelope(&alone, &there, "/x") }).await.unwrap();
    let lost = async {
        loop {
            if let Some(Notice::Event(Event::RemoteDeadLetter(dead))) = events.next().await {
                break dead.letter;
            }
        }
    };
    let letter = actix::clock::timeout(Duration::from_secs(10), lost).await.unwrap();
    assert_eq!(letter.target, target.to_uri());
    assert!(matches!(letter.reason, CallError::NoRoute { .. }), "{}", letter.reason);
    stop([here, there, alone]).await;
}
