//! How people write an actor: `Kind/key`, or the whole id that logs and `actor` show, `namespace::Kind/key`.

use archipelago::identity::ActorId;

use crate::api::encoded;
use crate::trouble::Trouble;

/// The path of an actor in the API.
///
/// # Errors
///
/// It is no actor.
pub(crate) fn path(text: &str) -> Result<String, Trouble> {
    let wrong = |why: &str| Trouble::Usage(format!("{text:?} is no actor: {why}"));
    let (kind, key) = text.split_once('/').ok_or_else(|| wrong("write it as Kind/key"))?;
    // In a whole id, and only there, the key is percent-encoded.
    let (kind, key) = if kind.contains("::") {
        let id: ActorId =
            text.parse().map_err(|error: archipelago::identity::ActorIdError| wrong(&error.to_string()))?;
        (id.kind().to_string(), id.key().as_str().to_owned())
    } else {
        (kind.to_owned(), key.to_owned())
    };
    if kind.is_empty() || key.is_empty() {
        return Err(wrong("neither the kind nor the key is empty"));
    }
    Ok(format!("/v1/actors/{}/{}", encoded(&kind), encoded(&key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_named_by_kind_and_key_or_by_its_whole_id() {
        assert_eq!(path("Guest/ada").unwrap(), "/v1/actors/Guest/ada");
        assert_eq!(path("Guest/a/b::c").unwrap(), "/v1/actors/Guest/a%2Fb%3A%3Ac");
        assert_eq!(path("default::Guest/a%2Fb").unwrap(), "/v1/actors/Guest/a%2Fb");
        assert_eq!(path("Guest/../../node").unwrap(), "/v1/actors/Guest/..%2F..%2Fnode");
        for wrong in ["Guest", "", "/a", "Guest/", "a::/b"] {
            assert!(matches!(path(wrong), Err(Trouble::Usage(_))), "{wrong}");
        }
    }
}
