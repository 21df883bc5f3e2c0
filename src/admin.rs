//! Gives a node the admin API that its configuration asks for; nothing without the cargo feature `admin`.

#[cfg(feature = "admin")]
use archipelago_admin::{AdminSettings, Listen, Neighbours, Token, serve, show_configuration};
use archipelago_runtime::{Node, NodeBuilder};

use crate::Error;
#[cfg(feature = "admin")]
use crate::config::Fault;
use crate::config::{ConfigError, Origins, Settings};

/// The admin API of a node in the making.
#[derive(Default)]
pub(crate) struct AdminPart {
    #[cfg(feature = "admin")]
    neighbours: Neighbours,
}

impl AdminPart {
    /// Before the node starts: what it counts must be counted from the beginning.
    ///
    /// # Errors
    ///
    /// The process is to count for Prometheus, and cannot.
    pub(crate) fn before(settings: &Settings, origins: &Origins) -> Result<Self, ConfigError> {
        #[cfg(feature = "prometheus")]
        if settings.admin.metrics {
            let refused =
                |error: archipelago_admin::MetricsError| Fault::Refused { message: error.to_string() };
            archipelago_admin::install_metrics()
                .map_err(|error| origins.refuse(&["admin.metrics"], refused(error)))?;
        }
        #[cfg(not(feature = "prometheus"))]
        let _ = (settings, origins);
        Ok(Self::default())
    }

    /// Lets the node answer for its cluster.
    pub(crate) fn take_part(&self, builder: NodeBuilder) -> NodeBuilder {
        #[cfg(feature = "admin")]
        let builder = self.neighbours.take_part(builder);
        builder
    }

    /// Begins, once the node has started. A node whose API cannot be had does not run.
    #[cfg(feature = "admin")]
    pub(crate) async fn begin(
        self,
        node: Node,
        settings: &Settings,
        origins: &Origins,
    ) -> Result<Node, Error> {
        if let Err(error) = install(&node, settings, origins) {
            // It has only just begun: whatever there is to say is said by the first error.
            drop(node.stop().await);
            return Err(error.into());
        }
        self.neighbours.belong_to(&node);
        Ok(node)
    }

    /// There is nothing to begin.
    #[cfg(not(feature = "admin"))]
    pub(crate) async fn begin(self, node: Node, _: &Settings, _: &Origins) -> Result<Node, Error> {
        Ok(node)
    }
}

/// Why the token of the API cannot be read, if it cannot.
pub(crate) fn token_fault(settings: &Settings) -> Option<String> {
    let file = settings.admin.token_file.as_deref()?;
    #[cfg(feature = "admin")]
    let fault = Token::read(file).err().map(|error| match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    });
    // Whatever it is, this build has no use for it.
    #[cfg(not(feature = "admin"))]
    let fault = std::fs::read(file).err().map(|error| format!("cannot read {}: {error}", file.display()));
    fault
}

/// Tells the API what the configuration says, and serves it on a port of its own if that is wanted.
#[cfg(feature = "admin")]
fn install(node: &Node, settings: &Settings, origins: &Origins) -> Result<(), ConfigError> {
    let refused = |key: &str, message: String| origins.refuse(&[key], Fault::Refused { message });
    let own = &settings.admin;
    let mut admin = AdminSettings::default();
    let token = own.token_file.as_deref().map(Token::read).transpose();
    admin.token = token.map_err(|error| refused("admin.token_file", error.to_string()))?;
    admin.guard_reads = own.guard_reads;
    admin.rate = own.rate;
    admin.event_streams = own.event_streams;
    archipelago_admin::install(node, admin);
    show_configuration(node, settings).map_err(|error| refused("admin.serve", error.to_string()))?;
    if own.serve {
        if own.expose && !own.guard_reads {
            tracing::warn!(bind = %own.bind, "whoever reaches the admin API sees what it shows: admin.guard_reads is off");
        }
        let listen = if own.expose { Ok(Listen::exposed(own.bind)) } else { Listen::on_loopback(own.bind) };
        let listen = listen.map_err(|error| refused("admin.bind", error.to_string()))?;
        serve(node, listen).map_err(|error| refused("admin.bind", format!("{error}: {}", error.source)))?;
    }
    Ok(())
}
