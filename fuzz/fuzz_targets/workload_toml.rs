//! Workload files, and the generator on what they accept.

#![no_main]

use headstack_workload::{Generator, Span, Workload};
use libfuzzer_sys::fuzz_target;

const SPAN: Span = Span { start_bytes: 1 << 20, length_bytes: 1 << 30 };
const SECTOR_BYTES: u32 = 512;

fuzz_target!(|text: &str| {
    let workload = match Workload::from_toml("fuzz.toml", text) {
        Ok(workload) => workload,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    };
    let printed = toml::to_string(&workload).expect("an accepted workload becomes TOML");
    let again = Workload::from_toml("printed.toml", &printed).expect("what was printed is accepted");
    assert_eq!(again, workload);
    assert_eq!(toml::to_string(&again).expect("an accepted workload becomes TOML"), printed);
    // A request may be larger than the span, or no multiple of the sector: that is an error, not a panic.
    let Ok(mut generator) = Generator::new(&workload, SPAN, SECTOR_BYTES, 1) else {
        return;
    };
    for _ in 0..64 {
        let request = generator.next();
        let end = request.offset_bytes + u64::from(request.length_bytes);
        if request.length_bytes > 0 {
            assert!(request.offset_bytes >= SPAN.start_bytes && end <= SPAN.start_bytes + SPAN.length_bytes);
            assert!(end.is_multiple_of(u64::from(SECTOR_BYTES)), "a request ends inside a sector");
        }
        generator.think_ns();
    }
});
