//! What `cargo metadata` says: the packages, their licences and what they depend on.
//!
//! Only what the checks of a release look at is kept. [`crate::package`] judges our own packages, [`crate::licences`] all others.

use serde_json::Value;

use crate::workspace::Workspace;

/// A package of the workspace, or one that it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Whether it is of this workspace.
    pub(crate) own: bool,
    pub(crate) published: bool,
    pub(crate) licence: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) readme: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) rust_version: Option<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) features: Vec<String>,
    /// What docs.rs is told to build it with.
    pub(crate) docs_features: Vec<String>,
    /// Those of this workspace.
    pub(crate) needs: Vec<Need>,
}

/// One package of the workspace that another one depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) name: String,
    pub(crate) for_tests: bool,
    /// Whether a version stands beside the path; without one cargo leaves it out of what is published.
    pub(crate) versioned: bool,
}

/// All packages, with every feature, for every platform.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<Package>, String> {
    let mut command = workspace.cargo_command(&["metadata", "--format-version", "1", "--all-features"]);
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    read(&output.stdout)
}

fn read(json: &[u8]) -> Result<Vec<Package>, String> {
    let all: Value = serde_json::from_slice(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = all["packages"].as_array().ok_or("cargo metadata names no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let features = value["features"].as_object().map(|map| map.keys().cloned().collect());
    let needs = value["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Package {
        name: text("name").unwrap_or_default(),
        version: text("version").unwrap_or_default(),
        own: value["source"].is_null(),
        published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        licence: text("license"),
        description: text("description"),
        readme: text("readme"),
        repository: text("repository"),
        rust_version: text("rust_version"),
        keywords: texts(&value["keywords"]),
        categories: texts(&value["categories"]),
        features: features.unwrap_or_default(),
        docs_features: texts(&value["metadata"]["docs"]["rs"]["features"]),
        needs: needs.iter().filter(|need| need["path"].is_string()).map(need).collect(),
    }
}

fn need(value: &Value) -> Need {
    Need {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        for_tests: value["kind"].as_str() == Some("dev"),
        versioned: value["req"].as_str().is_some_and(|version| version != "*"),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().map(Vec::as_slice).unwrap_or_default();
    texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_is_read() {
        let json = br#"{"packages": [
            {"name": "ours", "version": "0.1.0", "source": null, "publish": null, "license": "MIT",
             "keywords": ["a"], "features": {"x": []}, "metadata": {"docs": {"rs": {"features": ["x"]}}},
             "dependencies": [{"name": "other", "path": "/o", "kind": "dev", "req": "*"},
                              {"name": "serde", "kind": null, "req": "^1"}]},
            {"name": "private", "source": null, "publish": []},
            {"name": "serde", "source": "registry", "publish": null, "license": "MIT OR Apache-2.0"}]}"#;
        let packages = read(json).unwrap();
        let [ours, private, serde] = packages.as_slice() else { panic!("{packages:?}") };
        assert!(ours.own && ours.published && !private.published && !serde.own);
        assert_eq!(ours.needs, [Need { name: "other".to_owned(), for_tests: true, versioned: false }]);
        assert_eq!((ours.docs_features.len(), serde.licence.as_deref()), (1, Some("MIT OR Apache-2.0")));
        assert!(read(b"{}").is_err());
    }
}
