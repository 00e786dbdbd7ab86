//! Drive files, of disks and of solid-state drives: `Document` and `resolve`.

#![no_main]

use headstack_catalogue::{resolve, ssd};
use headstack_fuzz::assert_sound;
use headstack_workload::Document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let resolved = Document::parse("fuzz.toml", text).and_then(|document| {
        if ssd::is_ssd(&document) {
            // It has been checked by then.
            return ssd::resolve(&document).map(|_| ());
        }
        resolve(&document).map(|resolved| assert_sound(&resolved.description))
    });
    match resolved {
        Ok(()) => {}
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    }
});
