#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ovos_tools::fuzz::feed("manifest", data));
