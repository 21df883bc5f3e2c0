//! Waiting in rules: for something, but not for ever.

use archipelago_directory::Timer;
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::Stream;

/// How long a rule waits for what an engine must do at some time.
pub(crate) const PATIENCE: Millis = Millis(15_000);

/// The next item of a watch.
pub(crate) async fn next_of<T, E: std::fmt::Debug>(
    timer: &dyn Timer,
    watch: &mut (impl Stream<Item = Result<T, E>> + Unpin),
) -> T {
    match select(watch.next(), timer.sleep(PATIENCE)).await {
        Either::Left((item, _)) => item.expect("the watch goes on").expect("the watch holds"),
        Either::Right(_) => panic!("the watch told nothing for {PATIENCE}"),
    }
}
