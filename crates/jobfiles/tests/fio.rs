//! fio's job files and the jobs that they become.

use crate::job_files::{phases, read, try_read};
use headstack_jobfiles::{Content, Extent, Job, JobEngine, Limits, Part, Sync, Verify, Zoning};
use headstack_workload::{Addresses, ArrivalProcess, Arrivals, LoopLength, RunLength, Sequence, Think};

/// Returns the only job of a section `[j]` with these lines.
fn job(lines: &str) -> Job {
    let file = read(&format!("[j]\n{lines}"));
    assert_eq!((file.phases.len(), file.phases[0].jobs.len()), (1, 1), "{lines}");
    file.phases[0].jobs[0].clone()
}

#[test]
fn an_empty_job_has_fios_defaults() {
    let job = job("size=1m\n");
    assert_eq!((job.engine, job.direct, job.sync, job.verify), (JobEngine::Psync, false, Sync::No, Verify::No));
    assert_eq!((job.copies, job.group, job.seed, job.slots), (1, None, None, 1));
    assert_eq!(job.workload.arrivals, Arrivals::Closed { queue_depth: 1, think: Think::None });
    let [line] = &job.workload.specification.lines[..] else { panic!("{:?}", job.workload) };
    assert_eq!((line.size_bytes, line.read_percent, line.random_percent), (4096, 100.0, 0.0));
    assert_eq!(job.targets, ["j.0.0"]);
    assert_eq!((job.file_bytes, job.part.length), (Some(1 << 20), Some(Extent::Bytes(1 << 20))));
    assert_eq!(job.limits, Limits { passes: Some(1.0), ..Limits::default() });
    assert!(job.invalidate && !job.unlink);
}

#[test]
fn loops_repeat_their_requests_unless_the_random_numbers_do_not() {
    let looped = |lines: &str| job(lines).workload.sequence.looped;
    let pass = LoopLength { passes: Some(1.0), ..LoopLength::default() };
    assert_eq!(looped("size=1m\nrw=randread\nloops=3"), Some(pass));
    assert_eq!(looped("size=1m\nnumber_ios=10\nloops=3"), Some(LoopLength { transfers: Some(10), ..pass }));
    assert_eq!(
        looped("size=1m\nio_size=100k\nloops=3"),
        Some(LoopLength { bytes: Some(100 << 10), ..Default::default() })
    );
    for lines in ["size=1m", "size=1m\nloops=3\nrandrepeat=0", "size=1m\nloops=3\ntime_based\nruntime=3"] {
        assert_eq!(looped(lines), None, "{lines}");
    }
}

/// Sizes in the default base, then in the other base.
#[test]
fn units_are_those_of_fio() {
    let bytes = |text: &str| match job(text).part.length {
        Some(Extent::Bytes(bytes)) => bytes,
        other => panic!("{text}: {other:?}"),
    };
    for (text, expected) in [
        ("4096", 4096),
        ("4096b", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KB", 4096),
        ("4kib", 4000),
        ("4Ki", 4000),
        ("1m", 1 << 20),
        ("2G", 2 << 30),
        ("1t", 1 << 40),
        ("1p", 1 << 50),
        ("1mib", 1_000_000),
        ("0x1000", 4096),
        ("(4*1k)", 4096),
        ("(2^12 + 3*(1k - 1000))", 4096 + 72),
        ("${SIZE}", 64 << 20),
        ("4${NONE}k", 4096),
        ("5*1024*1024*$mb_memory/8", 5 * 1024 * 1024 * 125),
        ("$pagesize", 4096),
        ("3*$ncpus/5", 4),
    ] {
        assert_eq!(bytes(&format!("size={text}\n")), expected, "{text}");
    }
    // The base applies wherever it is in the section.
    for (text, expected) in [("4k", 4000), ("4kb", 4000), ("4kib", 4096), ("1gi", 1 << 30), ("4096", 4096)] {
        assert_eq!(bytes(&format!("size={text}\nkb_base=1000\n")), expected, "{text}");
    }
}

#[test]
fn times_have_the_default_unit_of_their_option() {
    for (text, seconds) in [("60", 60.0), ("10s", 10.0), ("5m", 300.0), ("2h", 7200.0), ("1d", 86400.0), ("500ms", 0.5)]
    {
        let job = job(&format!("size=1m\nruntime={text}\ntime_based\n"));
        assert_eq!(job.limits.time_ns, Some((seconds * 1e9) as u64), "{text}");
        assert_eq!(job.limits.passes, None);
    }
    for (text, think_ns) in [("100", 100_000), ("100us", 100_000), ("2ms", 2_000_000), ("1s", 1_000_000_000)] {
        let arrivals = job(&format!("thinktime={text}\n")).workload.arrivals;
        assert_eq!(arrivals, Arrivals::Closed { queue_depth: 1, think: Think::Fixed(think_ns) }, "{text}");
    }
    let job = job("startdelay=3\nramp_time=2m\n");
    assert_eq!((job.start_delay_ns, job.workload.warm_up.time_ns), (3_000_000_000, 120_000_000_000));
}

/// Kinds of requests, randomness and distribution for `rw` and related options.
#[test]
fn every_direction_becomes_its_mix() {
    for (lines, read, random, trim) in [
        ("rw=read", 100.0, 0.0, 0.0),
        ("rw=write", 0.0, 0.0, 0.0),
        ("readwrite=randwrite", 0.0, 100.0, 0.0),
        ("rw=trim", 0.0, 0.0, 100.0),
        ("rw=randtrim", 0.0, 100.0, 100.0),
        ("rw=rw", 50.0, 0.0, 0.0),
        ("rw=randrw\nrwmixread=70", 70.0, 100.0, 0.0),
        ("rw=randrw\nrwmixread=70\nrwmixwrite=60", 40.0, 100.0, 0.0),
        ("rw=randread\npercentage_random=25", 100.0, 25.0, 0.0),
        // The address sequence makes the writes that follow, and so the runs.
        ("rw=randtrimwrite", 0.0, 100.0, 100.0),
        ("rw=randread:4", 100.0, 100.0, 0.0),
    ] {
        let job = job(&format!("{lines}\n"));
        let [line] = &job.workload.specification.lines[..] else { panic!("{lines}: {:?}", job.workload) };
        assert_eq!((line.read_percent, line.random_percent, line.trim_percent), (read, random, trim), "{lines}");
    }
}

#[test]
fn requests_follow_one_another_as_in_fio() {
    let sequence = |lines: &str| job(&format!("{lines}\n")).workload.sequence;
    let plain = Sequence { kinds_apart: true, ..Sequence::default() };
    assert_eq!(sequence("rw=rw"), plain);
    assert_eq!(sequence("rw=randread:8"), Sequence { run: 8, ..plain });
    assert_eq!(sequence("rw=randread:8\nrw_sequencer=identical"), Sequence { run: 8, repeats: true, ..plain });
    assert_eq!(sequence("rw=trimwrite"), Sequence { trim_then_write: true, ..plain });
    // Each offset is trimmed and written, which takes twice as many requests and bytes.
    assert_eq!(job("rw=randtrimwrite\nsize=1m\n").limits.passes, Some(2.0));
    assert_eq!(job("rw=randtrimwrite\nsize=1m\nnumber_ios=10\n").limits.transfers, Some(20));
    let flushed = job("rw=write\nfsync=8\nfdatasync=4\nend_fsync=1\n");
    assert_eq!((flushed.workload.sync_every, flushed.workload.flush_every, flushed.flushes_at_end), (8, 4, true));
}

#[test]
fn zone_options_are_applied() {
    assert_eq!(job("zonesize=1m\nmax_open_zones=3\n").zones, None);
    assert_eq!(job("zonemode=zbd\n").zones, Some(Zoning::default()));
    // 0 is no limit.
    assert_eq!(job("zonemode=zbd\nmax_open_zones=0\njob_max_open_zones=0\n").zones, Some(Zoning::default()));
    let lines = "zonemode=zbd\nzonesize=1m\nzonecapacity=768k\nzoneskip=2z\nmax_open_zones=3\njob_max_open_zones=2\n\
                 ignore_zone_limits=1\nread_beyond_wp=1\nzone_reset_threshold=0.5\nzone_reset_frequency=0.25\n\
                 write_zone_remainder=1\nsize=8z\nio_size=16z\noffset=2z\n";
    let job = job(lines);
    let asked = Zoning {
        size_bytes: Some(1 << 20),
        capacity_bytes: Some(768 << 10),
        skip_bytes: 2 << 20,
        open_max: 3,
        job_open_max: 2,
        ignores_limits: true,
        reads_beyond_pointer: true,
        reset_threshold: 0.5,
        reset_frequency: 0.25,
        writes_remainder: true,
    };
    assert_eq!(job.zones, Some(asked));
    let part = Part { start: Extent::Bytes(2 << 20), length: Some(Extent::Bytes(8 << 20)) };
    assert_eq!((job.part, job.limits.bytes), (part, Some(16 << 20)));
}

#[test]
fn flows_errors_and_contents_are_kept() {
    let flow = job("flow=3\nflow_id=7\nflow_sleep=100\n").flow.unwrap();
    assert_eq!((flow.weight, flow.id, flow.sleep_ns), (3, 7, 100_000));
    assert_eq!(job("").flow, None);
    let rule = |lines: &str| {
        let errors = job(&format!("{lines}\n")).errors;
        (errors.reads_go_on, errors.writes_go_on, errors.end_all)
    };
    assert_eq!(rule(""), (false, false, false));
    assert_eq!(rule("continue_on_error=read"), (true, false, false));
    assert_eq!(rule("continue_on_error=all\nexitall_on_error"), (true, true, true));
    assert_eq!(job("").content, Content::Random);
    assert_eq!(job("zero_buffers\n").content, Content::Pattern(vec![0]));
    assert_eq!(job("buffer_pattern=0xdeadbeef\n").content, Content::Pattern(vec![0xde, 0xad, 0xbe, 0xef]));
    assert_eq!(job("buffer_pattern=\"abc\"\n").content, Content::Pattern(b"abc".to_vec()));
}

#[test]
fn random_places_are_touched_once_by_default() {
    let addresses = |lines: &str| job(&format!("rw=randread\nsize=1g\n{lines}\n")).workload.addresses;
    assert_eq!(addresses(""), Addresses::RandomMap);
    assert_eq!(addresses("random_generator=lfsr"), Addresses::Once);
    assert_eq!(addresses("norandommap"), Addresses::Uniform);
    assert_eq!(addresses("norandommap=0"), Addresses::RandomMap);
    assert_eq!(addresses("random_distribution=zipf:0.8"), Addresses::Zipf { theta: 0.8 });
    assert_eq!(addresses("random_distribution=zipf"), Addresses::Zipf { theta: 1.1 });
    assert_eq!(addresses("random_distribution=pareto:0.3"), Addresses::Pareto { h: 0.3 });
    let normal = |mean_percent| Addresses::Normal { mean_percent, deviation_percent: 20.0 };
    assert_eq!(addresses("random_distribution=normal:20"), normal(50.0));
    assert_eq!(addresses("random_distribution=normal:20:0.25"), normal(25.0));
    let bands = |lines: &str| match addresses(lines) {
        Addresses::HotBands(bands) => {
            bands.iter().map(|band| (band.from_percent, band.to_percent, band.share_percent)).collect::<Vec<_>>()
        }
        other => panic!("{lines}: {other:?}"),
    };
    let expected = [(0.0, 5.0, 50.0), (5.0, 20.0, 30.0), (20.0, 100.0, 20.0)];
    assert_eq!(bands("random_distribution=zoned:50/5:30/15:20/80"), expected);
    assert_eq!(bands("random_distribution=zoned:50/5:30/15:20/"), expected);
    // The target has 1 GiB: 25 % and the rest.
    assert_eq!(bands("random_distribution=zoned_abs:60/256m:40/"), [(0.0, 25.0, 60.0), (25.0, 100.0, 40.0)]);
}

/// Returns the size, share and read percentage of each line of a job.
fn lines_of(lines: &str) -> Vec<(u32, f64, f64)> {
    let job = job(&format!("{lines}\n"));
    job.workload
        .specification
        .lines
        .iter()
        .map(|line| (line.size_bytes, line.share_percent, line.read_percent))
        .collect()
}

#[test]
fn sizes_may_differ_by_kind_and_by_chance() {
    assert_eq!(lines_of("rw=randrw\nbs=4k,8k"), [(4096, 50.0, 100.0), (8192, 50.0, 0.0)]);
    assert_eq!(lines_of("rw=randrw\nbs=,8k"), [(4096, 50.0, 100.0), (8192, 50.0, 0.0)]);
    assert_eq!(lines_of("rw=randrw\nrwmixread=25\nblocksize=16k"), [(16384, 100.0, 25.0)]);
    assert_eq!(lines_of("rw=randread\nbssplit=4k/60:8k/40"), [(4096, 60.0, 100.0), (8192, 40.0, 100.0)]);
    // Entries without a percentage divide the rest evenly; the largest gets the remainder.
    assert_eq!(lines_of("bssplit=4k/50:8k/:16k"), [(4096, 50.0, 100.0), (8192, 25.0, 100.0), (16384, 25.0, 100.0)]);
    assert_eq!(lines_of("bssplit=4k/60:8k/20"), [(4096, 80.0, 100.0), (8192, 20.0, 100.0)]);
    assert_eq!(
        lines_of("rw=randrw\nrwmixread=40\nbssplit=4k/50:8k/50,1k/100"),
        [(4096, 20.0, 100.0), (8192, 20.0, 100.0), (1024, 60.0, 0.0)]
    );
    // Lengths are uniform from the lower end over as many bytes as the upper end, rounded down and limited to the upper
    // end.
    let range = lines_of("rw=randread\nbsrange=1k-4k");
    assert_eq!(range.iter().map(|line| line.0).collect::<Vec<_>>(), [1024, 2048, 3072, 4096]);
    assert!(range.iter().all(|line| (line.1 - 25.0).abs() < 1e-9), "{range:?}");
    assert_eq!(lines_of("bsrange=1k-2560").iter().map(|line| line.1).collect::<Vec<_>>(), [40.0, 40.0, 20.0]);
    assert_eq!(lines_of("bsrange=4k-4k"), [(4096, 100.0, 100.0)]);
    assert_eq!(
        lines_of("rw=randread\npercentage_random=30\nbs=64k,4k\nbs_is_seq_rand=1"),
        [(65536, 70.0, 100.0), (4096, 30.0, 100.0)]
    );
}

#[test]
fn random_offsets_are_multiples_of_the_smallest_size_or_of_blockalign() {
    let align = |lines: &str| job(&format!("{lines}\n")).workload.specification.lines[0].align_bytes;
    assert_eq!(align("rw=randread\nbs=64k"), Some(65536));
    assert_eq!(align("rw=randread\nbssplit=4k/50:64k/50"), Some(4096));
    assert_eq!(align("rw=randread\nbs=64k\nblockalign=512"), Some(512));
    assert_eq!(align("rw=read\nbs=64k"), None);
}

#[test]
fn strides_and_zones_are_gone_through_in_order() {
    let law = |lines: &str| {
        let job = job(&format!("size=1m\n{lines}\n"));
        assert_eq!(job.workload.specification.lines[0].random_percent, 100.0);
        (job.workload.addresses, job.limits.passes, job.limits.bytes)
    };
    let strided = |zone_bytes, step_bytes, backwards| Addresses::Strided { zone_bytes, step_bytes, backwards };
    // 86 of 256 blocks, as in fio.
    assert_eq!(law("rw=read:8k"), (strided(4096, 12288, false), Some(4096.0 / 12288.0), None));
    assert_eq!(law("rw=write:-8k"), (strided(4096, 4096, true), Some(1.0), None));
    // Zones continue through the whole file until the job has transferred its size.
    assert_eq!(law("zonemode=strided\nzonesize=8k\nzoneskip=8k"), (strided(8192, 16384, false), None, Some(1 << 20)));
    assert_eq!(law("zonesize=8k\nzonerange=16k\nzoneskip=8k"), (strided(8192, 24576, false), None, Some(1 << 20)));
}

#[test]
fn rates_are_open_loops_with_as_many_slots_as_iodepth() {
    let arrivals = |lines: &str| {
        let job = job(&format!("ioengine=libaio\ndirect=1\niodepth=8\n{lines}\n"));
        assert_eq!(job.slots, 8);
        job.workload.arrivals
    };
    let open = |rate_per_s, process| Arrivals::Open { rate_per_s, process };
    assert_eq!(arrivals("rate_iops=1000"), open(1000.0, ArrivalProcess::Fixed));
    assert_eq!(arrivals("rate_iops=1000\nrate_process=poisson"), open(1000.0, ArrivalProcess::Poisson));
    assert_eq!(arrivals("rate=1m"), open(256.0, ArrivalProcess::Fixed));
    assert_eq!(arrivals("rate=1m\nbs=64k"), open(16.0, ArrivalProcess::Fixed));
    // Each kind has its own rate, and the rates determine the mix: fio 3.33 with rwmixread=70 also does half of each.
    assert_eq!(arrivals("rw=randrw\nrate_iops=1000\nrwmixread=70"), open(2000.0, ArrivalProcess::Fixed));
    assert_eq!(lines_of("rw=randrw\nrate_iops=1000,500\nrwmixread=10")[0].2.round(), 67.0);
    let each = |lines: &str| job(&format!("{lines}\n")).rates_per_s;
    assert_eq!(each("rw=randrw\nrate_iops=1000,500"), Some([1000.0, 500.0, 0.0]));
    assert_eq!(each("rw=randrw\nrate=4m,1m\nbs=4k,8k"), Some([1024.0, 128.0, 0.0]));
    assert_eq!(each("rw=randread\nrate_iops=1000"), None);
}

#[test]
fn think_time_follows_each_request_or_block_of_requests() {
    let job = job("thinktime=1ms\nthinktime_blocks=16\n");
    assert_eq!(job.workload.arrivals, Arrivals::Closed { queue_depth: 1, think: Think::None });
    assert_eq!(
        (job.workload.specification.lines[0].delay_ns, job.workload.specification.lines[0].burst),
        (1_000_000, 16)
    );
}

#[test]
fn a_job_ends_at_its_first_limit() {
    let limits = |lines: &str| job(&format!("{lines}\n")).limits;
    let none = Limits::default();
    assert_eq!(limits("size=1m\nloops=3"), Limits { passes: Some(3.0), ..none });
    assert_eq!(limits("size=1m\nio_size=4m"), Limits { bytes: Some(4 << 20), ..none });
    assert_eq!(limits("size=1m\nio_limit=100k\nloops=3"), Limits { bytes: Some(300 << 10), ..none });
    assert_eq!(limits("io_size=50%"), Limits { passes: Some(0.5), ..none });
    assert_eq!(limits("number_ios=10\nloops=3"), Limits { transfers: Some(30), passes: Some(3.0), ..none });
    let time_ns = Some(60_000_000_000);
    assert_eq!(limits("runtime=60"), Limits { passes: Some(1.0), time_ns, ..none });
    assert_eq!(limits("timeout=60\ntime_based=1\nio_size=1m\nnumber_ios=5"), Limits { time_ns, ..none });
}

#[test]
fn fio_engines_map_to_io_uring_psync_or_null() {
    for (engine, expected, depth) in [
        ("io_uring", JobEngine::Ring, 32),
        ("libaio", JobEngine::Ring, 32),
        ("posixaio", JobEngine::Ring, 32),
        ("sync", JobEngine::Psync, 1),
        ("pvsync2", JobEngine::Psync, 1),
        ("null", JobEngine::Null, 32),
    ] {
        let job = job(&format!("ioengine={engine}\ndirect=1\niodepth=32\n"));
        assert_eq!((job.engine, job.slots), (expected, depth), "{engine}");
    }
}

/// io_submit(2) returns when a request through the page cache is complete, so fio 3.33 reads from a disk with depth 1.
#[test]
fn libaio_through_the_page_cache_has_one_request_under_way() {
    for (lines, engine, depth, remarked) in [
        ("ioengine=libaio\niodepth=16", JobEngine::Psync, 1, true),
        ("ioengine=libaio\niodepth=16\nbuffered=1", JobEngine::Psync, 1, true),
        ("ioengine=libaio\niodepth=16\ndirect=1", JobEngine::Ring, 16, false),
        ("ioengine=libaio\niodepth=16\nbuffered=0", JobEngine::Ring, 16, false),
        ("ioengine=libaio", JobEngine::Psync, 1, false),
        ("ioengine=io_uring\niodepth=16", JobEngine::Ring, 16, false),
        ("ioengine=posixaio\niodepth=16", JobEngine::Ring, 16, true),
    ] {
        let file = read(&format!("[j]\nsize=1m\n{lines}\n"));
        let job = &file.phases[0].jobs[0];
        assert_eq!((job.engine, job.slots), (engine, depth), "{lines}");
        assert_eq!(!file.remarks.is_empty(), remarked, "{lines}: {:?}", file.remarks);
    }
}

#[test]
fn nvme_commands_are_those_of_the_ring_and_may_force_writes_to_the_medium() {
    let text = "ioengine=io_uring_cmd\ncmd_type=nvme\nfilename=/dev/ng0n1\nbs=4k\nrw=randwrite\nsize=1m\n";
    let plain = job(text);
    assert_eq!(plain.targets, ["/dev/ng0n1"]);
    assert_eq!((plain.engine, plain.sync), (JobEngine::Ring, Sync::No));
    let forced = job(&format!("{text}writefua=1\n"));
    assert_eq!((forced.engine, forced.sync), (JobEngine::Ring, Sync::Data));
    let said = |name: &str| {
        let text = format!("[j]\nioengine=io_uring_cmd\nfilename={name}\nsize=1m\n");
        read(&text).remarks.iter().any(|remark| remark.message.contains("need a character device (/dev/ng0n1)"))
    };
    assert!(said("/dev/nvme0n1") && said("/dev/ng0n1:data.bin") && !said("/dev/ng0n1:/dev/ng1n1"));
}

#[test]
fn exports_are_named_by_their_address() {
    let uri = "nbd+unix:///a?socket=/run/s";
    let file = job(&format!("ioengine=nbd\nuri={uri}\ndirectory=/tmp\niodepth=32\nsize=1m\nrw=randrw\n"));
    assert_eq!((file.engine, file.slots, file.file_bytes), (JobEngine::Ring, 32, None));
    assert_eq!(file.targets, [uri]);
    let with_port = job("ioengine=nbd\nuri=nbd://localhost:10809/x\nsize=1m\n");
    assert_eq!(with_port.targets, ["nbd://localhost:10809/x"]);
}

#[test]
fn flags_of_files_and_writes_are_kept() {
    let written = job("buffered=0\nsync=dsync\nfdatasync=8\nunlink=1\ninvalidate=0\nrandseed=0x89\n");
    assert_eq!((written.direct, written.sync, written.workload.flush_every), (true, Sync::Data, 8));
    assert_eq!((written.unlink, written.invalidate, written.seed), (true, false, Some(0x89)));
    assert!(!job("direct=1\nbuffered=1\n").direct);
    assert_eq!(job("sync=1\nfsync=4\n").sync, Sync::File);
    assert_eq!(job("percentile_list=50:99.9\n").percentiles, [50.0, 99.9]);
    for (lines, expected) in [
        ("rw=write\nverify=crc32c", Verify::StampAndRead),
        ("rw=randrw\nverify=md5\ndo_verify=0", Verify::Stamp),
        ("rw=read\nverify=xxhash", Verify::Check),
        ("rw=write\nverify=xxhash\nverify_only", Verify::Check),
        ("rw=write\nverify=0", Verify::No),
    ] {
        assert_eq!(job(&format!("{lines}\n")).verify, expected, "{lines}");
    }
}

#[test]
fn files_are_named_as_fio_names_them() {
    let targets = |lines: &str| -> Vec<Vec<String>> {
        let file = read(&format!("[j]\nsize=8k\n{lines}\n"));
        file.phases[0].jobs.iter().map(|job| job.targets.clone()).collect()
    };
    assert_eq!(targets("nrfiles=2\nnumjobs=2"), [["j.0.0", "j.0.1"], ["j.1.0", "j.1.1"]]);
    assert_eq!(targets("filename=a\\:b:c"), [["a:b", "c"]]);
    assert_eq!(targets("directory=/d\nfilename=/x/y\nnumjobs=2"), [["/d/x/y"]]);
    assert_eq!(targets("directory=/d:/e\nnumjobs=2"), [["/d/j.0.0"], ["/e/j.1.0"]]);
    assert_eq!(targets("filename_format=$jobname-$filenum\nnumjobs=2"), [["j-0"]]);
    let device = &read("[/dev/sdx]\nsize=50%\noffset=10%\n").phases[0].jobs[0];
    assert_eq!((&device.targets[..], device.file_bytes), (&["/dev/sdx".to_owned()][..], None));
    assert_eq!((device.part.start, device.part.length), (Extent::Percent(10.0), Some(Extent::Percent(50.0))));
}

/// As in fio 3.33, a global name names nothing, and a job's name names its report but not its files.
#[test]
fn names_of_jobs_do_not_name_their_files() {
    let file = read("[global]\nname=shared\nsize=8k\n[a]\n[b]\nname=bb\n[c]\nwait_for=bb\n");
    assert_eq!(phases(&file), [vec!["a", "bb"], vec!["c"]]);
    let jobs = file.phases.iter().flat_map(|phase| &phase.jobs);
    let targets: Vec<&str> = jobs.flat_map(|job| &job.targets).map(String::as_str).collect();
    assert_eq!(targets, ["a.0.0", "b.0.0", "c.0.0"]);
}

/// The bytes are those that fio 3.33 writes.
#[test]
fn patterns_are_texts_bytes_and_numbers() {
    let bytes = |text: &str| match job(&format!("buffer_pattern={text}\n")).content {
        Content::Pattern(bytes) => bytes,
        Content::Random => panic!("{text}"),
    };
    for (text, expected) in [
        ("\"abcd\"-120xdead", &b"abcd\xf4\xff\xff\xff\xde\xad"[..]),
        ("0xdeadface\"abcd\"-12", b"\xde\xad\xfa\xceabcd\xf4\xff\xff\xff"),
        ("-120xdead", b"\xf4\xff\xff\xff\xde\xad"),
        ("0xabc", b"\x0a\xbc"),
        ("0X12", b"\x12"),
        ("1000", b"\xe8\x03"),
        ("65536", b"\x00\x00\x01"),
        ("-256", b"\x00\xff\xff\xff"),
        ("0", b"\x00"),
        ("5-12\"ab\"0x1", b"\x05\xf4\xff\xff\xffab\x01"),
        ("1 2", b"\x01\x02"),
        ("\"%o\"", b"%o"),
        ("\"a\\nb\"", b"a\\nb"),
    ] {
        assert_eq!(bytes(text), expected, "{text}");
    }
}

#[test]
fn size_is_that_of_each_copy_and_shared_by_its_files() {
    // fio 3.33 creates files of 8 KiB for this job: 4 KiB after an offset of 4 KiB.
    let two = job("filename=a:b\noffset=4k\nsize=8k\n");
    assert_eq!((two.file_bytes, two.part.length), (Some(8192), Some(Extent::Bytes(8192))));
    let file = read("[j]\nfilename=/dev/sdx\nsize=1g\noffset_increment=1g\nnumjobs=3\noffset=512\n");
    let starts: Vec<_> = file.phases[0].jobs.iter().map(|job| (job.first_copy, job.copies, job.part.start)).collect();
    let at = |gib: u64| Extent::Bytes((gib << 30) + 512);
    assert_eq!(starts, [(0, 1, at(0)), (1, 1, at(1)), (2, 1, at(2))]);
    let shared = job("filename=f\nnumjobs=4\nsize=1m\n");
    assert_eq!((shared.copies, shared.part.length), (4, Some(Extent::Bytes(1 << 20))));
    // Four files used in turn are four sequential streams.
    assert_eq!(job("filename=a:b:c:d\nsize=4m\n").workload.streams, 4);
    assert_eq!(job("filename=a:b:c:d\nsize=4m\nfile_service_type=sequential\n").workload.streams, 1);
    assert_eq!(job("nrfiles=3\nfilesize=1m-2m\n").part.length, Some(Extent::Bytes(3 << 20)));
}

#[test]
fn barriers_make_phases_and_groups() {
    let file = read(
        "[global]\ngroup_reporting\nfilename=f\n[a]\n[b]\n[c]\nstonewall\n[d]\nnew_group\n[e]\nwait_for=c\n[f]\n\
         exitall\n",
    );
    assert_eq!(phases(&file), [vec!["a", "b"], vec!["c", "d", "f"], vec!["e"]]);
    let groups: Vec<_> = file.phases.iter().flat_map(|phase| phase.jobs.iter().map(|job| job.group)).collect();
    assert_eq!(groups, [Some(0), Some(0), Some(1), Some(2), Some(2), Some(2)]);
    assert!(file.phases.iter().all(|phase| phase.ends_with_first));
    assert_eq!(file.remarks.len(), 1, "{:?}", file.remarks);
    assert_eq!((file.remarks[0].line, file.remarks[0].option.as_str()), (11, "wait_for"));
}

#[test]
fn globals_hold_for_the_jobs_below_them() {
    let file = read("; jobs\n[global]\nbs=8k ; small\nrw=randread # random\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=1m\n");
    let sizes: Vec<u32> =
        file.phases[0].jobs.iter().map(|job| job.workload.specification.lines[0].size_bytes).collect();
    assert_eq!(sizes, [8192, 16384, 1 << 20]);
    let written = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(file.global, written(&[("bs", "16k"), ("rw", "randread")]));
    assert_eq!(file.phases[0].jobs[2].as_written, written(&[("bs", "1m")]));
    // A flag is kept as written: fio prints flags that have a value.
    let file = read("[global]\nthread\nexitall=1\n[a]\nrw=read\nnew_group\nnorandommap=1\n");
    assert_eq!(file.global, written(&[("thread", ""), ("exitall", "1")]));
    assert_eq!(file.phases[0].jobs[0].as_written, written(&[("rw", "read"), ("new_group", ""), ("norandommap", "1")]));
}

#[test]
fn included_lines_belong_to_their_section() {
    let file = read("[a]\nrw=randread\ninclude depth.fio\n[b]\n");
    let slots: Vec<u32> = file.phases[0].jobs.iter().map(|job| job.slots).collect();
    assert_eq!(slots, [16, 1]);
    assert_eq!(file.remarks[0].line, 3);
    assert!(file.remarks[0].message.starts_with("depth.fio:3: "), "{:?}", file.remarks);
}

#[test]
fn what_is_not_done_is_remarked_once_and_in_place() {
    let file = read(
        "[global]\nwrite_hist_log=x\nthread\nscramble_buffers=1\ngtod_reduce=0\n[a]\nverify_fatal=1\n[b]\n\
         latency_target=10ms\n",
    );
    let remarked: Vec<_> = file.remarks.iter().map(|remark| (remark.line, remark.option.as_str())).collect();
    assert_eq!(remarked, [(2, "write_hist_log"), (7, "verify_fatal"), (9, "latency_target")]);
}

#[test]
fn zones_without_a_length_share_the_rest_and_percentages_of_the_span() {
    let bands = |setting: &str| {
        let job = job(&format!("rw=randread\nsize=1m\nrandom_distribution={setting}\n"));
        let Addresses::HotBands(bands) = job.workload.addresses else { panic!() };
        bands.iter().map(|band| (band.from_percent, band.to_percent, band.share_percent)).collect::<Vec<_>>()
    };
    assert_eq!(bands("zoned:50/20:25:25"), [(0.0, 20.0, 50.0), (20.0, 60.0, 25.0), (60.0, 100.0, 25.0)]);
    assert_eq!(bands("zoned:60/10:40/30"), [(0.0, 10.0, 60.0), (10.0, 40.0, 40.0)]);
    assert_eq!(bands("zoned_abs:50/256k:50"), [(0.0, 25.0, 50.0), (25.0, 100.0, 50.0)]);
}

#[test]
fn a_size_is_as_many_requests_of_the_mean_size() {
    let length = |lines: &str| job(&format!("filename=/dev/sdb\n{lines}\n")).workload.run_length;
    assert_eq!(length("bs=4k\nsize=1m"), RunLength::Requests(256));
    assert_eq!(length("rw=randread\nbssplit=4k/50:12k/50\nsize=1m"), RunLength::Requests(128));
}

#[test]
fn parameters_of_distributions_have_bounds() {
    let error = |distribution: &str| {
        let text = format!("[j]\nsize=1m\nrw=randread\nrandom_distribution={distribution}\n");
        try_read(&text).err().map(|error| error.to_string())
    };
    for good in ["zipf:10", "zipf:0.1", "pareto:0.99", "normal:100", "normal:5:1", "normal:5:0"] {
        assert_eq!(error(good), None, "{good}");
    }
    for bad in ["zipf:0", "zipf:10.1", "pareto:0", "pareto:1", "normal:0", "normal:101", "normal:5:1.1"] {
        assert!(error(bad).is_some_and(|error| error.contains("is out of range")), "{bad}");
    }
}

#[test]
fn an_offset_in_percent_is_not_aligned_further() {
    let options = |lines: &str| {
        let file = read(&format!("[j]\nsize=1m\n{lines}\n"));
        file.remarks.iter().map(|remark| remark.option.clone()).collect::<Vec<_>>()
    };
    assert_eq!(options("offset=10%\noffset_align=4k"), ["offset_align"]);
    assert_eq!(options("offset=10%\noffset_align=0"), Vec::<String>::new());
    assert_eq!(options("offset=64k\noffset_align=4k"), Vec::<String>::new());
}

#[test]
fn the_first_size_is_of_sequential_requests_and_the_second_of_random_ones() {
    let lines = job("size=1m\nrw=randread\npercentage_random=30\nbs=64k,4k\nbs_is_seq_rand=1\n");
    let lines = &lines.workload.specification.lines;
    let found: Vec<_> = lines.iter().map(|one| (one.size_bytes, one.share_percent, one.random_percent)).collect();
    assert_eq!(found, [(65_536, 70.0, 0.0), (4_096, 30.0, 100.0)]);
}
