//! Results as JSON.

#![no_main]

use headstack_result::RunResult;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(result) = RunResult::from_json(text) else {
        return;
    };
    let written = result.to_json().expect("what came from JSON can be written as JSON");
    let again = RunResult::from_json(&written).expect("what was written is accepted");
    assert_eq!(again, result);
    assert_eq!(again.to_json().expect("as above"), written);
    // Figures of a contradictory result may be absurd; asking for them must not panic.
    let _ = (result.throughput_per_s(), result.mean_latency_ns(), result.quantile_ns(0.99), result.bottleneck());
});
