//! What the macros accept, and what they and the compiler refuse, with which words.
//!
//! The programs in `ui/pass` are modules of this test and run like any other; those in `ui/fail` must not compile, and
//! must fail with the text beside them. After a deliberate change of words: `TRYBUILD=overwrite cargo test --test
//! compile_fail`, then read the difference. The compiler's words depend on which crates it sees, so they are compared with
//! the default features only.

#[path = "ui/pass/long_form.rs"]
mod long_form;
#[path = "ui/pass/named.rs"]
mod named;
#[path = "ui/pass/options.rs"]
mod options;
#[path = "ui/pass/responses.rs"]
mod responses;
#[path = "ui/pass/short_form.rs"]
mod short_form;
mod support;

#[cfg(not(any(feature = "etcd", feature = "nats")))]
/// Every mistake is found by the compiler and named at the place where it was made.
///
/// Proves: R47, C44, R3, C51
#[test]
fn mistakes_are_compile_errors_with_helpful_words() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
