//! Compares the sampling errors of simulated systems with the results of much longer runs.

use headstack_catalogue::{Changes, load_system, workloads};
use headstack_result::{Estimate, RunResult, Sampling, TooShort};
use headstack_sim::{RunSpec, SystemDescription, run_all};
use headstack_workload::{ArrivalProcess, Arrivals, RunLength, Span, Think, WarmUp, Workload};
use serde_json::json;

/// A system under a load, and the lengths of its runs.
struct Case {
    name: &'static str,
    system: &'static str,
    /// Drives that replace those of the array, and their number.
    drives: Option<(&'static str, u32)>,
    workload: &'static str,
    load: Load,
    requests: u64,
    /// Size of the part at the start of the system that is used; `None` for the whole system.
    span_mib: Option<u64>,
    /// Number of requests skipped at the start of the long runs, by which time the caches are full.
    settle: u64,
    /// Number of requests measured in each long run.
    long: u64,
}

#[derive(Clone, Copy)]
enum Load {
    Closed(u32),
    Open(f64),
}

const TRUTHS: u64 = 8;

impl Case {
    fn system(&self) -> SystemDescription {
        let (drive, drives) = self.drives.map(|(drive, count)| (drive.to_owned(), count)).unzip();
        load_system(self.system, &Changes { drive, drives, ..Changes::default() })
            .expect("the catalogue has it")
            .description()
    }

    fn spec(&self, system: &SystemDescription, seed: u64, requests: u64, warm_up: u64) -> RunSpec {
        let entry = workloads().iter().find(|entry| entry.id == self.workload).expect("the catalogue has it");
        let workload = Workload {
            arrivals: match self.load {
                Load::Closed(queue_depth) => Arrivals::Closed { queue_depth, think: Think::None },
                Load::Open(rate_per_s) => Arrivals::Open { rate_per_s, process: ArrivalProcess::Poisson },
            },
            warm_up: WarmUp { requests: warm_up, time_ns: 0 },
            run_length: RunLength::Requests(requests),
            ..Workload::from_toml(entry.file_name, entry.text).expect("the catalogue is valid")
        };
        RunSpec {
            system_name: self.system.to_owned(),
            system: system.clone(),
            demand: workload.into(),
            span: self.span_mib.map(|mib| Span { start_bytes: 0, length_bytes: mib << 20 }),
            seed,
            interval_ns: None,
            preload: 0,
            faults: None,
        }
    }

    /// Returns `figure` for each of the runs, starting with seed `first`.
    fn runs<T>(
        &self,
        system: &SystemDescription,
        first: u64,
        runs: u64,
        length: (u64, u64),
        figure: impl Fn(&RunResult) -> T,
    ) -> Vec<T> {
        let mut figures = Vec::new();
        for seeds in (first..first + runs).collect::<Vec<_>>().chunks(20) {
            let specs: Vec<RunSpec> = seeds.iter().map(|&seed| self.spec(system, seed, length.0, length.1)).collect();
            for result in run_all(&specs, &|_, _| true) {
                let result = result.expect("the specification is possible");
                assert!(result.passed(), "{}: {:?}", self.name, result.checks);
                figures.push(figure(&result));
            }
        }
        figures
    }
}

/// How often the intervals of one figure held.
#[derive(Default)]
struct Tally {
    told: u32,
    held: u32,
    /// Number of intervals that are entirely below the true value.
    below: u32,
    runs: u32,
    half_widths_ns: Vec<f64>,
}

impl Tally {
    fn count(&mut self, known: &Estimate, truth_ns: f64) {
        self.runs += 1;
        if let Some((low_ns, high_ns)) = known.between_ns() {
            self.told += 1;
            self.held += u32::from((low_ns..=high_ns).contains(&truth_ns));
            self.below += u32::from(high_ns < truth_ns);
            self.half_widths_ns.push((high_ns - low_ns) / 2.0);
        }
    }

    fn told_percent(&self) -> f64 {
        100.0 * f64::from(self.told) / f64::from(self.runs)
    }

    /// Returns the percentage of the intervals that contain the true value.
    fn held_percent(&self) -> Option<f64> {
        (self.told > 0).then(|| 100.0 * f64::from(self.held) / f64::from(self.told))
    }

    /// Returns the numbers of intervals, hits and misses below, and the median half-width.
    fn cells(&mut self, truth_ns: f64) -> String {
        let Some(held) = self.held_percent() else { return "0 % | - | - | -".to_owned() };
        self.half_widths_ns.sort_by(f64::total_cmp);
        let half_width_ns = self.half_widths_ns[self.half_widths_ns.len() / 2];
        let below = 100.0 * f64::from(self.below) / f64::from(self.told);
        let told = self.told_percent();
        format!("{told:.1} % | {held:.1} % | {below:.1} % | {:.2} %", 100.0 * half_width_ns / truth_ns)
    }
}

/// Returns how often the intervals of the mean and of p99 hold.
fn coverage(case: &Case, runs: u64) -> (Tally, Tally) {
    let system = case.system();
    let truths = case.runs(&system, 1_000_000, TRUTHS, (case.long, case.settle), |result| {
        (result.mean_latency_ns(), result.quantile_ns(0.99).expect("nothing takes an hour") as f64)
    });
    let (mean_ns, error_ns) = mean_and_error(truths.iter().map(|truth| truth.0));
    let (p99_ns, _) = mean_and_error(truths.iter().map(|truth| truth.1));
    let stated = WarmUp::default().requests;
    let found = case.runs(&system, 1, runs, (case.requests, stated), |result| {
        (result.mean_latency_ns(), result.sampling.mean, result.sampling.percentiles[3].value)
    });
    let (mut mean, mut p99) = (Tally::default(), Tally::default());
    for (_, of_mean, of_p99) in &found {
        mean.count(of_mean, mean_ns);
        p99.count(of_p99, p99_ns);
    }
    let (average_ns, _) = mean_and_error(found.iter().map(|found| found.0));
    println!(
        "| {} | {} | {:.3} ms to {:.2} % | {:+.2} % | {} | {} |",
        case.name,
        case.requests,
        mean_ns / 1e6,
        100.0 * error_ns / mean_ns,
        100.0 * (average_ns / mean_ns - 1.0),
        mean.cells(mean_ns),
        p99.cells(p99_ns)
    );
    (mean, p99)
}

/// Returns the mean of several runs and its standard error.
fn mean_and_error(figures: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = figures.len() as f64;
    let mean = figures.clone().sum::<f64>() / count;
    let squares: f64 = figures.map(|figure| (figure - mean).powi(2)).sum();
    (mean, (squares / (count * (count - 1.0))).sqrt())
}

static CASES: [Case; 12] = [
    Case {
        name: "disk, closed",
        system: "atlas-10k-iii-73",
        drives: None,
        workload: "random-read-4k",
        load: Load::Closed(4),
        requests: 2_000,
        span_mib: None,
        settle: 20_000,
        long: 100_000,
    },
    Case {
        name: "disk, closed, mixed sizes",
        system: "cheetah-15k7-600",
        drives: None,
        workload: "file-server",
        load: Load::Closed(16),
        requests: 1_000_000,
        span_mib: None,
        settle: 100_000,
        long: 6_000_000,
    },
    Case {
        name: "disk, open",
        system: "ultrastar-15k450",
        drives: None,
        workload: "oltp-8k",
        load: Load::Open(150.0),
        requests: 20_000,
        span_mib: None,
        settle: 100_000,
        long: 250_000,
    },
    Case {
        name: "disk, open, near saturation",
        system: "ultrastar-36z15",
        drives: None,
        workload: "database",
        load: Load::Open(190.0),
        requests: 50_000,
        span_mib: None,
        settle: 100_000,
        long: 600_000,
    },
    Case {
        name: "RAID 10 with a cache, closed",
        system: "nearline-24-raid10",
        drives: None,
        workload: "oltp-8k",
        load: Load::Closed(32),
        requests: 2_000,
        span_mib: None,
        settle: 300_000,
        long: 100_000,
    },
    Case {
        name: "RAID 6 with a cache, closed",
        system: "nearline-12-raid6",
        drives: None,
        workload: "oltp-8k",
        load: Load::Closed(16),
        requests: 400_000,
        span_mib: None,
        settle: 400_000,
        long: 2_500_000,
    },
    Case {
        name: "solid-state drive, reads, closed",
        system: "dc-p4500-1tb",
        drives: None,
        workload: "random-read-4k",
        load: Load::Closed(32),
        requests: 10_000,
        span_mib: None,
        settle: 100_000,
        long: 125_000,
    },
    Case {
        name: "solid-state drive, mixed, open",
        system: "dc-s4500-960gb",
        drives: None,
        workload: "database",
        load: Load::Open(20_000.0),
        requests: 50_000,
        span_mib: None,
        settle: 100_000,
        long: 600_000,
    },
    Case {
        name: "RAID 5 of drives with media caches, closed",
        system: "demartek-512n-awc-raid5-24",
        drives: None,
        workload: "oltp-8k",
        load: Load::Closed(48),
        requests: 50_000,
        span_mib: None,
        settle: 300_000,
        long: 600_000,
    },
    Case {
        name: "RAID 10 of drives with flash, open",
        system: "demartek-512e-raid10-24",
        drives: None,
        workload: "web-server",
        load: Load::Open(2_000.0),
        requests: 50_000,
        span_mib: None,
        settle: 600_000,
        long: 600_000,
    },
    Case {
        name: "virtual array, closed",
        system: "va-7100",
        drives: Some(("cheetah-73lp", 10)),
        workload: "oltp-2k",
        load: Load::Closed(24),
        requests: 100_000,
        span_mib: None,
        settle: 200_000,
        long: 600_000,
    },
    Case {
        name: "virtual array, open, near saturation",
        system: "va-7100",
        drives: Some(("cheetah-73lp", 10)),
        workload: "database",
        load: Load::Open(1_350.0),
        requests: 200_000,
        span_mib: None,
        settle: 300_000,
        long: 1_200_000,
    },
];

/// Prints a row for `make validate`, which collects them.
fn row(name: String, value: Option<f64>, bar: [f64; 2]) {
    // If there are no intervals, none is wrong.
    let met = value.is_none_or(|value| (bar[0]..=bar[1]).contains(&value));
    println!(
        "row: {}",
        json!({"name": name, "value": value, "unit": "%", "bar": bar, "bar_is": "between", "bar_met": met})
    );
}

/// The limit of 93 to 97.5 % is reported, not asserted: with 200 runs, a perfect interval misses it in one case of
/// seven. SAMPLING_CASES selects the cases whose name contains it; SAMPLING_SEEDS is the number of runs per case.
#[test]
#[ignore = "half an hour: make validate"]
fn intervals_hold_in_twelve_systems() {
    let chosen = std::env::var("SAMPLING_CASES").unwrap_or_default();
    let seeds = std::env::var("SAMPLING_SEEDS").map_or(200, |seeds| seeds.parse().expect("SAMPLING_SEEDS: a number"));
    println!("| case | requests | long run | bias | mean told | held | too low | ± | p99 told | held | too low | ± |");
    for case in CASES.iter().filter(|case| case.name.contains(&chosen)) {
        let (mean, p99) = coverage(case, seeds);
        let name = format!("{}, {} requests", case.name, case.requests);
        row(format!("{name}: 95 % intervals of the mean that hold"), mean.held_percent(), [93.0, 97.5]);
        row(format!("{name}: runs whose mean is told"), Some(mean.told_percent()), [0.0, 100.0]);
        row(format!("{name}: 95 % intervals of p99 that hold"), p99.held_percent(), [93.0, 97.5]);
        row(format!("{name}: runs whose p99 is told"), Some(p99.told_percent()), [0.0, 100.0]);
    }
}

/// Intervals of short runs of a drive contain the true value. An array whose cache is still filling has no interval.
#[test]
fn confidence_intervals_of_short_runs_cover_the_true_value() {
    let disk = Case { requests: 2_000, settle: 2_000, long: 20_000, ..CASES[0] };
    let (mean, p99) = coverage(&disk, 40);
    assert!(mean.told >= 34 && mean.held + 6 >= mean.told, "{} of {} told held", mean.held, mean.told);
    assert!(p99.told >= 30, "{} told", p99.told);
    let cached = Case { requests: 2_000, ..CASES[5] };
    for sampling in cached.runs(&cached.system(), 1, 4, (2_000, 500), |result| result.sampling.clone()) {
        assert_eq!(sampling, Sampling::nothing(TooShort::WriteCacheMoves));
    }
}

/// After a preload, a controller's cache is as dirty as under a continuing load. A short run from there is close to a
/// long one, whereas a run from an empty cache is several times as fast. The cache has 1/16 of the catalogue's size so
/// that a long run fills it.
#[test]
fn a_preloaded_write_cache_begins_as_it_stays() {
    let case = |rate_per_s| Case {
        name: "preloaded",
        system: "server-12-raid6-cache",
        drives: None,
        workload: "file-server",
        load: Load::Open(rate_per_s),
        requests: 0,
        span_mib: None,
        settle: 0,
        long: 0,
    };
    let mut system = case(1.0).system();
    let SystemDescription::Array(array) = &mut system else { panic!("it is an array") };
    let cache = array.controller.cache.as_mut().expect("it has a cache");
    (cache.memory_bytes, cache.data_bytes, cache.dirty_bytes_max) =
        (cache.memory_bytes / 16, cache.data_bytes / 16, cache.dirty_bytes_max / 16);
    let mean_ms = |rate_per_s: f64, requests: u64, preload: u64| {
        let spec = RunSpec { preload, ..case(rate_per_s).spec(&system, 1, requests, requests / 4) };
        run_all(&[spec], &|_, _| true).remove(0).expect("it is possible").mean_latency_ns() / 1e6
    };
    let far = |found: f64, truth: f64| (found / truth - 1.0).abs();
    // Busy: the cache stays dirty well above the low-water mark, to which only an idle host lets it fall.
    let (long, short, empty) = (mean_ms(700.0, 200_000, 0), mean_ms(700.0, 8_000, 40_000), mean_ms(700.0, 8_000, 0));
    assert!(far(short, long) < 0.25, "{short} ms in service, {long} ms in the long run");
    assert!(empty < 0.5 * long, "{empty} ms from an empty cache, {long} ms in the long run");
    // Light load: idle moments clean the cache, so the run should not start at the low-water mark.
    let (long, short) = (mean_ms(100.0, 50_000, 0), mean_ms(100.0, 8_000, 40_000));
    assert!(far(short, long) < 0.1, "{short} ms in service, {long} ms in the long run");
}
