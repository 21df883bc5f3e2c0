//! One trace across nodes and datacenters, with OpenTelemetry.
//!
//! A customer orders at a shop, which asks the stock, which asks a carrier in another datacenter:
//!
//! ```text
//! customer ─> Shop on north-1 ─> Stock on north-2 ─> Carrier on south-1
//! ```
//!
//! Every message carries the span that it was sent in, and [`OpenTelemetry`] makes it the parent of the span in which it is handled.
//! Here the spans are kept in memory and printed, so that it runs without a collector; put the exporter of yours in their place.
//! It fails if they are not one trace with the right parents.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it talks to the person who runs it, and waits"
)]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archipelago::datacenter::{DataCenterId, DataCenterInfo, DataCenterMap, DataCenterState, MapEntry};
use archipelago::embedded::EmbeddedStore;
use archipelago::prelude::*;
use archipelago::{Builder, TraceBridge, TraceContext};
use opentelemetry::Context as OtelContext;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::{Instrument, Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

// ---- the bridge ----

/// Joins the spans of OpenTelemetry with the traces that messages carry.
struct OpenTelemetry;

impl TraceBridge for OpenTelemetry {
    fn current(&self) -> Option<TraceContext> {
        let context = Span::current().context();
        let span = context.span();
        let span = span.span_context();
        let trace_id = u128::from_be_bytes(span.trace_id().to_bytes());
        let span_id = u64::from_be_bytes(span.span_id().to_bytes());
        // Ids of zero mean that there is none.
        TraceContext::new(trace_id, span_id, span.trace_flags().to_u8()).ok()
    }

    fn adopt(&self, span: &Span, sender: TraceContext) {
        let trace_id = TraceId::from_bytes(sender.trace_id().to_be_bytes());
        let span_id = SpanId::from_bytes(sender.span_id().to_be_bytes());
        let flags = TraceFlags::new(sender.flags());
        let sender = SpanContext::new(trace_id, span_id, flags, true, TraceState::NONE);
        // A span that nobody records has no parent, and needs none.
        let _ = span.set_parent(OtelContext::new().with_remote_span_context(sender));
    }
}

// ---- the actors ----

/// Orders something and answers with the way it went.
#[remote(Result<String, String>)]
struct Order;

/// Takes it from the stock.
#[remote(Result<String, String>)]
struct Take;

/// Brings it to the customer.
#[remote(String)]
struct Ship;

#[derive(VirtualActor)]
#[virtual_actor(handles(Order))]
struct Shop {
    stock: ActorRef<Stock>,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Take))]
struct Stock {
    carrier: ActorRef<Carrier>,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Ship))]
struct Carrier;

impl Actor for Shop {
    type Context = Context<Self>;
}

impl Actor for Stock {
    type Context = Context<Self>;
}

impl Actor for Carrier {
    type Context = Context<Self>;
}

impl Handler<Order> for Shop {
    type Result = ResponseFuture<Result<String, String>>;

    fn handle(&mut self, _: Order, _: &mut Context<Self>) -> Self::Result {
        let stock = self.stock.clone();
        // What is awaited belongs to the call only inside of `in_call`.
        Box::pin(in_call(async move {
            let way = stock.send(Take).await.map_err(|error| error.to_string())??;
            Ok(format!("shop, {way}"))
        }))
    }
}

impl Handler<Take> for Stock {
    type Result = ResponseFuture<Result<String, String>>;

    fn handle(&mut self, _: Take, _: &mut Context<Self>) -> Self::Result {
        let carrier = self.carrier.clone();
        Box::pin(in_call(async move {
            let way = carrier.send(Ship).await.map_err(|error| error.to_string())?;
            Ok(format!("stock, {way}"))
        }))
    }
}

impl Handler<Ship> for Carrier {
    type Result = String;

    fn handle(&mut self, _: Ship, _: &mut Context<Self>) -> String {
        "carrier".to_owned()
    }
}

// ---- the nodes ----

fn node(datacenter: &str, name: &str, store: &Arc<EmbeddedStore>) -> Result<Builder, Box<dyn Error>> {
    let own = DataCenterId::new(datacenter)?;
    Ok(Node::builder()
        .set("node.name", name)
        .set("node.data_arbiters", "1")
        .set("datacenter.name", datacenter)
        .set("transport.kind", "tcp")
        // Plain TCP: fit for loopback, where nobody else can listen or pretend to be a node.
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .embedded_store(Arc::clone(store))
        .datacenters(DataCenterMap::new(Some(own), Vec::new()))
        .traces(OpenTelemetry))
}

fn entry(datacenter: &str, nodes: &[&Node]) -> Result<MapEntry, Box<dyn Error>> {
    let endpoints = nodes.iter().map(|node| node.address()).collect();
    let info = DataCenterInfo::new(datacenter, "", "")?.with_endpoints(endpoints)?;
    Ok(MapEntry { info, standing: DataCenterState::Active })
}

/// Two nodes in the north, one in the south; each hosts actors of one kind.
async fn nodes() -> Result<[Node; 3], Box<dyn Error>> {
    let (north, south) = (Arc::default(), Arc::default());
    let shops = node("north", "north-1", &north)?
        .actor_with(|_, node| Shop { stock: node.actor("tea") })
        .remote_actor::<Stock>()
        .remote_actor::<Carrier>()
        .start()
        .await?;
    let stocks = node("north", "north-2", &north)?
        .actor_with(|_, node| Stock { carrier: node.actor("ship-1") })
        .remote_actor::<Carrier>()
        .start()
        .await?;
    let carriers = node("south", "south-1", &south)?.actor::<Carrier>().start().await?;
    let entries = vec![entry("north", &[&shops, &stocks])?, entry("south", &[&carriers])?];
    for (node, own) in [(&shops, "north"), (&stocks, "north"), (&carriers, "south")] {
        node.show_datacenters(DataCenterMap::new(Some(DataCenterId::new(own)?), entries.clone()));
    }
    while shops.members().len() < 2 || stocks.members().len() < 2 {
        actix::clock::sleep(Duration::from_millis(10)).await;
    }
    // Others find it once it lives.
    carriers.actor::<Carrier>("ship-1").send(Ship).await?;
    Ok([shops, stocks, carriers])
}

// ---- the spans ----

/// Keeps the spans that have ended.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map_or_else(String::new, |attribute| attribute.value.to_string())
}

/// Prints the trace of the customer, and says what is wrong with it.
fn check(spans: &[SpanData]) -> Result<(), String> {
    let root = spans.iter().find(|span| span.name == "customer").ok_or("the customer has no span")?;
    let trace = root.span_context.trace_id();
    println!("trace {trace}");
    println!("customer");
    let (mut parent, mut nodes) = (root, Vec::new());
    for (depth, actor) in (1..).zip(["default::Shop/corner", "default::Stock/tea", "default::Carrier/ship-1"])
    {
        let here =
            |span: &&SpanData| span.span_context.trace_id() == trace && attribute(span, "actor") == actor;
        let span = spans.iter().find(here).ok_or_else(|| format!("{actor} has no span in the trace"))?;
        if span.parent_span_id != parent.span_context.span_id() {
            return Err(format!("the parent of {actor} is {}, not {}", span.parent_span_id, parent.name));
        }
        let node = attribute(span, "node");
        println!("{}└ {} {actor} on node {node}", "  ".repeat(depth), attribute(span, "message"));
        if nodes.contains(&node) {
            return Err(format!("two of them ran on node {node}"));
        }
        nodes.push(node);
        parent = span;
    }
    let in_trace = spans.iter().filter(|span| span.span_context.trace_id() == trace).count();
    if in_trace == 4 { Ok(()) } else { Err(format!("the trace has {in_trace} spans, not 4")) }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let kept = Kept::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("archipelago"));
    // The spans of handlers are of level DEBUG, and those of this program are its own.
    let wanted =
        Targets::new().with_target("archipelago_runtime", Level::DEBUG).with_target("traces", Level::INFO);
    tracing_subscriber::registry().with(wanted).with(layer).try_init()?;

    let nodes = nodes().await?;
    let shop = nodes[0].actor::<Shop>("corner");
    let way = async { shop.send(Order).await }.instrument(tracing::info_span!("customer")).await??;
    println!("it went by {way}");
    for node in &nodes {
        node.stop().await?;
    }
    provider.force_flush()?;
    let spans = kept.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(check(&spans)?)
}
