//! Time to record one latency in a histogram and in batches: `cargo bench -p headstack-result`.

use std::hint::black_box;
use std::time::Instant;

use headstack_result::{Batches, LatencyHistogram};

const VALUES: usize = 1 << 16;
const ROUNDS: usize = 200;

fn main() {
    // Three decades around 1 ms, in an order that no branch predictor learns (a 64-bit linear congruence).
    let mut state = 1u64;
    let latencies_ns: Vec<u64> = (0..VALUES)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let share = (state >> 11) as f64 / (1u64 << 53) as f64;
            10f64.powf(4.5 + 3.0 * share) as u64
        })
        .collect();

    let mut histogram = LatencyHistogram::new();
    report("histogram record", || {
        for &ns in &latencies_ns {
            histogram.record(black_box(ns));
        }
    });
    assert_eq!(histogram.count(), (VALUES * ROUNDS) as u64);

    let mut batches = Batches::new();
    report("batches record", || {
        for &ns in &latencies_ns {
            batches.outstanding(ns as f64);
            batches.record(black_box(ns));
        }
    });
    assert_eq!(
        batches.complete() as u64 * batches.batch_len(),
        (VALUES * ROUNDS) as u64 / batches.batch_len() * batches.batch_len()
    );
}

/// Prints the fastest and the median round, in ns per value.
fn report(name: &str, mut round: impl FnMut()) {
    let mut took_ns: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_nanos() as f64 / VALUES as f64
        })
        .collect();
    took_ns.sort_by(f64::total_cmp);
    println!("{name:20} {:5.2} ns fastest, {:5.2} ns median", took_ns[0], took_ns[ROUNDS / 2]);
}
