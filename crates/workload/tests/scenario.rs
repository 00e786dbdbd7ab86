//! Every kind of stream on a system with constant latencies.

use std::collections::HashMap;

use crate::fake::files::{EVERYTHING, catalogue};
use crate::fake::{Done, Fake, luns};
use headstack_workload::scenario::{Facts, Scenario, ScenarioRun, StreamKind};
use headstack_workload::{Kind, Span};

const GB: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml("s.toml", &format!("name = \"test\"\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a scenario with one stream that runs for a fixed time.
fn timed(kind: &str) -> Scenario {
    scenario(&format!("run_length = {{ time = \"1h\" }}\n[[streams]]\nname = \"x\"\n{kind}"))
}

fn data_and_log() -> Vec<(String, Span)> {
    luns(&[("data", 10 * GB / 512 * 512), ("log", GB / 512 * 512)])
}

#[test]
fn every_kind_keeps_range_and_count() {
    let everything = scenario(EVERYTHING);
    let luns = data_and_log();
    let outcome = Fake { limit_ns: 20 * S, limit_requests: usize::MAX, ..Fake::default() }.run(&everything, &luns);
    assert_eq!(outcome.issued, outcome.done.len() + outcome.in_flight);
    // The maximum for each stream; the open loop is unbounded.
    let peaks = [7, u32::MAX, 5, 5, 3 * 4, 4 * 3, 3 * 2, 6, 4 * 2, 2];
    for (index, stream) in everything.streams.iter().enumerate() {
        assert!(outcome.stream_peaks[index] <= peaks[index], "{}: {}", stream.name, outcome.stream_peaks[index]);
        let lun = luns.iter().find(|(name, _)| Some(name) == stream.lun.as_ref()).unwrap().1;
        let [from, to] = match stream.range {
            None => [0.0, 1.0],
            Some(range) => [range.from, range.to].map(|mark| match mark {
                headstack_workload::scenario::Mark::Percent(percent) => percent / 100.0,
                headstack_workload::scenario::Mark::Bytes(_) => unreachable!(),
            }),
        };
        let edge = |share: f64| lun.start_bytes + (lun.length_bytes as f64 * share) as u64;
        let done = outcome.of(&stream.name);
        assert!(done.len() > 19, "{}: {} requests", stream.name, done.len());
        for Done { request, .. } in done {
            let end_bytes = request.offset_bytes + u64::from(request.length_bytes);
            assert!(request.length_bytes > 0 && request.offset_bytes.is_multiple_of(512));
            assert!(!request.force_unit_access && !request.ordered, "only a file system or a database needs that");
            assert!(request.offset_bytes + 512 > edge(from) && end_bytes <= edge(to), "{}: {request:?}", stream.name);
        }
    }
    assert!(matches!(outcome.facts("prefill"), Facts::Prefill { done_ns: Some(_), .. }));
    let Facts::Boot { guests } = outcome.facts("guests") else { panic!() };
    assert!(guests.iter().all(|guest| guest.booted_ns.is_some()));
}

#[test]
fn runs_do_not_depend_on_the_polling_order() {
    let everything = scenario(EVERYTHING);
    let run = |seed, reversed| {
        let fake = Fake { limit_ns: 5 * S, limit_requests: usize::MAX, seed, reversed, ..Fake::default() };
        let mut done = fake.run(&everything, &data_and_log()).done;
        done.retain(|done| done.completed_ns < 5 * S);
        // Clients of one stream are identical, so the result does not include which client issues a request.
        let mut issues: Vec<_> = done
            .iter()
            .map(|d| (d.issued_ns, d.stream, d.request.offset_bytes, d.request.length_bytes, d.request.kind as u32))
            .collect();
        issues.sort_unstable();
        issues
    };
    let first = run(1, false);
    assert!(first.len() > 10_000, "{}", first.len());
    assert_eq!(first, run(1, false));
    assert_ne!(first, run(2, false));
    let reversed = run(1, true);
    // Requests that queue for a processor or the network are served in order of arrival.
    let without_host = |issues: &[(u64, u32, u64, u32, u32)]| -> Vec<_> {
        issues.iter().copied().filter(|issue| [0, 1, 2, 3, 8, 9].contains(&issue.1)).collect()
    };
    assert_eq!(without_host(&first), without_host(&reversed));
}

#[test]
fn a_stream_does_not_change_with_its_neighbours() {
    let everything = scenario(EVERYTHING);
    let mut alone = everything.clone();
    alone.streams.retain(|stream| stream.name == "rate");
    alone.pool = None;
    let fake = Fake { limit_ns: 5 * S, limit_requests: usize::MAX, ..Fake::default() };
    let requests =
        |scenario| fake.run(scenario, &data_and_log()).of("rate").iter().map(|d| d.request).collect::<Vec<_>>();
    assert!(requests(&everything) == requests(&alone));
}

#[test]
fn processes_think_between_their_requests() {
    let think = timed(
        "[streams.access]\narrivals = { closed = { queue_depth = 4, think = { fixed = \"3ms\" } } }\n\
         lines = [{ size = \"2KiB\", read_percent = 100, random_percent = 100 }]",
    );
    let outcome = Fake { limit_ns: 40 * S, ..Fake::default() }.run(&think, &data_and_log());
    // Four processes, each with a cycle of 4 ms.
    assert_eq!(outcome.done.len(), 40_000);
    assert!(outcome.client_peaks.iter().all(|&peak| peak == 1));
}

#[test]
fn an_open_loop_issues_at_its_times_however_slow_the_system() {
    let rate = timed(
        "[streams.access]\narrivals = { open = { rate_per_s = 100, process = \"fixed\" } }\n\
         lines = [{ size = \"2KiB\", read_percent = 100, random_percent = 100 }]",
    );
    let outcome = Fake { latency_ns: |_| 10 * S, limit_ns: 20 * S, ..Fake::default() }.run(&rate, &data_and_log());
    let issues: Vec<u64> = outcome.done.iter().map(|done| done.issued_ns).collect();
    let expected: Vec<u64> = (1..=1_000).map(|count| count * 10 * MS).collect();
    assert_eq!(issues, expected);
    assert_eq!(outcome.stream_peaks[0], 1_000);
}

#[test]
fn the_pool_divides_requests_by_their_shares() {
    let outcome = Fake::default().run(&catalogue("emerald-hot-band"), &luns(&[("data", 100 * GB)]));
    let total = outcome.done.len() as f64;
    let mut shares: HashMap<u32, f64> = HashMap::new();
    outcome.done.iter().for_each(|done| *shares.entry(done.stream).or_default() += 1.0 / total);
    let expected = [6.0, 28.0, 14.0, 7.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0];
    for (stream, percent) in (0..).zip(expected) {
        let (share, expected): (f64, f64) = (shares[&stream], percent / 100.0);
        let error = (expected * (1.0 - expected) / total).sqrt();
        assert!((share - expected).abs() < 4.5 * error, "{}: {share}", outcome.names[stream as usize]);
    }
    let reads = outcome.done.iter().filter(|done| done.request.kind == Kind::Read).count() as f64 / total;
    assert!((reads - 0.658).abs() < 0.005, "{reads}");
    assert!(outcome.client_peaks.iter().all(|&peak| peak == 1) && outcome.client_peaks.len() == 15);
    // Most accesses of a hot band go to its start: 75 % go to the first 10 %.
    let band = outcome.of("hot1");
    let (from, width) = (10 * GB, 8 * GB);
    let near = band.iter().filter(|done| done.request.offset_bytes - from < width / 10).count();
    assert!(near as f64 > 0.6 * band.len() as f64, "{near} of {}", band.len());
}

#[test]
fn a_web_server_reads_pages_and_sends_them() {
    let text = |layout: &str| {
        timed(&format!(
            "[streams.web]\nusers = 5\nfiles = 40000\nsmallest_file = \"15KiB\"\nmean_file = \"2MiB\"\n\
             largest_file = \"4MiB\"\nhot_files_percent = 18\nhot_pages_percent = 80\nrequest = \"256KiB\"\n\
             read_ahead = 2\nlayout = {layout}"
        ))
    };
    let lun = luns(&[("data", 90 * GB / 512 * 512)]);
    for layout in ["\"contiguous\"", "{ scattered = { extent = \"8MiB\" } }"] {
        let outcome = Fake::default().run(&text(layout), &lun);
        let Facts::Pages { files, pages, bytes, mean_page_ns, pages_per_s } = *outcome.facts("x") else { panic!() };
        assert_eq!(files, 40_000);
        assert!(outcome.client_peaks.iter().all(|&peak| peak <= 2) && outcome.client_peaks.len() == 5);
        let mean_bytes = bytes as f64 / pages as f64;
        assert!((mean_bytes / (2u64 << 20) as f64 - 1.0).abs() < 0.02, "{mean_bytes}");
        assert!(outcome.transferred_bytes.abs_diff(bytes) <= 5 * (4 << 20));
        // Every byte of a page is read once, and up to five pages are in flight.
        let read_bytes: u64 = outcome.done.iter().map(|done| u64::from(done.request.length_bytes)).sum();
        assert!(read_bytes - bytes <= 5 * (4 << 20), "{read_bytes} {bytes}");
        // In a closed loop without think time, the number of users is rate x time.
        assert!((pages_per_s * mean_page_ns / 1e9 - 5.0).abs() < 0.01, "{pages_per_s} {mean_page_ns}");
        if layout == "\"contiguous\"" {
            // The hot files are the first 18 % of 84 GB.
            let hot = outcome.done.iter().filter(|done| done.request.offset_bytes < 15_100_000_000).count();
            let share = hot as f64 / outcome.done.len() as f64;
            assert!((share - 0.80).abs() < 0.01, "{share}");
        } else {
            let extent = |at_bytes: u64| at_bytes / (8 << 20);
            for Done { request, .. } in &outcome.done {
                let last_bytes = request.offset_bytes + u64::from(request.length_bytes) - 1;
                assert_eq!(extent(request.offset_bytes), extent(last_bytes), "a read goes beyond its extent");
            }
            let high = outcome.done.iter().filter(|done| done.request.offset_bytes > 45 * GB).count();
            assert!(high as f64 > 0.4 * outcome.done.len() as f64, "{high}");
        }
    }
    // A network of 10 MB/s carries five pages of 2 MiB per second.
    let mut slow = text("\"contiguous\"");
    slow.network = Some(headstack_workload::Rate(10e6));
    let outcome = Fake { limit_ns: 1_000 * S, ..Fake::default() }.run(&slow, &lun);
    let Facts::Pages { pages, bytes, .. } = *outcome.facts("x") else { panic!() };
    assert!((bytes as f64 / 10e9 - 1.0).abs() < 0.01 && pages > 4_000, "{bytes} in {pages}");
}

#[test]
fn files_beyond_the_range_are_left_out() {
    let mut web = catalogue("demartek-web");
    let run = |web: &Scenario, size_bytes| {
        Fake { limit_requests: 100, ..Fake::default() }.run(web, &luns(&[("data", size_bytes)]))
    };
    let Facts::Pages { files, .. } = *run(&web, 900 * GB).facts("pages") else { panic!() };
    assert!((420_000..440_000).contains(&files), "{files}");
    let Facts::Pages { files, .. } = *run(&web, 2_000 * GB).facts("pages") else { panic!() };
    assert_eq!(files, 600_000);
    let StreamKind::Web(pages) = &mut web.streams[0].kind else { panic!() };
    (pages.smallest_bytes, pages.mean_bytes, pages.largest_bytes) = (1 << 20, 1 << 20, 1 << 20);
    let outcome = run(&web, 900 * GB);
    assert!(outcome.done.iter().all(|done| [311_296, (1 << 20) % 311_296].contains(&done.request.length_bytes)));
}

#[test]
fn a_boot_storm_ends_and_reports_every_guest() {
    let boot = |image: &str| {
        scenario(&format!(
            "run_length = \"all_done\"\ncpus = 60\n[[streams]]\nname = \"x\"\n[streams.boot]\nguests = 60\n\
             interval = \"3s\"\n{image}\nphases = [\n\
             {{ requests = 100, cpu = \"2ms\", lines = [{{ size = \"4KiB\", read_percent = 90, random_percent = 100 }}] }},\n\
             {{ requests = 300, queue_depth = 3, lines = [{{ size = \"8KiB\", read_percent = 80, random_percent = 0 }}] }}]"
        ))
    };
    let lun = luns(&[("data", 60 * GB)]);
    let outcome = Fake::default().run(&boot(""), &lun);
    assert!(outcome.all_done && outcome.in_flight == 0);
    assert_eq!(outcome.done.len(), 60 * 400);
    let Facts::Boot { guests } = outcome.facts("x") else { panic!() };
    for (guest, boot) in guests.iter().enumerate() {
        assert_eq!(boot.started_ns, guest as u64 * 3 * S);
        // 100 requests take 2 + 1 ms each, one by one; then 300 requests of 1 ms run three at a time.
        assert_eq!(boot.booted_ns, Some(boot.started_ns + 300 * MS + 100 * MS));
        let own = GB * guest as u64..GB * (guest as u64 + 1);
        let mut mine = outcome.done.iter().filter(|done| done.client as usize == guest);
        assert!(mine.all(|done| own.contains(&done.request.offset_bytes)));
    }
    // With linked clones, all guests make the same reads of the same image.
    let outcome = Fake::default().run(&boot("golden_image = { size_percent = 10, reads_percent = 70 }"), &lun);
    let golden = |client: u32| -> Vec<u64> {
        let mine = outcome.done.iter().filter(|done| done.client == client && done.request.offset_bytes < 6 * GB);
        mine.inspect(|done| assert_eq!(done.request.kind, Kind::Read)).map(|done| done.request.offset_bytes).collect()
    };
    let reads = outcome.done.iter().filter(|done| done.request.kind == Kind::Read).count();
    let shared: usize = (0..60).map(|client| golden(client).len()).sum();
    assert!((shared as f64 / reads as f64 - 0.7).abs() < 0.015, "{shared} of {reads}");
    let (first, last) = (golden(0), golden(59));
    assert_eq!(first[..50], last[..50]);
}

fn video(keys: &str) -> Scenario {
    timed(&format!("[streams.video]\nframe = \"640KiB\"\nrequest = \"64KiB\"\n{keys}"))
}

fn frames(fake: &Fake, keys: &str) -> (u64, u64, f64) {
    let outcome = fake.run(&video(keys), &luns(&[("data", 10 * GB)]));
    match *outcome.facts("x") {
        Facts::Frames { complete, dropped, frames_per_s } => (complete, dropped, frames_per_s),
        _ => panic!(),
    }
}

#[test]
fn a_fast_system_drops_no_frame() {
    // A frame takes ten requests of 1 ms; 25 frames per second leave 40 ms for each.
    let fake = Fake { limit_ns: 100 * S - 1, ..Fake::default() };
    for tracks in ["reads = 1", "writes = 1", "reads = 2", "reads = 2\nwrites = 1\ncpu = \"3ms\""] {
        let (complete, dropped, rate) = frames(&fake, &format!("{tracks}\nframes_per_s = 25\nbuffer_frames = 1"));
        assert_eq!((complete, dropped), (2_500, 0), "{tracks}");
        assert!((rate - 25.0).abs() < 1e-3);
    }
}

#[test]
fn a_slow_system_drops_exactly_the_frames_that_are_late() {
    // 50 ms per frame are too long for a buffer of one frame, and just short enough for two.
    let slow = Fake { latency_ns: |_| 5 * MS, limit_ns: 100 * S + 1, ..Fake::default() };
    let (complete, dropped, _) = frames(&slow, "reads = 1\nframes_per_s = 25\nbuffer_frames = 1");
    // Frames 0 to 2,499 are due by the end, and all are late.
    assert_eq!((complete, dropped), (0, 2_500));
    let (complete, dropped, _) = frames(&slow, "reads = 1\nframes_per_s = 25\nbuffer_frames = 2");
    // Frames complete 50 ms after their start; the last one, 2,498, completes at 99.97 s.
    assert_eq!((complete, dropped), (2_499, 0));
    // At 40 ms per frame, each frame completes at the very moment when it is due.
    let just = Fake { latency_ns: |_| 4 * MS, limit_ns: 100 * S, ..Fake::default() };
    let (complete, dropped, _) = frames(&just, "reads = 1\nframes_per_s = 25\nbuffer_frames = 1");
    assert_eq!((complete, dropped), (2_500, 0));
    // The first 100 frames take 60 ms instead of 40. The reader starts a frame at 0, 60, 120, ... ms, each time too
    // late, and skips every third frame, which is already overdue. All of these 100 frames are dropped, and no others.
    fn slow_at_the_start(request: &headstack_workload::Request) -> u64 {
        if request.offset_bytes < 100 * (640 << 10) { 6 * MS } else { MS }
    }
    let partly = Fake { latency_ns: slow_at_the_start, limit_ns: 20 * S - 1, ..Fake::default() };
    let (complete, dropped, _) = frames(&partly, "reads = 1\nframes_per_s = 25\nbuffer_frames = 1");
    assert_eq!((complete, dropped), (400, 100));
}

#[test]
fn video_without_a_rate_goes_as_fast_as_it_can() {
    let fake = Fake { limit_ns: 100 * S, ..Fake::default() };
    for (keys, rate) in [
        ("reads = 1\nbuffer_frames = 1", 100.0),
        ("reads = 1\nbuffer_frames = 1\nqueue_depth = 2", 200.0),
        ("writes = 1\nbuffer_frames = 4", 400.0),
        // 20 requests, 5 ms on a processor, and 10 requests.
        ("reads = 2\nwrites = 1\ncpu = \"5ms\"\nbuffer_frames = 1", 1_000.0 / 35.0),
    ] {
        let (_, dropped, frames_per_s) = frames(&fake, keys);
        assert_eq!(dropped, 0);
        assert!((frames_per_s / rate - 1.0).abs() < 0.01, "{keys}: {frames_per_s}");
    }
}

#[test]
fn video_with_a_frame_limit_ends() {
    let mut scenario = video("reads = 1\nframes_per_s = 25\nbuffer_frames = 3\nframes = 100");
    scenario.run_length = headstack_workload::scenario::ScenarioLength::AllDone;
    let outcome = Fake::default().run(&scenario, &luns(&[("data", 10 * GB)]));
    assert!(outcome.all_done);
    assert!(matches!(*outcome.facts("x"), Facts::Frames { complete: 100, dropped: 0, .. }));
    assert_eq!(outcome.done.len(), 1_000);
}

#[test]
fn transactions_obey_the_interactive_response_time_law() {
    for (clients, cpus) in [(1, 1), (10, 1), (60, 2), (400, 1)] {
        let mut scenario = timed(
            "[streams.transactions]\nclients = 1\nthink = { exponential = \"100ms\" }\ncpu = \"2ms\"\nrequests = 4\n\
             lines = [{ size = \"4KiB\", read_percent = 67, random_percent = 100 }]",
        )
        .with_clients(clients);
        scenario.cpus = cpus;
        let fake = Fake { limit_ns: 500 * S, limit_requests: 2_000_000, ..Fake::default() };
        let outcome = fake.run(&scenario, &data_and_log());
        let Facts::Transactions { transactions, transactions_per_s, mean_latency_ns } = *outcome.facts("x") else {
            panic!()
        };
        // N = X (R + Z), where Z is the mean of the same number of draws.
        let sum = transactions_per_s * (mean_latency_ns / 1e9 + 0.1);
        let error = 4.5 / (transactions as f64).sqrt() + 0.001;
        assert!((sum / f64::from(clients) - 1.0).abs() < error, "{clients}: {sum}");
        let requests = outcome.issued as u64;
        assert!((4 * transactions..=4 * (transactions + u64::from(clients))).contains(&requests), "{requests}");
        // R is at least 2 ms on a processor and four requests of 1 ms. The processors limit X.
        assert!(mean_latency_ns >= 6e6 && transactions_per_s <= f64::from(cpus) * 500.1);
        assert!(clients < 400 || transactions_per_s > 499.0, "{transactions_per_s}");
        assert!(outcome.client_peaks.iter().all(|&peak| peak == 1));
    }
}

#[test]
fn sequential_streams_walk_through_their_regions() {
    let text = "[streams.sequential]\nstreams = 4\ndirection = \"write\"\nblock = \"64KiB\"\nqueue_depth = 3";
    let outcome = Fake::default().run(&timed(text), &luns(&[("data", 4 * GB / 512 * 512)]));
    for client in 0..4 {
        let mine: Vec<_> = outcome.done.iter().filter(|done| done.client == client).map(|done| done.request).collect();
        assert_eq!(mine[0].offset_bytes, u64::from(client) * GB);
        let follows = |pair: &[headstack_workload::Request]| {
            pair[1].offset_bytes == pair[0].offset_bytes + 65_536 || pair[1].offset_bytes == u64::from(client) * GB
        };
        assert!(mine.windows(2).all(follows) && mine.iter().all(|request| request.kind == Kind::Write));
        assert!(mine.len() > GB as usize / 65_536, "no stream reached the end of its region");
        let requests = GB / 65_536;
        let offsets = (0..).map(|at| u64::from(client) * GB + at % requests * 65_536);
        assert!(mine.iter().zip(offsets).all(|(request, expected)| request.offset_bytes == expected));
    }
    assert_eq!(outcome.client_peaks, [3, 3, 3, 3]);
}

#[test]
fn a_prefill_writes_every_byte_once() {
    let lun = luns(&[("data1", 300 << 20), ("data2", (100 << 20) + 512), ("log", 200 << 20)]);
    for (name, clients) in [("prefill-serial", 1), ("prefill-concurrent", 3)] {
        let outcome = Fake::default().run(&catalogue(name), &lun);
        assert!(outcome.all_done && outcome.in_flight == 0);
        assert_eq!(outcome.client_peaks, vec![2; clients]);
        let mut extents: Vec<(u64, u64)> = outcome
            .done
            .iter()
            .inspect(|done| assert_eq!(done.request.kind, Kind::Write))
            .map(|done| (done.request.offset_bytes, u64::from(done.request.length_bytes)))
            .collect();
        if clients == 1 {
            assert!(extents.is_sorted(), "a serial prefill writes one LUN after another");
        }
        extents.sort_unstable();
        let end = extents.iter().fold(0, |next, &(offset, length)| {
            assert_eq!(offset, next, "there is a gap or an overlap");
            next + length
        });
        assert_eq!(end, (600 << 20) + 512);
        let Facts::Prefill { bytes, done_ns } = *outcome.facts("prefill") else { panic!() };
        assert_eq!((bytes, done_ns), (end, Some(outcome.end_ns)));
        // Two requests of 1 ms at a time: 600 MiB and a sector one after another, or 300 MiB for the largest LUN.
        assert_eq!(outcome.end_ns, if clients == 1 { 301 * MS } else { 150 * MS });
    }
}

#[test]
fn the_measured_part_excludes_the_warm_up() {
    let scenario = timed(
        "[streams.transactions]\nclients = 1\nlines = [{ size = \"4KiB\", read_percent = 67, random_percent = 100 }]",
    );
    let mut run = ScenarioRun::new(&scenario, &data_and_log(), 512, 1).unwrap();
    let transactions = |run: &mut ScenarioRun, from: u64, count: u64| {
        for second in from..from + count {
            run.next(0, second * S);
            assert_eq!(run.next(0, second * S), headstack_workload::Step::Await);
            assert!(run.complete(0));
        }
    };
    transactions(&mut run, 0, 10);
    run.start_measuring(10 * S);
    transactions(&mut run, 10, 5);
    let Facts::Transactions { transactions, transactions_per_s, .. } = run.report(15 * S)[0].facts else { panic!() };
    // The last transaction counts only when its client takes its next step.
    assert_eq!((transactions, transactions_per_s), (5, 1.0));
}

#[test]
fn one_request_at_a_time_is_the_default() {
    let peak = |kind: &str| {
        let outcome = Fake { limit_ns: S, ..Fake::default() }.run(&timed(kind), &luns(&[("data", GB)]));
        outcome.client_peaks.iter().copied().max()
    };
    assert_eq!(peak("[streams.prefill]\norder = \"serial\"\nblock = \"64KiB\""), Some(1));
    assert_eq!(peak("[streams.sequential]\nstreams = 2\ndirection = \"read\"\nblock = \"64KiB\""), Some(1));
    let video = "[streams.video]\nreads = 1\nframe = \"640KiB\"\nrequest = \"64KiB\"\nbuffer_frames = 1";
    assert_eq!(peak(video), Some(1));
    let lines = "[{ size = \"4KiB\", read_percent = 90, random_percent = 100 }]";
    let boot =
        format!("[streams.boot]\nguests = 2\ninterval = \"1ms\"\nphases = [{{ requests = 50, lines = {lines} }}]");
    assert_eq!(peak(&boot), Some(1));
}
