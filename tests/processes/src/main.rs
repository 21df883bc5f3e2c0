//! A process that hosts the scribes for the tests.

#[actix::main]
async fn main() {
    archipelago_process_tests::run_host().await;
}
