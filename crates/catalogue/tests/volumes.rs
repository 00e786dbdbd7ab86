//! Compares cloud volumes with what their providers publish: each rule, its arithmetic, and the number of requests in a
//! period of time.

use headstack_catalogue::volume::pricing::BILLED_UNITS;
use headstack_catalogue::volume::types::{Order, VolumeType};
use headstack_catalogue::{load_device, volume, volumes};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::Completion;
use headstack_sim::volume::description::{Counts, Latency, Limit, VolumeDescription};
use headstack_sim::volume::{Volume, VolumeCounters};
use headstack_workload::{Document, Kind, Purpose, Random, Request};

const SECOND_NS: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

fn described(id: &str) -> VolumeDescription {
    match load_device(id).unwrap().description() {
        DeviceDescription::Volume(volume) => volume,
        other => panic!("{other:?} is no volume"),
    }
}

/// A host that keeps a volume busy with requests of one length.
struct Busy {
    volume: Volume,
    length_bytes: u32,
    kind: Kind,
    at_bytes: u64,
    step_bytes: u64,
    begun: Vec<u64>,
    counted: usize,
}

impl Busy {
    /// Creates a host with scattered requests: each starts far from the end of the previous one.
    fn new(id: &str, kind: Kind, length_bytes: u32) -> Busy {
        let mut description = described(id);
        // Latencies are minimal so that only limits matter.
        let short = Latency { floor_ns: 1, median_ns: 2, p99_ns: 3 };
        (description.read, description.write) = (short, short);
        let volume = Volume::new(&description, 1).unwrap();
        Busy { volume, length_bytes, kind, at_bytes: 0, step_bytes: 3 << 20, begun: Vec::new(), counted: 0 }
    }

    fn sequential(self) -> Busy {
        Busy { step_bytes: u64::from(self.length_bytes), ..self }
    }

    /// Returns the number of requests that start before `until_ns`, with a queue depth of 64.
    fn until(&mut self, until_ns: u64) -> u64 {
        let mut done: Vec<Completion> = Vec::new();
        loop {
            let now_ns = match self.volume.next_event_ns() {
                u64::MAX => 0,
                at_ns => at_ns,
            };
            done.clear();
            self.volume.advance(now_ns, |completion| done.push(completion));
            self.begun.extend(done.iter().map(|completion| completion.started_ns));
            if now_ns >= until_ns {
                // Requests start in the order in which they are reported.
                let before =
                    std::mem::replace(&mut self.counted, self.begun.partition_point(|&at_ns| at_ns < until_ns));
                return (self.counted - before) as u64;
            }
            let wanted = if done.is_empty() { 64 } else { done.len() };
            (0..wanted).for_each(|_| self.submit(now_ns));
        }
    }

    fn submit(&mut self, now_ns: u64) {
        let request = Request {
            kind: self.kind,
            offset_bytes: self.at_bytes,
            length_bytes: self.length_bytes,
            force_unit_access: false,
            ordered: false,
        };
        self.at_bytes = (self.at_bytes + self.step_bytes) % (90 << 30);
        self.volume.submit(now_ns, 0, &request);
    }

    fn counted(&self) -> VolumeCounters {
        self.volume.counters()
    }
}

/// Asserts that a count differs from the rule by at most one.
fn assert_count(found: u64, expected: u64, what: &str) {
    assert!(found.abs_diff(expected) <= 1, "{what}: {found} requests, {expected} by the rule");
}

/// There are 5.4 million credits; 3,000 per second are spent and 300 earned. The burst lasts 5.4e6 / 2,700 = 2,000 s
/// with six million requests; then the rate is 300.
#[test]
fn gp2_of_100_gib_bursts_for_2000_seconds_and_then_keeps_its_base() {
    let mut host = Busy::new("aws-gp2-100", Kind::Read, 4096);
    assert_count(host.until(1_800 * SECOND_NS), 1_800 * 3_000, "thirty minutes of bursting");
    assert_count(host.until(2_000 * SECOND_NS), 200 * 3_000, "the rest of the bucket");
    assert_count(host.until(2_100 * SECOND_NS), 100 * 300, "the base");
}

/// Published table: how long volumes burst, and how long an empty bucket takes to fill.
#[test]
fn gp2_bursts_as_long_as_published() {
    for (gib, burst_s, fill_s) in [(100, 2_000, 18_000), (33, 1_862, 54_000), (750, 7_200, 2_400), (334, 2_703, 5_389)]
    {
        let terms = VolumeType::Gp2.terms(Order { gib, iops: None, bytes_per_s: None }).unwrap();
        let Limit { per_s, burst, .. } = terms.limits[0];
        let burst = burst.unwrap();
        assert_eq!((burst.credits as f64 / (burst.per_s - per_s) as f64).round() as u64, burst_s, "{gib}");
        assert_eq!(burst.credits / per_s, fill_s, "{gib}");
    }
    let large = VolumeType::Gp2.terms(Order { gib: 1_000, iops: None, bytes_per_s: None }).unwrap();
    assert_eq!((large.limits[0].per_s, large.limits[0].burst), (3_000, None));
    let largest = VolumeType::Gp2.terms(Order { gib: 16_384, iops: None, bytes_per_s: None }).unwrap();
    assert_eq!(largest.limits[0].per_s, 16_000);
}

/// Limits of 3,000 requests and 125 MiB per second: 2,000 random requests of 64 KiB, and as many sequential requests of
/// 16 KiB as the byte limit allows.
#[test]
fn gp3_is_bound_by_requests_or_by_bytes() {
    assert_count(Busy::new("aws-gp3-500", Kind::Read, 4096).until(10 * SECOND_NS), 30_000, "small");
    assert_count(Busy::new("aws-gp3-500", Kind::Read, 64 << 10).until(10 * SECOND_NS), 20_000, "64 KiB");
    let mut host = Busy::new("aws-gp3-500", Kind::Write, 16 << 10).sequential();
    let count = host.until(10 * SECOND_NS);
    assert_count(count, 10 * 125 * MIB / (16 << 10), "16 KiB in a row");
    let VolumeCounters { accounted_requests, merged_requests, .. } = host.counted();
    assert_eq!(merged_requests / accounted_requests, 15, "sixteen are counted as one of 256 KiB");
    // A request of 1 MiB counts as four.
    assert_count(Busy::new("aws-io2-1000-256k", Kind::Read, MIB as u32).until(SECOND_NS), 4_000, "4,000 MiB a second");
}

/// The base is 80 MiB/s; a burst of 500 MiB/s drains the bucket of 2 TiB at 420 MiB/s: 2 TiB / 420 = 4,993 s. A full
/// scan needs 4,194 s.
#[test]
fn st1_scans_all_of_itself_in_one_burst() {
    let mut host = Busy::new("aws-st1-2tib", Kind::Read, MIB as u32).sequential();
    assert_count(host.until(4_194 * SECOND_NS), 4_194 * 500, "the scan");
    let burst_s = (2u64 << 20) / 420;
    host.until(burst_s * SECOND_NS);
    host.until((burst_s + 10) * SECOND_NS);
    assert_count(host.until((burst_s + 110) * SECOND_NS), 100 * 80, "the base");
    // Every small random request counts as 1 MiB: 500 per second regardless of size.
    assert_count(Busy::new("aws-st1-2tib", Kind::Read, 16 << 10).until(100 * SECOND_NS), 100 * 500, "random");
}

/// Published: hours of a full scan if the bucket holds 1 TiB per TiB of size.
#[test]
fn disk_volumes_take_as_long_for_a_scan_as_published() {
    let cases = [
        (VolumeType::St1, 1, 1.17),
        (VolumeType::St1, 2, 1.17),
        (VolumeType::St1, 5, 2.91),
        (VolumeType::St1, 16, 9.32),
        (VolumeType::Sc1, 1, 3.64),
        (VolumeType::Sc1, 3, 3.64),
        (VolumeType::Sc1, 5, 5.83),
        (VolumeType::Sc1, 16, 18.64),
    ];
    for (kind, tib, hours) in cases {
        let terms = kind.terms(Order { gib: tib << 10, iops: None, bytes_per_s: None }).unwrap();
        let limit = terms.limits.iter().find(|limit| limit.counts == Counts::Bytes).unwrap();
        let per_s = limit.burst.map_or(limit.per_s, |burst| burst.per_s);
        let found = (tib << 40) as f64 / per_s as f64 / 3_600.0;
        assert!((found - hours).abs() < 0.01, "{kind:?} of {tib} TiB: {found}");
    }
}

/// Returns quantiles of the latency in ms under Poisson arrivals, after the first 20 s.
fn latencies_ms(id: &str, per_s: f64, quantiles: [f64; 2]) -> [f64; 2] {
    let mut volume = Volume::new(&described(id), 1).unwrap();
    let mut random = Random::new(7, Purpose::Arrivals);
    let (mut now_ns, mut at_bytes) = (0_u64, 0_u64);
    let (mut arrivals, mut latencies) = (Vec::new(), Vec::new());
    while now_ns < 60 * SECOND_NS {
        let uniform = (random.below(1 << 32) as f64 + 0.5) / (1_u64 << 32) as f64;
        now_ns += (-uniform.ln() * 1e9 / per_s) as u64;
        volume.advance(now_ns, |done| {
            let arrival_ns: u64 = arrivals[done.id as usize];
            if arrival_ns > 20 * SECOND_NS {
                latencies.push(done.at_ns - arrival_ns);
            }
        });
        at_bytes = (at_bytes + (3 << 20)) % (90 << 30);
        let request = Request {
            kind: Kind::Read,
            offset_bytes: at_bytes,
            length_bytes: 4096,
            force_unit_access: false,
            ordered: false,
        };
        volume.submit(now_ns, arrivals.len() as u32, &request);
        arrivals.push(now_ns);
    }
    latencies.sort_unstable();
    quantiles.map(|quantile| latencies[(latencies.len() as f64 * quantile) as usize] as f64 / 1e6)
}

/// Measured on gp3 (diskplorer): a median of 0.44 ms and a 95th percentile of 0.71 ms, flat up to the limit of 3,000
/// per second. Above it, requests queue without bound.
#[test]
fn gp3_latency_is_flat_up_to_its_limit() {
    for per_s in [500.0, 1_500.0, 2_900.0] {
        let [median, p95] = latencies_ms("aws-gp3-500", per_s, [0.5, 0.95]);
        assert!((median / 0.44 - 1.0).abs() < 0.03 && (p95 / 0.71 - 1.0).abs() < 0.03, "{per_s}/s: {median}, {p95} ms");
    }
    let [median, _] = latencies_ms("aws-gp3-500", 3_100.0, [0.5, 0.95]);
    assert!(median > 500.0, "{median} ms at 3,100/s");
}

/// 3,500 per second for 30 minutes, because nothing is earned above the base of 500; then 500.
#[test]
fn premium_p10_bursts_for_thirty_minutes() {
    let mut host = Busy::new("azure-p10", Kind::Write, 4096);
    assert_count(host.until(1_800 * SECOND_NS), 1_800 * 3_500, "the burst");
    assert_count(host.until(1_900 * SECOND_NS), 100 * 500, "the base");
    let mut host = Busy::new("azure-p10", Kind::Read, MIB as u32);
    let count = host.until(1_800 * SECOND_NS);
    assert_count(count, 1_800 * 170_000_000 / MIB, "170 MB a second");
}

/// Reads and writes of pd-standard have separate limits: 750 and 1,500 per second at 1,000 GiB.
#[test]
fn pd_standard_counts_reads_and_writes_apart() {
    assert_count(Busy::new("gcp-pd-standard-1000", Kind::Read, 4096).until(20 * SECOND_NS), 15_000, "reads");
    assert_count(Busy::new("gcp-pd-standard-1000", Kind::Write, 4096).until(20 * SECOND_NS), 30_000, "writes");
    assert_count(Busy::new("gcp-pd-balanced-500", Kind::Read, 4096).until(10 * SECOND_NS), 60_000, "3,000 + 6 x 500");
    assert_count(Busy::new("gcp-pd-ssd-500", Kind::Read, 4096).until(10 * SECOND_NS), 210_000, "6,000 + 30 x 500");
}

#[test]
fn what_is_not_sold_is_refused_by_its_key() {
    for (kind, gib, iops, rate, expected) in [
        ("gp2", 20_000, "", "", "capacity.size: 20000 GiB is not available; must be 1 to 16384 GiB"),
        ("gp2", 100, "iops = 4000", "", "volume.iops: follows from the size; it cannot be provisioned"),
        ("io2", 4, "iops = 5000", "", "volume.iops: 5000 is not available; must be 100 to 4000 at this size"),
        ("io1", 100, "", "", "volume.iops: this key is missing; must be 100 to 5000 at this size"),
        (
            "gp3",
            100,
            "",
            "throughput = \"1GB/s\"",
            "volume.throughput: 1000000000 bytes/s is not available; must be 131072000 to 786432000",
        ),
    ] {
        let text =
            format!("name = \"x\"\n[capacity]\nsize = \"{gib}GiB\"\n[volume]\ntype = \"{kind}\"\n{iops}\n{rate}");
        let error = volume::resolve(&Document::parse("x.toml", &text).unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Each type can be parsed by its name, has a volume in the catalogue, and is billed in known units.
#[test]
fn every_type_is_sold() {
    for kind in VolumeType::ALL {
        assert_eq!(VolumeType::parse(kind.name()), Some(kind));
        let sold = kind.pricing();
        let entry = volumes().iter().find(|entry| entry.id == sold.base).unwrap();
        let document = Document::parse(entry.file_name, entry.text).unwrap();
        assert_eq!(volume::resolve(&document).unwrap().file.volume.kind, Some(kind));
        let (least, most) = sold.gib;
        for gib in [least, most] {
            let (iops, throughput) = (sold.iops.map(|iops| iops.most), sold.throughput.map(|rate| rate.most));
            for (item, count) in kind.bill(gib, iops, throughput) {
                let unit = item.split_once(':').unwrap().1.split("-over-").next().unwrap();
                assert!(BILLED_UNITS.contains(&unit) && count > 0, "{item}: {count}");
            }
        }
    }
}

/// 80,000 IOPS of io2 fall into three tiers. Each of Azure's sizes is a separate item, and ultra disks are billed by
/// powers of two up to 1 TiB.
#[test]
fn bills_cover_size_and_provisioned_performance() {
    let bill = |kind: VolumeType, gib, iops, rate| {
        let bill = kind.bill(gib, iops, rate);
        bill.iter().map(|(item, count)| format!("{item} {count}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        bill(VolumeType::Io2, 500, Some(80_000), None),
        "io2:GiB-month 500, io2:IOPS-month 32000, io2:IOPS-month-over-32000 32000, io2:IOPS-month-over-64000 16000"
    );
    assert_eq!(bill(VolumeType::Io2, 500, Some(32_000), None), "io2:GiB-month 500, io2:IOPS-month 32000");
    assert_eq!(
        bill(VolumeType::Gp3, 9, Some(4_000), Some(126)),
        "gp3:GiB-month 9, gp3:IOPS-month 1000, gp3:MiB/s-month 1"
    );
    assert_eq!(bill(VolumeType::Gp3, 9, Some(3_000), Some(125)), "gp3:GiB-month 9");
    assert_eq!(bill(VolumeType::PremiumSsd, 1_000, None, None), "premium-ssd-p30:month 1");
    assert_eq!(bill(VolumeType::StandardHdd, 32_767, None, None), "standard-hdd-s80:month 1");
    assert_eq!([500, 1_024, 1_025].map(|gib| VolumeType::UltraDisk.pricing().billed_gib(gib)), [512, 1_024, 2_048]);
    let no_faster =
        VolumeType::PremiumSsd.pricing().sizes.into_iter().filter(|size| !size.is_faster).map(|size| size.name);
    assert_eq!(no_faster.collect::<Vec<_>>(), ["p2", "p3", "p4", "p50"]);
}

/// The complete form of every volume yields the same description and derives nothing.
#[test]
fn volumes_survive_their_complete_form() {
    assert!(volumes().len() >= 20);
    for entry in volumes() {
        let description = described(entry.id);
        let text = volume::description_to_toml(&description, &Default::default());
        let again = volume::resolve(&Document::parse("x.toml", &text).unwrap()).unwrap();
        assert_eq!((again.description, again.derived.len()), (description, 0), "{}", entry.id);
    }
}
