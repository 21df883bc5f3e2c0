//! Gives a node the admin API that its configuration asks for.

use archipelago_admin::{AdminSettings, Listen, Token, install as install_in, serve, show_configuration};
use archipelago_runtime::Node;

use crate::config::{ConfigError, Fault, Origins, Settings};

/// Tells the API of a node what the configuration says, and serves it on a port of its own if that is wanted.
///
/// # Errors
///
/// The token cannot be read, or the address cannot be listened at.
pub(crate) fn install(node: &Node, settings: &Settings, origins: &Origins) -> Result<(), ConfigError> {
    let refused = |key: &str, message: String| origins.refuse(&[key], Fault::Refused { message });
    let own = &settings.admin;
    let mut admin = AdminSettings::default();
    let token = own.token_file.as_deref().map(Token::read).transpose();
    admin.token = token.map_err(|error| refused("admin.token_file", error.to_string()))?;
    admin.guard_reads = own.guard_reads;
    admin.rate = own.rate;
    admin.event_streams = own.event_streams;
    install_in(node, admin);
    show_configuration(node, settings).map_err(|error| refused("admin.serve", error.to_string()))?;
    if own.serve {
        let listen = if own.expose { Ok(Listen::exposed(own.bind)) } else { Listen::on_loopback(own.bind) };
        let listen = listen.map_err(|error| refused("admin.bind", error.to_string()))?;
        serve(node, listen).map_err(|error| refused("admin.bind", format!("{error}: {}", error.source)))?;
    }
    Ok(())
}
