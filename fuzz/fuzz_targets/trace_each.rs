//! A trace of a given format: the first byte chooses it, the rest is the file. `run.sh` makes seeds of every sample under
//! every byte, so that the order of the formats means nothing.

#![no_main]

use headstack_fuzz::assert_trace_is_sound;
use headstack_trace::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let format = Format::ALL[usize::from(choice) % Format::ALL.len()];
    for skip_bad in [false, true] {
        assert_trace_is_sound(bytes, Some(format), skip_bad);
    }
});
