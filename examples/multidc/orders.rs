//! How a node in another process is told what to do: one line of JSON per order, and one per answer.

use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use archipelago::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::node::{Placed, Report, Settings, Touched, Watched, builder};

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Touch(String),
    Place(String, String),
    Report,
    Drain,
    Stop,
}

/// The line to a node, at the end of whoever tells the story. A node whose line is dropped dies at once.
pub(crate) struct Line(RefCell<Ends>);

struct Ends {
    orders: Box<dyn Write>,
    answers: Box<dyn BufRead>,
}

impl Line {
    /// The line to a node that is starting. Returns when it serves.
    pub(crate) fn to(
        orders: impl Write + 'static,
        answers: impl BufRead + 'static,
    ) -> Result<Self, BoxError> {
        let mut ends = Ends { orders: Box::new(orders), answers: Box::new(answers) };
        let started: Result<(), String> = ends.hear()?;
        started?;
        Ok(Self(RefCell::new(ends)))
    }

    pub(crate) fn touch(&self, key: &str) -> Result<Touched, BoxError> {
        self.ask(&Order::Touch(key.to_owned()))
    }

    pub(crate) fn place(&self, target: &str, key: &str) -> Result<Placed, BoxError> {
        self.ask(&Order::Place(target.to_owned(), key.to_owned()))
    }

    pub(crate) fn report(&self) -> Result<Report, BoxError> {
        self.ask(&Order::Report)
    }

    pub(crate) fn drain(&self) -> Result<Result<(), String>, BoxError> {
        self.ask(&Order::Drain)
    }

    /// Lets the node leave in good order.
    pub(crate) fn stop(&self) -> Result<(), BoxError> {
        let stopped: Result<(), String> = self.ask(&Order::Stop)?;
        Ok(stopped?)
    }

    fn ask<T: DeserializeOwned>(&self, order: &Order) -> Result<T, BoxError> {
        let mut ends = self.0.borrow_mut();
        tell(&mut ends.orders, order)?;
        ends.hear()
    }
}

impl Ends {
    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, BoxError> {
        let mut text = String::new();
        if self.answers.read_line(&mut text)? == 0 {
            return Err("the process of a node has ended".into());
        }
        Ok(serde_json::from_str(&text)?)
    }
}

/// Writes one line.
pub(crate) fn tell(to: &mut dyn Write, what: &impl Serialize) -> std::io::Result<()> {
    writeln!(to, "{}", serde_json::to_string(what)?)?;
    to.flush()
}

/// What the process of a node does: it is the node of these settings, and does as it is told.
pub(crate) async fn obey(
    settings: &Settings,
    orders: impl BufRead + Send + 'static,
    answers: &mut dyn Write,
) -> ExitCode {
    let node = match builder(settings).set("node.data_arbiters", "1").start().await {
        Ok(node) => Watched::new(node),
        Err(error) => {
            answer(answers, &Err::<(), _>(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    answer(answers, &Ok::<(), String>(()));
    let mut orders = received(orders);
    while let Some(order) = orders.recv().await {
        match order {
            Order::Touch(key) => answer(answers, &node.touch(&key).await),
            Order::Place(target, key) => answer(answers, &node.place(&target, &key).await),
            Order::Report => answer(answers, &node.report()),
            Order::Drain => {
                answer(answers, &node.node.drain_datacenter().await.map_err(|error| error.to_string()));
            }
            Order::Stop => {
                answer(answers, &node.node.stop().await.map_err(|error| error.to_string()));
                return ExitCode::SUCCESS;
            }
        }
    }
    // Whoever told the story is gone: so is the node, at once.
    std::process::exit(1)
}

fn received(orders: impl BufRead + Send + 'static) -> tokio::sync::mpsc::Receiver<Order> {
    let (tell, told) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = orders.lines().map_while(Result::ok);
        for order in lines.map_while(|line| serde_json::from_str(&line).ok()) {
            if tell.blocking_send(order).is_err() {
                return;
            }
        }
    });
    told
}

fn answer(to: &mut dyn Write, what: &impl Serialize) {
    // If nobody listens, the next order does not come either.
    drop(tell(to, what));
}
