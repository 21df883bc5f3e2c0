//! A process that hosts the scribes for the tests.

/// Counts, so that a test can ask what a call costs its host.
#[global_allocator]
static ALLOCATOR: &archipelago_process_tests::CountingAllocator = archipelago_process_tests::ALLOCATOR;

#[actix::main]
async fn main() {
    archipelago_process_tests::run_host().await;
}
