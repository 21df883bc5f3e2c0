//! Whether the book holds together: every page stands in its summary, every link leads somewhere, every picture can be read.
//!
//! Looked at are the pages in `docs/` and the project's own pages beside them. A link is right if its file is there and, where it
//! names a heading, that heading is in the file. What leads out of the project is not followed. A picture must be well-formed, have a
//! title and a view box, so that it is read out and scales, and be shown by some page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::step::Outcome;
use crate::workspace::Workspace;

/// All of it, as a step of the test command.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    match Book::read(workspace.root()).map(|book| book.judge()) {
        Ok(Ok(headline)) => Outcome::Ok(vec![headline]),
        Ok(Err(faults)) => Outcome::failed(faults.join("; ")),
        Err(why) => Outcome::failed(why),
    }
}

/// The texts, each by its path below the root, and the paths of everything that a link may lead to.
#[derive(Debug, Default)]
struct Book {
    pages: BTreeMap<PathBuf, String>,
    pictures: BTreeMap<PathBuf, String>,
    /// What links led to that is no page and no picture, and is there.
    others: BTreeSet<PathBuf>,
}

impl Book {
    fn read(root: &Path) -> Result<Self, String> {
        let mut book = Self::default();
        let mut take = |path: PathBuf| {
            let text = std::fs::read_to_string(root.join(&path));
            let text = text.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let is_page = path.extension().is_some_and(|ending| ending == "md");
            (if is_page { &mut book.pages } else { &mut book.pictures }).insert(path, text);
            Ok::<(), String>(())
        };
        BESIDE.iter().try_for_each(|path| take(path.into()))?;
        for (folder, ending) in [("docs", "md"), ("docs/img", "svg")] {
            for path in listed(root, folder, ending)? {
                take(path)?;
            }
        }
        let targets: Vec<PathBuf> = book
            .pages
            .iter()
            .flat_map(|(page, text)| links(text).into_iter().map(|link| target(page, &link).0))
            .collect();
        book.others = targets.into_iter().filter(|path| root.join(path).exists()).collect();
        Ok(book)
    }

    /// What there is, or what is wrong with it.
    fn judge(&self) -> Result<String, Vec<String>> {
        let faults: Vec<String> =
            self.left_out().into_iter().chain(self.lost_links()).chain(self.bad_pictures()).collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let count: usize = self.pages.values().map(|text| links(text).len()).sum();
        Ok(format!("{} pages with {count} links and {} pictures", self.pages.len(), self.pictures.len()))
    }

    /// Pages of the book that its summary does not name exactly once.
    fn left_out(&self) -> Vec<String> {
        let summary = Path::new(SUMMARY);
        let Some(text) = self.pages.get(summary) else { return vec![format!("there is no {SUMMARY}")] };
        let named: Vec<PathBuf> = links(text).iter().map(|link| target(summary, link).0).collect();
        let in_book = self.pages.keys().filter(|page| page.starts_with("docs") && *page != summary);
        let times = in_book.map(|page| (page, named.iter().filter(|other| *other == page).count()));
        let wrong = times.filter(|(_, times)| *times != 1);
        wrong.map(|(page, times)| format!("{SUMMARY} names {} {times} times", page.display())).collect()
    }

    /// Links that lead nowhere.
    fn lost_links(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (page, text) in &self.pages {
            for link in links(text) {
                let (path, heading) = target(page, &link);
                let is_there = self.pages.contains_key(&path)
                    || self.pictures.contains_key(&path)
                    || self.others.contains(&path);
                let known = heading.is_none_or(|heading| {
                    self.pages.get(&path).is_none_or(|text| anchors(text).contains(&heading))
                });
                if !is_there {
                    faults.push(format!("{}: {link} is not there", page.display()));
                } else if !known {
                    faults.push(format!("{}: {link} is no heading there", page.display()));
                }
            }
        }
        faults
    }

    fn bad_pictures(&self) -> Vec<String> {
        let shown: BTreeSet<PathBuf> = self
            .pages
            .iter()
            .flat_map(|(page, text)| links(text).into_iter().map(|link| target(page, &link).0))
            .collect();
        let mut faults = Vec::new();
        for (path, text) in &self.pictures {
            if let Err(why) = readable(text) {
                faults.push(format!("{}: {why}", path.display()));
            }
            if !shown.contains(path) {
                faults.push(format!("{}: no page shows it", path.display()));
            }
        }
        faults
    }
}

fn listed(root: &Path, folder: &str, ending: &str) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot list {folder}: {error}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(folder)).map_err(failed)? {
        let path = Path::new(folder).join(entry.map_err(failed)?.file_name());
        found.extend(path.extension().is_some_and(|it| it == ending).then_some(path.clone()));
    }
    found.sort();
    Ok(found)
}

/// The relative links of a page, images too.
fn links(text: &str) -> Vec<String> {
    let prose: String = prose(text).collect::<Vec<_>>().join("\n");
    let words: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let ends = words.split("](").skip(1);
    let found = ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.trim().to_owned());
    found.filter(|link| !link.contains("://") && !link.starts_with("mailto:")).collect()
}

/// The lines that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Where a link on `page` leads: a path below the root, and a heading.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (path, heading) =
        link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading.to_owned())));
    if path.is_empty() {
        return (page.to_owned(), heading);
    }
    let mut whole = PathBuf::new();
    for part in page.parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    (whole, heading)
}

/// What the headings of a page are called in links.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let slug = slug(line.trim_start_matches('#').trim());
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(numbered).find(|name| !all.contains(name));
        all.extend(free);
    }
    all
}

/// Small letters, digits and hyphens, as the common renderers make them.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Whether a picture is well-formed, says what it is, and scales.
fn readable(text: &str) -> Result<(), String> {
    let picture = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let root = picture.root_element();
    if !root.has_tag_name(("http://www.w3.org/2000/svg", "svg")) {
        return Err("is no SVG".to_owned());
    }
    let titled = root.children().any(|child| child.tag_name().name() == "title" && child.text().is_some());
    match (titled, root.has_attribute("viewBox")) {
        (true, true) => Ok(()),
        (false, _) => Err("has no title".to_owned()),
        (_, false) => Err("has no view box".to_owned()),
    }
}

const SUMMARY: &str = "docs/SUMMARY.md";
/// Pages that are no part of the book and link into it.
const BESIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "fuzz/README.md"];

#[cfg(test)]
mod tests {
    use super::*;

    fn book(pages: &[(&str, &str)], pictures: &[(&str, &str)]) -> Book {
        let all = |texts: &[(&str, &str)]| {
            texts.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect()
        };
        Book { pages: all(pages), pictures: all(pictures), others: [PathBuf::from("src/lib.rs")].into() }
    }

    const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><title>A</title></svg>";

    #[test]
    fn a_book_that_holds_together_is_counted() {
        let pages = [
            ("docs/SUMMARY.md", "- [A](a.md)\n"),
            (
                "docs/a.md",
                "# It's *one* `x`\n[here](#its-one-x) [out](https://x.y/z.md) ![p](img/p.svg) [code](../src/lib.rs)\n",
            ),
            ("README.md", "[a](docs/a.md#its-one-x)\n```\n[no](nowhere.md)\n```\n`[no](nowhere.md)`\n"),
        ];
        assert_eq!(
            book(&pages, &[("docs/img/p.svg", SVG)]).judge(),
            Ok("3 pages with 5 links and 1 pictures".to_owned())
        );
    }

    #[test]
    fn pages_that_are_left_out_and_links_that_lead_nowhere_are_faults() {
        let faults = |summary: &str, a: &str| {
            book(&[("docs/SUMMARY.md", summary), ("docs/a.md", a)], &[]).judge().unwrap_err()
        };
        assert_eq!(faults("", ""), ["docs/SUMMARY.md names docs/a.md 0 times"]);
        assert_eq!(faults("[a](a.md) [b](a.md)", "").len(), 1);
        assert_eq!(faults("[a](a.md)", "[x](b.md)"), ["docs/a.md: b.md is not there"]);
        assert_eq!(faults("[a](a.md)", "# one\n[x](#two)"), ["docs/a.md: #two is no heading there"]);
        assert_eq!(book(&[("docs/a.md", "")], &[]).judge().unwrap_err(), ["there is no docs/SUMMARY.md"]);
    }

    #[test]
    fn pictures_that_cannot_be_read_or_that_nobody_shows_are_faults() {
        let faults = |picture: &str| {
            let pages = [("docs/SUMMARY.md", "[a](a.md)"), ("docs/a.md", "![p](img/p.svg)")];
            book(&pages, &[("docs/img/p.svg", picture)]).judge().err().unwrap_or_default()
        };
        assert_eq!(faults(SVG), Vec::<String>::new());
        for bad in [
            &SVG.replace("</title>", ""),
            &SVG.replace(">A<", "> & <"),
            &SVG.replace("viewBox", "view"),
            &SVG.replace("title", "desc"),
            "<p/>",
        ] {
            assert_eq!(faults(bad).len(), 1, "{bad}");
        }
        let alone = book(&[("docs/SUMMARY.md", "")], &[("docs/img/p.svg", SVG)]).judge();
        assert_eq!(alone.unwrap_err(), ["docs/img/p.svg: no page shows it"]);
    }

    #[test]
    fn equal_headings_are_numbered() {
        assert_eq!(anchors("# A b\n## A b\n").into_iter().collect::<Vec<_>>(), ["a-b", "a-b-1"]);
    }
}
