//! A million active actors, listed page by page.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::actors::{Add, Counter, node};
use crate::client::Connection;
use crate::{Bar, BoxError};

const ACTORS: u64 = 1_000_000;
/// New actors between two waits.
const BATCH: u64 = 500;
/// Pages of a thousand that are looked at, from the beginning.
const PAGES: usize = 300;

/// How long pages take, in milliseconds: the slowest counts.
pub(crate) async fn pages() -> Result<Vec<Bar>, BoxError> {
    let (node, at) = node(u32::MAX).await?;
    for batch in 0..ACTORS / BATCH {
        for number in batch * BATCH..(batch + 1) * BATCH {
            node.actor::<Counter>(format!("counter-{number}")).tell(Add(1))?;
        }
        // The last one is behind all of them in the way in.
        node.actor::<Counter>(format!("counter-{}", batch * BATCH)).send(Add(1)).await?;
    }
    let listed = std::thread::spawn(move || list(at).map_err(|error| error.to_string()));
    let listed = listed.join().map_err(|_| "the client panicked")??;
    node.stop().await?;
    Ok(vec![
        Bar::at_most("page_of_a_million_ms", listed.page.as_secs_f64() * 1e3, 100.0),
        Bar::at_most("search_in_a_million_ms", listed.search.as_secs_f64() * 1e3, 100.0),
        Bar::at_most("kinds_with_a_million_ms", listed.kinds.as_secs_f64() * 1e3, 100.0),
    ])
}

/// The slowest answers.
struct Listed {
    page: Duration,
    search: Duration,
    kinds: Duration,
}

fn list(at: SocketAddr) -> Result<Listed, BoxError> {
    let mut connection = Connection::to(at)?;
    let (page, shown) = follow(&mut connection, "/v1/actors?limit=1000")?;
    println!("{shown} actors in {PAGES} pages, the slowest in {page:?}");
    // Found rarely: as much is looked at as one page may.
    let (search, found) = follow(&mut connection, "/v1/actors?limit=1000&prefix=counter-99999")?;
    println!("{found} found, the slowest page in {search:?}");
    let (kinds, _) = timed(&mut connection, "/v1/kinds")?;
    Ok(Listed { page, search, kinds })
}

/// Follows a listing for so many pages: how long the slowest took, and how many actors were shown.
fn follow(connection: &mut Connection, path: &str) -> Result<(Duration, usize), BoxError> {
    let (mut slowest, mut shown, mut cursor) = (Duration::ZERO, 0, String::new());
    for _ in 0..PAGES {
        let (took, body) = timed(connection, &format!("{path}{cursor}"))?;
        slowest = slowest.max(took);
        shown += body.matches("\"key\":").count();
        // Cursors have no quotes in them.
        let next = body.split("\"next\":\"").nth(1).and_then(|rest| rest.split('"').next());
        match next {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    Ok((slowest, shown))
}

fn timed(connection: &mut Connection, path: &str) -> Result<(Duration, String), BoxError> {
    let start = Instant::now();
    let (status, body) = connection.get(path)?;
    let took = start.elapsed();
    if status != 200 {
        return Err(format!("{path} was answered {status}").into());
    }
    Ok((took, String::from_utf8(body)?))
}
