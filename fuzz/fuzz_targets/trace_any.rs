//! Any bytes as a trace, plain or compressed, whose format is told by content.

#![no_main]

use headstack_fuzz::assert_trace_is_sound;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for skip_bad in [false, true] {
        assert_trace_is_sound(bytes, None, skip_bad);
    }
});
