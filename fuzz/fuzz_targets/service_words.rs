#![no_main]

use archipelago_corpus::SERVICE_WORDS;
use archipelago_corpus::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (SERVICE_WORDS.check)(bytes);
});
