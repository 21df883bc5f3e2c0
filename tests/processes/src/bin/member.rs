//! A process that is one node of a cluster, as its arguments configure it.

#[actix::main]
async fn main() {
    archipelago_process_tests::run_member().await;
}
