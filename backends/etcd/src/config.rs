//! Settings of the etcd backend.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// Settings of an [`EtcdStore`](crate::EtcdStore).
///
/// Secrets are not in here, only the files that hold them, so it can be logged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EtcdConfig {
    /// The members' client addresses, all `http://` or all `https://`. The first that answers is used until it fails.
    pub endpoints: Vec<String>,
    /// What all keys begin with. Clusters that share an etcd differ here.
    pub prefix: String,
    /// How long the start waits for an etcd that answers.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long one request may take, with all members that are tried for it.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// How long a watch may be silent before the server is asked whether it still is there.
    #[serde(with = "humantime_serde")]
    pub watch_idle: Duration,
    /// The user, where etcd asks for one.
    pub user: Option<String>,
    /// The file that holds the user's password; a line end after it does not count.
    pub password_file: Option<PathBuf>,
    /// What `https://` needs.
    pub tls: Option<EtcdTls>,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".into()],
            prefix: "/archipelago".into(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            watch_idle: Duration::from_secs(5),
            user: None,
            password_file: None,
            tls: None,
        }
    }
}

/// How etcd proves itself to us, and we to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdTls {
    /// The certificates that etcd's must be signed by, as PEM.
    pub ca_file: PathBuf,
    /// Our own certificate, where etcd asks for one, as PEM.
    #[serde(default)]
    pub certificate_file: Option<PathBuf>,
    /// Its private key, as PEM.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// The name in etcd's certificate, if it is not the one in the address.
    #[serde(default)]
    pub server_name: Option<String>,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdConfigError {
    /// The setting makes no sense, or not together with another.
    #[error("etcd.{setting}: {problem}")]
    Invalid {
        /// Which one.
        setting: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The file that it names cannot be read.
    #[error("etcd.{setting}: cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which one.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The settings with the files read.
pub(crate) struct Checked {
    pub(crate) user: Option<(String, String)>,
    pub(crate) tls: Option<TlsText>,
}

pub(crate) struct TlsText {
    pub(crate) ca: Vec<u8>,
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) server_name: Option<String>,
}

impl EtcdConfig {
    /// Checks the settings against each other and reads the files that they name.
    pub(crate) fn check(&self) -> Result<Checked, EtcdConfigError> {
        self.check_endpoints()?;
        if self.prefix.trim_matches('/').is_empty() || self.prefix.chars().any(char::is_control) {
            return Err(invalid("prefix", "must have letters in it, and no control characters"));
        }
        for (setting, length) in [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("watch_idle", self.watch_idle),
        ] {
            if length < SHORTEST {
                return Err(invalid(setting, "must be at least 10ms"));
            }
        }
        Ok(Checked { user: self.credentials()?, tls: self.tls.as_ref().map(EtcdTls::read).transpose()? })
    }

    fn check_endpoints(&self) -> Result<(), EtcdConfigError> {
        if self.endpoints.is_empty() {
            return Err(invalid("endpoints", "names no member"));
        }
        let scheme = if self.tls.is_some() { "https://" } else { "http://" };
        match self.endpoints.iter().find(|endpoint| !endpoint.starts_with(scheme)) {
            Some(endpoint) if endpoint.starts_with("https://") => {
                Err(invalid("tls", "must name a ca_file, because an endpoint is https"))
            }
            Some(endpoint) => Err(invalid(
                "endpoints",
                format!("{endpoint:?} must begin with {scheme}, as tls is set or not"),
            )),
            None => Ok(()),
        }
    }

    fn credentials(&self) -> Result<Option<(String, String)>, EtcdConfigError> {
        match (&self.user, &self.password_file) {
            (None, None) => Ok(None),
            (Some(user), Some(path)) => {
                let password = read("password_file", path)?;
                let password = String::from_utf8(password)
                    .map_err(|_| invalid("password_file", "holds something that is no text"))?;
                Ok(Some((user.clone(), password.trim_end_matches(['\r', '\n']).to_owned())))
            }
            (Some(_), None) => Err(invalid("password_file", "is missing, though a user is named")),
            (None, Some(_)) => Err(invalid("user", "is missing, though a password_file is named")),
        }
    }
}

impl EtcdTls {
    fn read(&self) -> Result<TlsText, EtcdConfigError> {
        let identity = match (&self.certificate_file, &self.key_file) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                let certificate = read_pem("tls.certificate_file", certificate, "CERTIFICATE")?;
                Some((certificate, read_pem("tls.key_file", key, "PRIVATE KEY")?))
            }
            (Some(_), None) => {
                return Err(invalid("tls.key_file", "is missing, though a certificate is named"));
            }
            (None, Some(_)) => {
                return Err(invalid("tls.certificate_file", "is missing, though a key is named"));
            }
        };
        let ca = read_pem("tls.ca_file", &self.ca_file, "CERTIFICATE")?;
        Ok(TlsText { ca, identity, server_name: self.server_name.clone() })
    }
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, EtcdConfigError> {
    let unreadable = |source| EtcdConfigError::Unreadable { setting, path: path.to_owned(), source };
    std::fs::read(path).map_err(unreadable)
}

/// TLS would take a file without any certificate, and then trust nobody.
fn read_pem(setting: &'static str, path: &Path, what: &str) -> Result<Vec<u8>, EtcdConfigError> {
    let pem = read(setting, path)?;
    let text = String::from_utf8_lossy(&pem);
    let begins = text.lines().any(|line| line.starts_with("-----BEGIN ") && line.contains(what));
    if begins { Ok(pem) } else { Err(invalid(setting, format!("{} holds no PEM {what}", path.display()))) }
}

pub(crate) fn invalid(setting: &'static str, problem: impl Into<String>) -> EtcdConfigError {
    EtcdConfigError::Invalid { setting, problem: problem.into() }
}

const SHORTEST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<EtcdConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn refused(config: EtcdConfig) -> String {
        config.check().err().expect("is refused").to_string()
    }

    #[test]
    fn what_is_not_set_is_the_default() {
        let config = parsed(r#"{"request_timeout": "500ms"}"#).unwrap();
        let request_timeout = Duration::from_millis(500);
        assert_eq!(config, EtcdConfig { request_timeout, ..EtcdConfig::default() });
        assert!(config.check().is_ok());
    }

    #[test]
    fn mistyped_settings_are_refused() {
        assert!(parsed(r#"{"endpoint": "http://127.0.0.1:2379"}"#).unwrap_err().contains("endpoint"));
        let tls = r#"{"tls": {"ca_file": "ca.pem", "cert_file": "me.pem"}}"#;
        assert!(parsed(tls).unwrap_err().contains("cert_file"));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_by_name() {
        let https = EtcdConfig { endpoints: vec!["https://a:2379".into()], ..EtcdConfig::default() };
        assert!(refused(https).starts_with("etcd.tls"));
        let bare = EtcdConfig { endpoints: vec!["a:2379".into()], ..EtcdConfig::default() };
        assert!(refused(bare).contains("\"a:2379\" must begin with http://"));
        let nameless = EtcdConfig { password_file: Some("p".into()), ..EtcdConfig::default() };
        assert!(refused(nameless).starts_with("etcd.user"));
        let nowhere = EtcdConfig { endpoints: Vec::new(), ..EtcdConfig::default() };
        assert!(refused(nowhere).starts_with("etcd.endpoints"));
        let everywhere = EtcdConfig { prefix: "/".into(), ..EtcdConfig::default() };
        assert!(refused(everywhere).starts_with("etcd.prefix"));
    }

    #[test]
    fn a_missing_secret_names_setting_and_file() {
        let config = EtcdConfig {
            user: Some("dc".into()),
            password_file: Some("/nowhere/password".into()),
            ..EtcdConfig::default()
        };
        let said = refused(config);
        assert!(said.starts_with("etcd.password_file: cannot read /nowhere/password: "), "{said}");
    }
}
