//! Any bytes as a stored trace, which is read by its path.

#![no_main]

use headstack_fuzz::assert_records_are_sound;
use headstack_trace::{Format, ReadOptions, TraceReader};
use libfuzzer_sys::fuzz_target;

/// libFuzzer ends at every panic. Those of the library that decodes Parquet are caught by the reader; ours are findings.
fn end_at_our_own_panics() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_ours = panic.location().is_none_or(|place| !place.file().contains("/registry/"));
        if is_ours {
            end(panic);
        }
    }));
}

fuzz_target!(
    init: end_at_our_own_panics(),
    |bytes: &[u8]| {
        let path = std::env::temp_dir().join(format!("headstack-fuzz-{}.parquet", std::process::id()));
        std::fs::write(&path, bytes).expect("a temporary file");
        let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
        let read = TraceReader::open(&[&path], &options).and_then(|mut reader| {
            let records = reader.read_all()?;
            assert_records_are_sound(&records, reader.meta(), &mut 0);
            Ok(())
        });
        std::fs::remove_file(&path).expect("a temporary file");
        if let Err(error) = read {
            assert_eq!(error.to_string().lines().count(), 1, "an error is one line");
        }
    }
);
