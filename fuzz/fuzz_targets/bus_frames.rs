#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bus::fuzz::frames(data));
