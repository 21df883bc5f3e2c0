//! Certificates for development: an authority, and a certificate that all nodes of a machine can share.

use std::path::Path;

use archipelago_tls::{DevelopmentAuthority, TlsError};
use serde_json::json;

use crate::screen::Screen;
use crate::trouble::{Ended, Trouble, Verdict};

/// Makes them in a directory that has none.
pub(crate) fn init(screen: &mut Screen, dir: &Path, server_name: &str) -> Ended {
    for name in FILES {
        if dir.join(name).exists() {
            let message = format!(
                "there is a {} already, and nothing was written: take another directory",
                dir.join(name).display()
            );
            return Err(Trouble::Failed(message));
        }
    }
    // Checked before anything is written: the authority would be there without its node.
    let authority =
        DevelopmentAuthority::in_memory().and_then(|authority| authority.credentials(server_name).map(drop));
    authority.map_err(refused)?;
    DevelopmentAuthority::create(dir, server_name).map_err(refused)?;
    let files = DevelopmentAuthority::files(dir);
    if screen.is_for_programs() {
        let path = |path: &Path| path.display().to_string();
        screen.json(&json!({
            "ca": path(&files.ca), "certificate": path(&files.certificate), "key": path(&files.key),
            "server_name": server_name,
        }))?;
        return Ok(Verdict::Yes);
    }
    screen.line(&format!(
        "made an authority and a certificate in {}, for development only; on every node:",
        dir.display()
    ))?;
    let quoted = |path: &Path| json!(path.display().to_string()).to_string();
    for line in [
        String::new(),
        "[transport]".to_owned(),
        "kind = \"quic\"".to_owned(),
        format!("ca = {}", quoted(&files.ca)),
        format!("certificate = {}", quoted(&files.certificate)),
        format!("key = {}", quoted(&files.key)),
        format!("server_name = {}", json!(server_name)),
    ] {
        screen.line(&line)?;
    }
    Ok(Verdict::Yes)
}

fn refused(error: TlsError) -> Trouble {
    match error {
        TlsError::BadServerName { .. } => Trouble::Usage(error.to_string()),
        other => Trouble::Failed(other.to_string()),
    }
}

/// What is in the directory afterwards.
const FILES: [&str; 4] = ["ca.pem", "ca.key", "node.pem", "node.key"];
