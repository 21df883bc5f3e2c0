//! Whether the node can prove itself, for how much longer, and who else could with its key.

use std::path::Path;

use archipelago::config::{Settings, TransportKind};
use archipelago_tls::{CertificateTimes, Credentials, DevelopmentAuthority, TlsError, TlsFiles};

use super::{Finding, token};
use crate::host;

/// Looks at the three files, if there are any.
pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let own = &settings.transport;
    if matches!(own.kind, TransportKind::None | TransportKind::Own) {
        return vec![Finding::skip(CHECK, "none are needed: transport.kind is what it is")];
    }
    if own.insecure {
        let advice = "set transport.insecure to false unless nobody else can reach this network";
        return vec![Finding::warn(CHECK, "none are used: whoever reaches the node can be any node", advice)];
    }
    match (&own.ca, &own.certificate, &own.key, &own.development) {
        (Some(ca), Some(certificate), Some(key), None) => {
            let files = TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() };
            of_files(&files, &own.server_name)
        }
        (None, None, None, Some(directory)) => of_development(directory, &own.server_name),
        // The configuration says what is missing.
        _ => vec![Finding::skip(CHECK, "not looked at: they are not all named")],
    }
}

fn of_development(directory: &Path, name: &str) -> Vec<Finding> {
    let advice = "use transport.ca, transport.certificate and transport.key in production";
    let mut found =
        vec![Finding::warn(CHECK, format!("those in {} are for development", directory.display()), advice)];
    let files = DevelopmentAuthority::files(directory);
    if files.certificate.exists() {
        found.extend(of_files(&files, name));
        found.extend(token::exposed(CHECK, "the key of the authority", &directory.join("ca.key")));
    } else if let Some(error) = not_writable(directory) {
        let words =
            format!("they would be made in {}, which cannot be written: {error}", directory.display());
        found.push(Finding::fail(
            CHECK,
            words,
            "let the user of the node write the directory, or name another",
        ));
    }
    found
}

fn of_files(files: &TlsFiles, name: &str) -> Vec<Finding> {
    let mut found = match Credentials::from_files(files, name) {
        Ok(_) => times(files),
        Err(error) => vec![Finding::fail(CHECK, error.to_string(), advice(&error))],
    };
    found.extend(token::exposed(CHECK, "the private key", &files.key));
    found
}

/// When the first of the certificates ends.
fn times(files: &TlsFiles) -> Vec<Finding> {
    let ends = [&files.certificate, &files.ca].map(|path| {
        let text = std::fs::read(path).unwrap_or_default();
        let ends = CertificateTimes::in_pem(&text).into_iter().flatten().map(|times| times.not_after).min();
        ends.map(|end| (end, path))
    });
    let Some((end, path)) = ends.into_iter().flatten().min() else {
        return vec![Finding::skip(CHECK, "they can be used; when they end could not be read")];
    };
    let days = (end - host::unix_seconds()).div_euclid(SECONDS_OF_A_DAY);
    if days < 0 {
        let words = format!("{} has expired", path.display());
        return vec![Finding::fail(CHECK, words, "issue a new one")];
    }
    if days < SOON {
        let words = format!("{} expires in {days} days", path.display());
        return vec![Finding::warn(CHECK, words, "issue a new one; a node reads it when it starts")];
    }
    vec![Finding::ok(CHECK, format!("chain and key are in order, the first expires in {days} days"))]
}

const fn advice(error: &TlsError) -> &'static str {
    match error {
        TlsError::Unreadable { .. } => "correct the path, or let the user of the node read the file",
        TlsError::NoCertificate { .. } | TlsError::BadKey { .. } => "put the right PEM file there",
        TlsError::KeyMismatch { .. } => "name the key that the certificate was issued for",
        TlsError::Expired { .. } => "issue a new certificate",
        TlsError::NotYetValid { .. } => "set the clock of this machine, or wait",
        TlsError::WouldBeRefused { .. } => {
            "issue a certificate that transport.ca has signed, for transport.server_name, for client and server"
        }
        TlsError::BadServerName { .. } => "set transport.server_name to a DNS name",
        _ => "see what the error says",
    }
}

/// Why nothing could be made in a directory, or in the one that it would be made in.
fn not_writable(directory: &Path) -> Option<String> {
    let mut there = directory;
    while !there.exists() {
        there = there.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    }
    match std::fs::metadata(there) {
        Ok(found) if !found.is_dir() => Some(format!("{} is no directory", there.display())),
        Ok(found) if found.permissions().readonly() => Some(format!("{} is read-only", there.display())),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

const CHECK: &str = "certificates";
const SECONDS_OF_A_DAY: i64 = 86_400;

/// In how many days a certificate ends that should be renewed now.
const SOON: i64 = 30;
