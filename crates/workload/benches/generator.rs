//! Cost of generating requests and arrival times, in ns each. Run with `cargo bench -p headstack-workload`.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use headstack_workload::{Addresses, ArrivalClock, ArrivalProcess, Generator, Span, Workload};

const ROUNDS: usize = 7;
const PER_ROUND: u32 = 5_000_000;

/// Measures the best of several rounds, because on a shared machine other rounds include the load of other programs.
fn measure(name: &str, mut once: impl FnMut() -> u64) {
    let mut best_ns = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut sum = 0u64;
        for _ in 0..PER_ROUND {
            sum = sum.wrapping_add(once());
        }
        black_box(sum);
        best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / f64::from(PER_ROUND));
    }
    println!("{name:40} {best_ns:7.2} ns");
}

fn catalogue(name: &str) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/workloads").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("the catalogue is readable");
    Workload::from_toml(&path.display().to_string(), &text).expect("the catalogue is valid")
}

fn measure_workload(name: &str, workload: &Workload) {
    let span = Span { start_bytes: 0, length_bytes: 36_700_000_000 / 512 * 512 };
    let mut generator = Generator::new(workload, span, 512, 1).expect("the workload is valid");
    measure(name, || {
        let request = generator.next();
        request.offset_bytes ^ u64::from(request.length_bytes) ^ request.kind as u64
    });
}

fn main() {
    for name in [
        "random-read-4k",
        "database",
        "workstation",
        "file-server",
        "web-server",
        "sequential-read-64k",
        "streaming-reads",
    ] {
        measure_workload(name, &catalogue(name));
    }
    let random_read = catalogue("random-read-4k");
    for (name, addresses) in [
        ("random-read-4k, once", Addresses::Once),
        ("random-read-4k, zipf 0.99", Addresses::Zipf { theta: 0.99 }),
        ("random-read-4k, pareto 0.2", Addresses::Pareto { h: 0.2 }),
        ("random-read-4k, normal", Addresses::Normal { mean_percent: 50.0, deviation_percent: 10.0 }),
    ] {
        let workload = Workload { addresses, ..random_read.clone() };
        measure_workload(name, &workload);
    }
    for (name, process) in [
        ("arrivals, fixed", ArrivalProcess::Fixed),
        ("arrivals, poisson", ArrivalProcess::Poisson),
        ("arrivals, bursty", ArrivalProcess::Bursty { on_ns: 10_000_000, off_ns: 90_000_000 }),
    ] {
        let mut clock = ArrivalClock::new(10_000.0, process, 1).expect("the rate is valid");
        measure(name, || clock.next_ns());
    }
}
