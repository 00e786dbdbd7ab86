//! A trace cut anywhere, analysed in parts and merged, gives the report of one pass.

use headstack_trace::analyze::{Analysis, Options, Part, Report, ReuseOptions};
use headstack_trace::{DeviceMeta, Flags, Meta, NOT_RECORDED, Operation, Process, Record};
use headstack_workload::{Purpose, Random};
use proptest::prelude::*;

const K: u64 = 4_096;
const S: u64 = 1_000_000_000;

fn meta() -> Meta {
    let device = |index: u32| DeviceMeta { name: format!("d{index}"), ..DeviceMeta::default() };
    let process = |pid: u32| Process { pid, name: format!("p{pid}") };
    let (devices, processes) = ((0..4).map(device).collect(), (1..4).map(process).collect());
    Meta { resolution_ns: 1_000, devices, processes, ..Meta::default() }
}

fn whole(records: &[Record], options: &Options) -> Report {
    let mut analysis = Analysis::new(options.clone()).unwrap();
    analysis.add(records);
    analysis.finish(&meta())
}

/// Cut before these requests.
fn merged(records: &[Record], cuts: &[usize], options: &Options) -> Report {
    let mut analysis = Analysis::new(options.clone()).unwrap();
    let ends = cuts.iter().copied().chain([records.len()]);
    let mut from = 0;
    for to in ends {
        let (start_ns, now_ns) = (records[0].arrival_ns, records[from.min(records.len() - 1)].arrival_ns);
        let in_flight = records[..from].iter().filter(|record| record.completion_ns() > Some(now_ns));
        let mut part = Part::new(options.clone(), start_ns, &in_flight.copied().collect::<Vec<_>>()).unwrap();
        part.add(&records[from..to]);
        analysis.merge(Part::from_bytes(&part.to_bytes()).unwrap()).unwrap();
        from = to;
    }
    analysis.finish(&meta())
}

/// Requests of a few devices with runs that come back, bursts and pauses, short and long response times.
fn trace() -> impl Strategy<Value = Vec<Record>> {
    let pause_ns = prop_oneof![Just(0), 1u64..5_000, 1u64..3_000_000, 1u64..2 * S, 1u64..100 * S];
    let place = prop_oneof![4 => (0u64..6).prop_map(|run| (true, run)), 1 => (0u64..300).prop_map(|at| (false, at))];
    let response_ns = prop_oneof![Just(NOT_RECORDED), 1u64..10_000, 1u64..30_000_000, 1u64..200 * S];
    let request = (pause_ns, place, 0u32..3, 0usize..6, 1u32..5, response_ns, 0u32..4);
    prop::collection::vec(request, 1..400).prop_map(|requests| {
        let mut ends = [0u64; 18];
        let mut now_ns = 123_456_789;
        let record = |(pause_ns, (runs, at), device, operation, sectors, response_ns, process)| {
            now_ns += pause_ns;
            let run = &mut ends[device as usize * 6 + at as usize % 6];
            let offset_bytes = if runs { at * 40 * K + *run % (64 * K) } else { at * K / 2 };
            *run += u64::from(sectors) * 512;
            let flags = if process == 1 { Flags::SYNC } else { Flags::default() };
            let record = Record::new(now_ns, Operation::ALL[operation], offset_bytes, sectors * 512);
            Record { device, process, response_ns, wait_ns: response_ns / 2, flags, ..record }
        };
        requests.into_iter().map(record).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(headstack_needs::cases(300)))]

    #[test]
    fn parts_merged_are_the_whole(
        records in trace(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(records.len() + 1)).collect();
        cuts.sort_unstable();
        let options = Options::default();
        prop_assert_eq!(merged(&records, &cuts, &options), whole(&records, &options), "cut at {:?}", cuts);
    }
}

/// More streams than are followed, so that those of a part are left within it, and those before it push each other out.
#[test]
fn parts_of_many_streams_are_the_whole() {
    let mut random = Random::new(7, Purpose::Addresses);
    let mut ends = [0u64; 60];
    let record = |index: u64| {
        let stream = random.below(60) as usize;
        let blocks = 1 + random.below(2);
        let offset_bytes = stream as u64 * 1_000 * K + ends[stream] * K;
        ends[stream] += blocks + u64::from(random.below(4) == 0);
        Record::new(index * 10_000, Operation::Read, offset_bytes, (blocks * K) as u32)
    };
    let records: Vec<Record> = (0..3_000).map(record).collect();
    let options = Options::default();
    let expected = whole(&records, &options);
    assert!(expected.sequence.max_concurrent_streams > 5 && expected.sequence.streams.share > Some(0.1));
    for cut in (0..3_000).step_by(191) {
        assert_eq!(
            merged(&records, &[cut, (cut + 40).min(3_000), (cut + 700).min(3_000)], &options),
            expected,
            "{cut}"
        );
    }
}

/// Whether sizes are rounded depends on how many there are, not on their order.
#[test]
fn parts_of_many_sizes_are_the_whole() {
    let record = |index: u64| Record::new(index, Operation::Write, index * K, 1 + (index * 7 % 5_000) as u32 * 3);
    let records: Vec<Record> = (0..12_000).map(record).collect();
    let options = Options::default();
    let expected = whole(&records, &options);
    assert!(expected.sizes.rounded > 1_000 && expected.sizes.sizes.len() < 4_096, "{}", expected.sizes.rounded);
    assert_eq!(expected.sizes.sizes.iter().map(|size| size.requests).sum::<u64>(), 12_000);
    for cuts in [vec![100], vec![3_000, 6_000, 9_000], vec![11_990]] {
        assert_eq!(merged(&records, &cuts, &options), expected, "{cuts:?}");
    }
}

/// Beyond the memory, estimates depend on where parts end: they say so, and stay within their error.
#[test]
fn parts_of_a_sample_are_marked() {
    let mut random = Random::new(3, Purpose::Addresses);
    let record = |index: u64| {
        let most = 1 + random.below(60_000);
        Record::new(index * 1_000, Operation::Read, random.below(most) * K, K as u32)
    };
    let records: Vec<Record> = (0..200_000).map(record).collect();
    let exact = whole(&records, &Options::default());
    let reuse = ReuseOptions { memory_bytes: 100_000, ..ReuseOptions::default() };
    let options = Options { reuse: Some(reuse), working_set_memory_bytes: 200_000, ..Options::default() };
    let sampled = merged(&records, &[50_000, 110_000], &options);
    let (found, exact_reuse) = (sampled.reuse.unwrap(), exact.reuse.unwrap());
    assert!(found.sampled_rate < 0.5 && exact_reuse.sampled_rate == 1.0);
    let at = |points: &[headstack_trace::analyze::CurvePoint], cache: u64| {
        points.iter().rfind(|point| point.cache <= cache).unwrap().miss_ratio
    };
    for cache in [1_000, 10_000, 30_000] {
        let (estimate, exact) = (at(&found.lru_curve, cache), at(&exact_reuse.lru_curve, cache));
        assert!((estimate - exact).abs() < 0.03, "{cache}: {estimate}, {exact}");
    }
    let (found, exact) = (sampled.working_set.unwrap(), exact.working_set.unwrap());
    assert!(found.sampled_rate < 0.5);
    assert!((found.touched_bytes / exact.touched_bytes - 1.0).abs() < 0.05);
    assert!((found.windows[0].mean_bytes / exact.windows[0].mean_bytes - 1.0).abs() < 0.1);
}

#[test]
fn parts_that_do_not_follow_are_refused() {
    let read = |at_ns: u64| Record { response_ns: 50, ..Record::new(at_ns, Operation::Read, 0, 512) };
    let part = |start_ns: u64, earlier: &[Record], at_ns: u64, options: Options| {
        let mut part = Part::new(options, start_ns, earlier).unwrap();
        part.add(&[read(at_ns)]);
        part
    };
    let refused = |later: Part| {
        let mut analysis = Analysis::new(Options::default()).unwrap();
        analysis.add(&[read(10), read(20)]);
        analysis.merge(later).err().map(|error| error.message)
    };
    let (all, options) = ([read(10), read(20)], Options::default());
    assert_eq!(refused(part(10, &all, 30, options.clone())), None);
    let message = |later: Part| refused(later).unwrap();
    assert!(message(part(11, &all, 30, options.clone())).contains("another time"));
    assert!(message(part(10, &all, 19, options.clone())).contains("before the end"));
    assert!(message(part(10, &all[..1], 30, options.clone())).contains("in flight"));
    assert!(message(part(10, &all, 30, Options { block_bytes: 512, ..options })).contains("other options"));
    assert!(Part::from_bytes(b"no part").is_err());
}
