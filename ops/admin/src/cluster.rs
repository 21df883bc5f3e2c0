//! One node answers for the whole cluster: it asks the other members what they know, and says who did not answer.
//!
//! Members ask each other through a [`Service`], over the lanes between their control arbiters. Only reads can be asked for, and
//! only by members. Nobody is waited for longer than a deadline.

use std::sync::{Arc, Mutex, PoisonError};

use actix_web::body::MessageBody;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, ResponseError, web};
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{ClusterMember, Connector, Node, NodeBuilder, Service};
use bytes::Bytes;
use futures_util::future::{BoxFuture, select};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gate::Proven;
use crate::host::spawn;
use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::state::{AdminState, Asker};
use crate::wire::{Answer, Id, show};
use crate::{actors, config, kinds, messages, node, peers, shards, weight};

/// The way of a node to the admin APIs of the other members. Make it before the node, and give it to both.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    connector: Connector,
    served: Arc<Served>,
}

/// Answers the questions of other members.
#[derive(Debug, Default)]
struct Served {
    /// None before the node has started, and after it has stopped.
    node: Mutex<Option<Node>>,
}

/// How a node reaches the others.
struct Way(Connector);

/// A question to another member.
#[derive(Deserialize, Serialize)]
struct Question {
    what: String,
    query: String,
    /// Whether whoever asks has shown the token to the member that passes the question on.
    #[serde(default)]
    proven: bool,
}

/// What a member answers: a body, or the error in the body of a refusal.
#[derive(Deserialize, Serialize)]
enum Answered {
    Shown(Value),
    Refused(Value),
}

#[derive(Serialize)]
struct Cluster {
    answers: Vec<Shown>,
    refused: Vec<Refused>,
    silent: Vec<Silent>,
}

#[derive(Serialize)]
struct Shown {
    node: Id,
    answer: Value,
}

#[derive(Serialize)]
struct Refused {
    node: Id,
    error: Value,
}

#[derive(Serialize)]
struct Silent {
    node: Id,
    reason: String,
}

impl Neighbours {
    /// Lets the node that is made ask the others, and answer them.
    #[must_use]
    pub fn take_part(&self, builder: NodeBuilder) -> NodeBuilder {
        builder
            .connector(self.connector.clone())
            .service(SERVICE, Arc::clone(&self.served) as Arc<dyn Service>)
    }

    /// Begins to answer for the node, until it has stopped. Call it inside an actix system.
    pub fn belong_to(&self, node: &Node) {
        *self.served.node.lock().unwrap_or_else(PoisonError::into_inner) = Some(node.clone());
        node.attached(|| Way(self.connector.clone()));
        let (served, node) = (Arc::clone(&self.served), node.clone());
        spawn(async move {
            select(std::pin::pin!(node.stopped()), std::pin::pin!(node.session_lost())).await;
            // The node holds its services: let go of it.
            *served.node.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
    }
}

impl Service for Served {
    fn serve(&self, from: NodeId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let refuse = |reason: &str| CallError::NotServing { reason: reason.into() };
            let node = node.ok_or_else(|| refuse("the node has no admin API now"))?;
            if !node.members().iter().any(|member| member.info.id == from) {
                return Err(refuse("only members may ask this"));
            }
            let question: Question =
                serde_json::from_slice(&request).map_err(|error| refuse(&format!("no question: {error}")))?;
            let admin = web::Data::new(Admin { state: AdminState::of(&node), node });
            let answered = match may_ask(&admin, &question) {
                Ok(()) => answer_here(admin, &question).await,
                Err(refusal) => Answered::Refused(shown_error(&refusal)),
            };
            Ok(serde_json::to_vec(&answered).map_err(|error| refuse(&error.to_string()))?.into())
        })
    }
}

/// What all members answer to one of the reads.
pub(crate) async fn cluster(
    admin: web::Data<Admin>,
    what: web::Path<String>,
    request: HttpRequest,
) -> Answer {
    let proven = request.extensions().get::<Proven>().is_some_and(|Proven(proven)| *proven);
    let question = Question { what: what.into_inner(), query: request.query_string().to_owned(), proven };
    if !CAN_BE_ASKED.contains(&question.what.as_str()) {
        return Err(Refusal::no_such_path());
    }
    let asked = stream::iter(admin.node.members()).map(|member| ask(&admin, member, &question));
    let answers: Vec<_> = asked.buffered(ASKED_AT_ONCE).collect().await;
    let mut cluster = Cluster { answers: Vec::new(), refused: Vec::new(), silent: Vec::new() };
    for (node, answered) in answers {
        let node = Id(node);
        match answered {
            Ok(Answered::Shown(answer)) => cluster.answers.push(Shown { node, answer }),
            Ok(Answered::Refused(error)) => cluster.refused.push(Refused { node, error }),
            Err(reason) => cluster.silent.push(Silent { node, reason }),
        }
    }
    show(cluster)
}

async fn ask(
    admin: &web::Data<Admin>,
    member: ClusterMember,
    question: &Question,
) -> (NodeId, Result<Answered, String>) {
    let to = member.info.id;
    if to == admin.node.id() {
        return (to, Ok(answer_here(admin.clone(), question).await));
    }
    let answered = async {
        let way = admin.node.attachment::<Way>().ok_or("this node has no way to the APIs of others")?;
        let question = serde_json::to_vec(question).map_err(|error| error.to_string())?;
        let asked = way.0.ask(member.info.address, SERVICE, question.into(), DEADLINE).await;
        let answer = asked.map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer).map_err(|error| format!("no answer: {error}"))
    };
    (to, answered.await)
}

/// A member that shows nothing without its token shows it nobody through another member, either; and its control arbiter, where
/// it answers, has more to do than that.
fn may_ask(admin: &Admin, question: &Question) -> Result<(), Refusal> {
    let weight = weight::one(&question.what);
    admin.state.admit(&admin.node, Asker::Member, weight).map_err(Refusal::too_many)?;
    if admin.state.guards_reads() && !question.proven { Err(Refusal::no_token()) } else { Ok(()) }
}

async fn answer_here(admin: web::Data<Admin>, question: &Question) -> Answered {
    match read(admin, question).await {
        Ok(response) => Answered::Shown(body_of(response)),
        Err(refusal) => Answered::Refused(shown_error(&refusal)),
    }
}

fn body_of(response: HttpResponse) -> Value {
    let body = response.into_body().try_into_bytes().unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn shown_error(refusal: &Refusal) -> Value {
    body_of(refusal.error_response())["error"].take()
}

/// What a GET of the same name answers.
async fn read(admin: web::Data<Admin>, Question { what, query, .. }: &Question) -> Answer {
    match what.as_str() {
        "node" => node::node(admin).await,
        "session" => node::session(admin).await,
        "members" => node::members(admin).await,
        "kinds" => kinds::kinds(admin).await,
        "actors" => actors::list(admin, query_of(query)?).await,
        "moves" => shards::moves(admin).await,
        "datacenters" => peers::datacenters(admin).await,
        "peers" => peers::peers(admin).await,
        "lanes" => peers::lanes(admin).await,
        "dead-letters" => peers::dead_letters(admin).await,
        "messages" => messages::messages(admin, query_of(query)?).await,
        "config" => config::config(admin).await,
        _ => Err(Refusal::no_such_path()),
    }
}

fn query_of<T: serde::de::DeserializeOwned>(query: &str) -> Result<web::Query<T>, Refusal> {
    web::Query::from_query(query).map_err(|error| Refusal::invalid(format!("the query: {error}")))
}

/// The reads that say something about one node.
const CAN_BE_ASKED: [&str; 12] = [
    "node",
    "session",
    "members",
    "kinds",
    "actors",
    "moves",
    "datacenters",
    "peers",
    "lanes",
    "dead-letters",
    "messages",
    "config",
];

/// The number of the service by which members ask each other.
const SERVICE: u16 = 3;

/// How long a member has to answer: longer than its own arbiters have.
const DEADLINE: Millis = Millis(2_000);

/// How many members are asked at the same time.
const ASKED_AT_ONCE: usize = 64;
