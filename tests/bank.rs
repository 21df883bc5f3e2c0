//! The bank of the examples neither loses nor makes money.

#[allow(dead_code, reason = "the example's own main is not called")]
#[path = "../examples/bank.rs"]
mod bank;

/// Proves: R471
#[actix::test]
async fn the_sum_of_all_balances_stays_constant() {
    let report = bank::run().await.unwrap();
    assert_eq!(report.after, report.before, "{report:?}");
    assert!(report.done > 0, "money moved: {report:?}");
    assert!(report.insufficient > 0, "some were refused: {report:?}");
    assert!(report.failed > 0, "some were paid back: {report:?}");
    let of_existing_accounts = report.activations - report.failed;
    assert!(of_existing_accounts > 20, "accounts went and came back in between: {report:?}");
}
