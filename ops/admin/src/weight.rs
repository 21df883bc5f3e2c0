//! What a request weighs against the rate: 1 for what this node has at hand.

/// The weight of a request for `path`, below `/v1`, where so many members may be asked.
pub(crate) fn of(path: &str, members: usize) -> u64 {
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix("v1/").unwrap_or(path);
    match path.strip_prefix("cluster/") {
        Some(what) => one(what).saturating_mul(u64::try_from(members).unwrap_or(u64::MAX).max(1)),
        None => one(path),
    }
}

/// The weight of a question for the one who answers it.
pub(crate) fn one(path: &str) -> u64 {
    match path.split('/').next().unwrap_or_default() {
        // Actors are looked for on the arbiters that run them.
        "actors" => 4,
        // The store is asked for all owners of a kind.
        "shards" => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_a_store_or_many_members_weighs_more() {
        assert_eq!(of("/node", 9), 1);
        assert_eq!(of("/v1/shards", 9), 8);
        assert_eq!(of("/actors", 9), 4);
        assert_eq!(of("/actors/Account/alice", 9), 4);
        assert_eq!(of("/cluster/lanes", 9), 9);
        assert_eq!(of("/cluster/actors", 9), 36);
        assert_eq!(of("/cluster/actors", 0), 4);
    }
}
