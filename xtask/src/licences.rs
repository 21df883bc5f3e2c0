//! Whether the licence of everything that archipelago depends on is one that its users can live with.
//!
//! `xtask/licences.txt` lists the licences that are allowed, each with the reason. A dependency's own words, in SPDX's form, are
//! worked out against that list: of `A OR B` one must be on it, of `A AND B` both. All features and all platforms count, also what only
//! tests and builds use. A licence may be allowed to one dependency alone: `LICENCE @ NAME`.

use std::collections::BTreeSet;

use crate::metadata::Package;

/// The licences that are allowed.
#[derive(Debug, Default)]
pub(crate) struct Allowed(BTreeSet<String>);

impl Allowed {
    /// The lines of the list: a licence, then why it is allowed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut all = BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (licence, why) = line.split_once("  ").unwrap_or((line, ""));
            if why.trim().is_empty() {
                return Err(format!("{LIST}: {licence} is allowed without a reason"));
            }
            if !all.insert(licence.to_owned()) {
                return Err(format!("{LIST}: {licence} is there twice"));
            }
        }
        Ok(Self(all))
    }

    /// How many licences were needed; or each dependency that is not allowed, and each line that nobody needs.
    pub(crate) fn judge(&self, packages: &[Package]) -> Result<String, Vec<String>> {
        let mut faults = Vec::new();
        let mut needed = BTreeSet::new();
        for package in packages.iter().filter(|package| !package.own) {
            let licence = package.licence.as_deref().unwrap_or_default();
            if !Expression::of(licence).is_some_and(|it| it.holds(&self.for_one(&package.name), &mut needed))
            {
                let licence = if licence.is_empty() { "no licence" } else { licence };
                faults.push(format!(
                    "{} {} has {licence}, which is not allowed",
                    package.name, package.version
                ));
            }
        }
        let is_idle = |line: &&String| !needed.contains(line.split(" @ ").next().unwrap_or(line));
        let idle = self.0.iter().filter(is_idle).map(|line| format!("{LIST}: nothing needs {line}"));
        faults.extend(idle);
        let others = packages.iter().filter(|package| !package.own).count();
        if faults.is_empty() {
            Ok(format!("{others} dependencies have licences that are allowed"))
        } else {
            Err(faults)
        }
    }
}

impl Allowed {
    /// What one dependency may have.
    fn for_one(&self, name: &str) -> BTreeSet<String> {
        let allowed = |line: &String| match line.split_once(" @ ") {
            Some((licence, only)) => (only == name).then(|| licence.to_owned()),
            None => Some(line.clone()),
        };
        self.0.iter().filter_map(allowed).collect()
    }
}

/// What a dependency says about its licence.
#[derive(Debug, PartialEq, Eq)]
enum Expression {
    Licence(String),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
}

impl Expression {
    /// None if it is no expression. A slash is the old way to write `OR`.
    fn of(text: &str) -> Option<Self> {
        let spaced = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = words.as_slice();
        let whole = Self::either(&mut rest)?;
        rest.is_empty().then_some(whole)
    }

    fn either(rest: &mut &[&str]) -> Option<Self> {
        let mut left = Self::both(rest)?;
        while let ["OR", more @ ..] = *rest {
            *rest = more;
            left = Self::Either(Box::new(left), Box::new(Self::both(rest)?));
        }
        Some(left)
    }

    fn both(rest: &mut &[&str]) -> Option<Self> {
        let mut left = Self::one(rest)?;
        while let ["AND", more @ ..] = *rest {
            *rest = more;
            left = Self::Both(Box::new(left), Box::new(Self::one(rest)?));
        }
        Some(left)
    }

    fn one(rest: &mut &[&str]) -> Option<Self> {
        match *rest {
            ["(", more @ ..] => {
                *rest = more;
                let inner = Self::either(rest)?;
                let [")", more @ ..] = *rest else { return None };
                *rest = more;
                Some(inner)
            }
            [licence, "WITH", exception, more @ ..] => {
                *rest = more;
                Some(Self::Licence(format!("{licence} WITH {exception}")))
            }
            [")" | "OR" | "AND" | "WITH", ..] | [] => None,
            [licence, more @ ..] => {
                *rest = more;
                Some(Self::Licence((*licence).to_owned()))
            }
        }
    }

    /// Whether it holds, noting down which lines of the list it has used.
    fn holds(&self, allowed: &BTreeSet<String>, needed: &mut BTreeSet<String>) -> bool {
        match self {
            Self::Licence(licence) => {
                let holds = allowed.contains(licence);
                needed.extend(holds.then(|| licence.clone()));
                holds
            }
            // Both sides are looked at: each may use a line.
            Self::Both(left, right) => left.holds(allowed, needed) & right.holds(allowed, needed),
            Self::Either(left, right) => left.holds(allowed, needed) | right.holds(allowed, needed),
        }
    }
}

/// The list, below the root.
pub(crate) const LIST: &str = "xtask/licences.txt";

#[cfg(test)]
mod tests {
    use super::*;

    fn has(licence: Option<&str>) -> Package {
        Package { name: "dep".to_owned(), licence: licence.map(str::to_owned), ..Package::default() }
    }

    fn judge(licence: Option<&str>) -> Result<String, Vec<String>> {
        let allowed = Allowed::parse("# why\nMIT  short\nISC  shorter\n").unwrap();
        allowed.judge(&[has(Some("MIT OR ISC")), has(licence)])
    }

    #[test]
    fn one_of_several_licences_is_enough_and_all_of_several_are_needed() {
        for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC", "MIT AND (ISC)"] {
            assert!(judge(Some(good)).is_ok(), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND GPL-3.0",
            "MIT WITH X",
            "",
            "MIT OR",
            "(MIT",
            "MIT ISC",
        ] {
            assert!(judge(Some(bad)).is_err(), "{bad}");
        }
        assert!(judge(None).unwrap_err()[0].contains("no licence"));
    }

    #[test]
    fn a_line_that_nobody_needs_or_that_has_no_reason_is_a_fault() {
        let allowed = Allowed::parse("MIT  short\nISC  shorter\n").unwrap();
        assert!(allowed.judge(&[has(Some("MIT"))]).unwrap_err()[0].contains("nothing needs ISC"));
        assert!(Allowed::parse("MIT\n").unwrap_err().contains("without a reason"));
        assert!(Allowed::parse("MIT  a\nMIT  b\n").unwrap_err().contains("twice"));
    }

    #[test]
    fn what_is_allowed_to_one_is_allowed_to_no_other() {
        let allowed = Allowed::parse("MIT  short\nMPL-2.0 @ dep  alone\n").unwrap();
        let other = Package { name: "other".to_owned(), ..has(Some("MPL-2.0")) };
        assert!(allowed.judge(&[has(Some("MPL-2.0")), has(Some("MIT"))]).is_ok());
        assert!(allowed.judge(&[has(Some("MPL-2.0")), has(Some("MIT")), other]).is_err());
        assert!(allowed.judge(&[has(Some("MIT"))]).unwrap_err()[0].contains("nothing needs MPL-2.0 @ dep"));
    }

    #[test]
    fn our_own_list_can_be_read() {
        assert!(Allowed::parse(include_str!("../licences.txt")).unwrap().0.contains("MIT"));
    }
}
