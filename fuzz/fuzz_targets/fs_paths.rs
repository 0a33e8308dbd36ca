//! Hands the bytes of libFuzzer to the target of the same name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| blacklight_fuzzing::targets::fs_paths::run(data));
