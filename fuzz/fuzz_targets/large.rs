#![no_main]

use archipelago_corpus::LARGE;
use archipelago_corpus::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (LARGE.check)(bytes);
});
