//! Drive files: `Document` and `resolve`.

#![no_main]

use headstack_catalogue::resolve;
use headstack_fuzz::assert_sound;
use headstack_workload::Document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Document::parse("fuzz.toml", text).and_then(|document| resolve(&document)) {
        Ok(resolved) => assert_sound(&resolved.description),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    }
});
