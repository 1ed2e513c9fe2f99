#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schema::fuzz::prepare(data));
