//! Array files: `Document` and `array::resolve`.

#![no_main]

use headstack_catalogue::{Changes, array};
use headstack_workload::Document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Document::parse("fuzz.toml", text).and_then(|document| array::resolve(&document, &Changes::default())) {
        Ok(resolved) => {
            headstack_sim::array::check(&resolved.description).expect("what is resolved has been checked");
            assert!(resolved.description.capacity_bytes() > 0);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    }
});
