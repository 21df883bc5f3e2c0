//! The names of nodes: people know them better than ids, which are new for every session.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::Api;
use crate::cells;
use crate::trouble::Trouble;

/// The names of the members by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Asks for them.
    pub(crate) fn read(api: &Api) -> Result<Self, Trouble> {
        let answer = api.get("/v1/members", &[])?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let named = cells::items(&answer["members"]).iter();
        Ok(Self(named.filter_map(|member| Some((text(&member["id"])?, text(&member["name"])?))).collect()))
    }

    /// How a node is shown: its id, and its name if it has one.
    pub(crate) fn of(&self, id: &Value) -> String {
        let id = cells::text(id);
        match self.0.get(&id).filter(|name| !name.is_empty()) {
            Some(name) => format!("{id} ({name})"),
            None => id,
        }
    }

    /// The id of the node that is meant by an id or a name.
    ///
    /// # Errors
    ///
    /// Several have the name, or none.
    pub(crate) fn id_of(&self, wanted: &str) -> Result<String, Trouble> {
        let is_id = wanted.len() == 16 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id {
            return Ok(wanted.to_lowercase());
        }
        let mut found = self.0.iter().filter(|(_, name)| *name == wanted).map(|(id, _)| id.clone());
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                Err(Trouble::Failed(format!("several members have the name {wanted:?}: use an id")))
            }
            _ => Err(Trouble::Failed(format!("no member has the name {wanted:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_meant_by_its_id_or_by_a_name_that_it_alone_has() {
        let pairs =
            [("00000000000000aa", "north"), ("00000000000000bb", "south"), ("00000000000000cc", "south")];
        let names = Names(pairs.map(|(id, name)| (id.to_owned(), name.to_owned())).into());
        assert_eq!(names.id_of("north").unwrap(), "00000000000000aa");
        assert_eq!(names.id_of("00000000000000FF").unwrap(), "00000000000000ff");
        assert!(names.id_of("south").is_err() && names.id_of("west").is_err());
        assert_eq!(names.of(&Value::from("00000000000000aa")), "00000000000000aa (north)");
        assert_eq!(names.of(&Value::Null), "-");
    }
}
