//! The dashboard of the story, if it is wanted: the first node of the north, which lives to its end, serves it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use crate::node::Settings;
use crate::running::Running;
use crate::view::View;

/// What asks for it.
pub(crate) const OPTION: &str = "--dashboard";

/// Where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dashboard {
    at: SocketAddr,
}

impl Dashboard {
    /// A place for it, if the arguments ask for one: the usual port, or any other if that is taken.
    pub(crate) fn asked_for(arguments: &[String]) -> Result<Option<Self>, String> {
        if !arguments.iter().any(|argument| argument == OPTION) {
            return Ok(None);
        }
        if arguments.iter().any(|argument| argument == "--containers") {
            return Err(format!(
                "{OPTION} is not for containers: nobody outside reaches their loopback interfaces"
            ));
        }
        let free = [USUAL_PORT, 0].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        let free = free.into_iter().flatten().next().and_then(|listener| listener.local_addr().ok());
        let at = free.ok_or("there is no free port for the dashboard")?;
        Ok(Some(Self { at }))
    }

    /// What a node is told for it.
    pub(crate) fn settings(&self, node: &str) -> Settings {
        // So that there are round trips to be seen.
        let mut settings = vec![("datacenter.placement".to_owned(), "nearest".to_owned())];
        if node == SERVES {
            settings.push(("admin.serve".to_owned(), "true".to_owned()));
            settings.push(("admin.bind".to_owned(), self.at.to_string()));
        }
        settings
    }

    /// Where a browser finds it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/dashboard", self.at)
    }

    /// Keeps the nodes that are left until somebody presses ctrl-c, and gives them something to do meanwhile.
    pub(crate) async fn stay(&self, view: &View, nodes: &[&Running]) {
        view.line(&format!("what is left goes on, and {} shows it, until ctrl-c", self.url()));
        let mut ended = std::pin::pin!(actix_web::rt::signal::ctrl_c());
        for number in (0_u32..).map(|round| round % 10) {
            for node in nodes {
                // Whether it answers is for the page to show.
                drop(node.touch(&format!("north-{number}")).await);
            }
            if actix::clock::timeout(PAUSE, ended.as_mut()).await.is_ok() {
                break;
            }
        }
    }
}

/// The node that serves the page.
const SERVES: &str = "north-1";
const USUAL_PORT: u16 = 4780;
const PAUSE: Duration = Duration::from_millis(50);
