//! vdbench's parameter files: the meaning of each definition, and errors.

use std::io;

use headstack_jobfiles::{Extent, Job, JobFile, Phase, Sync, Verify, vdbench};
use headstack_workload::{Addresses, ArrivalProcess, Arrivals};
use proptest::prelude::*;

fn no_include(_: &str) -> io::Result<String> {
    Err(io::Error::from(io::ErrorKind::NotFound))
}

fn try_read(text: &str) -> Result<JobFile, String> {
    vdbench::read("p.txt", text, &[], &no_include).map_err(|error| error.to_string())
}

fn read(text: &str) -> JobFile {
    try_read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a file with one storage, one workload with these parameters, and one run.
fn with(wd: &str) -> String {
    format!(
        "sd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1,iorate=max,elapsed=60,interval=5\n"
    )
}

fn only(text: &str) -> Job {
    let file = read(text);
    assert_eq!((file.phases.len(), file.phases[0].jobs.len()), (1, 1));
    file.phases[0].jobs[0].clone()
}

fn queue_depth(job: &Job) -> u32 {
    match job.workload.arrivals {
        Arrivals::Closed { queue_depth, .. } => queue_depth,
        other => panic!("{other:?}"),
    }
}

fn rate(job: &Job) -> f64 {
    match job.workload.arrivals {
        Arrivals::Open { rate_per_s, .. } => rate_per_s,
        other => panic!("{other:?}"),
    }
}

fn phase_names(file: &JobFile) -> Vec<&str> {
    file.phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn sizes(job: &Job) -> Vec<(u32, f64)> {
    job.workload.specification.lines.iter().map(|line| (line.size_bytes, line.share_percent)).collect()
}

#[test]
fn defaults_are_those_of_vdbench() {
    let job = only("sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n");
    assert_eq!((job.targets.as_slice(), job.name.as_str()), (&["/dev/sdb".to_owned()][..], "wd1 sd1"));
    assert_eq!((queue_depth(&job), sizes(&job)), (8, vec![(4096, 100.0)]));
    let line = &job.workload.specification.lines[0];
    assert_eq!((line.read_percent, line.random_percent, line.align_bytes), (100.0, 100.0, Some(4096)));
    // The first of thirty one-second intervals is excluded from the averages.
    assert_eq!((job.workload.warm_up.time_ns, job.limits.time_ns), (1_000_000_000, Some(29_000_000_000)));
    assert!(job.direct && job.workload.validate().is_ok());
}

#[test]
fn keywords_may_be_short_and_lines_may_go_on() {
    let text = "* a comment\n# another\n/ a third\n\nSD=sd1,lu=/data/f1,si=10g,th=32,openf=(o_direct,o_sync)\n\
                wd=wd1,sd=sd1,\n\n* between\n  xf=(4k,50,8k,50),\nrdp=70.9,se=25  this is a comment\n\
                rd=rd1,wd=wd1,io=max,el=10m,in=1m,wa=2m\neof\nwhat follows is not read\n";
    let job = only(text);
    assert_eq!((queue_depth(&job), sizes(&job)), (32, vec![(4096, 50.0), (8192, 50.0)]));
    let line = &job.workload.specification.lines[0];
    assert_eq!((line.read_percent, line.random_percent, line.align_bytes), (70.0, 25.0, Some(4096)));
    assert_eq!((job.direct, job.sync, job.file_bytes), (true, Sync::Data, Some(10 << 30)));
    assert_eq!((job.workload.warm_up.time_ns, job.limits.time_ns), (120_000_000_000, Some(600_000_000_000)));
}

#[test]
fn sizes_are_one_a_list_or_a_range() {
    assert_eq!(sizes(&only(&with(",xfersize=1m"))), [(1 << 20, 100.0)]);
    // vdbench rounds the sum of 99.7 to 100; headstack's shares are exact.
    let listed = sizes(&only(&with(",xfersize=(512,33.2,1k,33.2,4k,33.3)")));
    assert!((listed.iter().map(|(_, share)| share).sum::<f64>() - 100.0).abs() < 1e-9);
    let between = only(&with(",xfersize=(4k,16k,4k)"));
    assert_eq!(sizes(&between), [(4096, 25.0), (8192, 25.0), (12288, 25.0), (16384, 25.0)]);
    assert_eq!(between.workload.specification.lines[2].align_bytes, Some(4096));
}

#[test]
fn storage_is_chosen_by_name_range_and_asterisk() {
    let storages: String = (1..=5).map(|n| format!("sd=sd{n},lun=/dev/disk{n}\n")).collect();
    for (chosen, expected) in
        [("sd*", vec![1, 2, 3, 4, 5]), ("(sd1,sd3-sd5)", vec![1, 3, 4, 5]), ("(sd2-sd3)", vec![2, 3]), ("sd4", vec![4])]
    {
        let read = read(&format!("{storages}wd=wd1,sd={chosen}\nrd=rd1,wd=wd*,iorate=max\n"));
        let luns: Vec<String> = read.phases[0].jobs.iter().flat_map(|job| job.targets.clone()).collect();
        assert_eq!(luns, expected.iter().map(|n| format!("/dev/disk{n}")).collect::<Vec<_>>(), "{chosen}");
    }
    let counted = read("sd=sd,lun=/dev/disk*,count=(3,2)\nrd=rd1,sd=(sd3-sd4),iorate=max\n");
    assert_eq!(counted.phases[0].jobs[1].targets, ["/dev/disk4"]);
    let joined = format!("concatenatesds=yes\n{storages}wd=wd1,sd=sd*,threads=20\nrd=rd1,wd=wd1,iorate=max\n");
    let job = only(&joined);
    assert_eq!((job.targets.len(), queue_depth(&job)), (5, 20));
}

#[test]
fn defaults_apply_to_later_definitions() {
    let text = "sd=default,threads=4,openflags=directio\nsd=sd1,lun=/a\nsd=default,threads=2\nsd=sd2,lun=/b,threads=6\n\
                sd=sd3,lun=/c\nwd=default,xfersize=64k,rdpct=0\nwd=wd1,sd=sd*\nrd=default,iorate=100,elapsed=20\n\
                rd=rd1,wd=wd1\n";
    let read = read(text);
    let jobs = &read.phases[0].jobs;
    assert_eq!(jobs.iter().map(|job| job.slots).collect::<Vec<_>>(), [4, 6, 2]);
    assert!(jobs.iter().all(|job| job.direct && sizes(job) == [(65536, 100.0)]));
    assert!(jobs.iter().all(|job| (rate(job) - 100.0 / 3.0).abs() < 1e-9));
}

#[test]
fn ranges_and_bands_are_parts() {
    let part = |sd: &str, wd: &str| {
        let job = only(&format!("sd=sd1,lun=/dev/sdb{sd}\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1,iorate=max\n"));
        (job.part.start, job.part.length, job.workload.addresses)
    };
    let percent = (Extent::Percent(10.0), Some(Extent::Percent(20.0)), Addresses::Uniform);
    assert_eq!(part("", ",range=(10,30)"), percent);
    assert_eq!(part(",range=(10,30)", ""), percent);
    let band = Addresses::VdbenchHotband { from_percent: 0.0, to_percent: 100.0 };
    assert_eq!(part("", ",hotband=(10,18)"), (Extent::Percent(10.0), Some(Extent::Percent(8.0)), band.clone()));
    let bytes = |from: u64, length: u64| (Extent::Bytes(from), Some(Extent::Bytes(length)));
    assert_eq!(part("", ",range=(1m,3m)"), (bytes(1 << 20, 2 << 20).0, bytes(0, 2 << 20).1, Addresses::Uniform));
    let sized = part(",size=100m,offset=1m", ",hotband=(10,18)");
    assert_eq!(sized, (bytes(11 << 20, 0).0, bytes(0, 8 << 20).1, band));
    assert_eq!(part(",size=1g", ""), (bytes(0, 0).0, bytes(0, 1 << 30).1, Addresses::Uniform));
    let (_, _, around) = part("", ",range=(90,110)");
    let Addresses::HotBands(bands) = around else { panic!("{around:?}") };
    assert_eq!((bands[0].from_percent, bands[1].to_percent, bands[0].share_percent), (90.0, 10.0, 50.0));
}

#[test]
fn lists_of_a_run_are_nested_in_their_order() {
    let text = "sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\n\
                rd=rd1,wd=wd1,iorate=(100-200,100),forxfersize=(4k-8k,d),forthreads=(1-4,d),elapsed=10\n";
    let read = read(text);
    assert_eq!(read.phases.len(), 12);
    assert_eq!(
        phase_names(&read)[..3],
        [
            "rd1 xfersize=4KiB threads=1 iorate=100",
            "rd1 xfersize=4KiB threads=1 iorate=200",
            "rd1 xfersize=4KiB threads=2 iorate=100"
        ]
    );
    let last = &read.phases[11].jobs[0];
    assert_eq!((sizes(last), last.slots, rate(last)), (vec![(8192, 100.0)], 4, 200.0));
    // A plain keyword is also a list and replaces the default's list.
    let text =
        text.replace("forxfersize=(4k-8k,d),", "forrdpct=(100,0),").replace("iorate=(100-200,100)", "iorate=max");
    let read = try_read(&text.replace("rd=rd1", "rd=default,forthreads=(1,2,3)\nrd=rd1")).unwrap();
    let seen: Vec<(f64, u32)> = read
        .phases
        .iter()
        .map(|phase| (phase.jobs[0].workload.specification.lines[0].read_percent, queue_depth(&phase.jobs[0])))
        .collect();
    assert_eq!(seen, [(100.0, 1), (100.0, 2), (100.0, 4), (0.0, 1), (0.0, 2), (0.0, 4)]);
    let down = with("").replace("iorate=max", "iorate=max,threads=(8-2,d)");
    assert_eq!(try_read(&down).unwrap().phases.iter().map(|phase| phase.jobs[0].slots).collect::<Vec<_>>(), [8, 4, 2]);
}

#[test]
fn arrivals_follow_the_distribution() {
    let process = |distribution: &str| {
        let text = with("").replace("iorate=max", &format!("iorate=500{distribution}"));
        match only(&text).workload.arrivals {
            Arrivals::Open { rate_per_s: 500.0, process } => process,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(process(""), ArrivalProcess::Poisson);
    assert_eq!(process(",dist=det"), ArrivalProcess::Fixed);
    assert_eq!(process(",distribution=exponential"), ArrivalProcess::Poisson);
    let uniform = read(&with("").replace("iorate=max", "iorate=500,dist=u"));
    assert_eq!(uniform.remarks[0].option, "dist");
}

#[test]
fn a_curve_is_a_run_at_max_and_its_points() {
    let text = with("").replace("iorate=max", "iorate=curve,curve=(10,50,100),stopcurve=20");
    let file = read(&text);
    assert_eq!(phase_names(&file), ["rd1", "rd1_(10%)", "rd1_(50%)", "rd1_(100%)"]);
    assert!(file.phases[0].curve_point.is_none() && queue_depth(&file.phases[0].jobs[0]) == 8);
    let point = file.phases[2].curve_point.unwrap();
    assert_eq!((point.max_phase, point.percent, point.stop_response_ns), (0, 50.0, Some(20_000_000)));
    let run = file.phases[2].at_observed(&[12_345.4]);
    assert_eq!((rate(&run.jobs[0]), run.curve_point), (6_200.0, None));
    let default = read(&with("").replace("iorate=max", "iorate=curve"));
    let percent: Vec<f64> =
        default.phases.iter().filter_map(|phase| phase.curve_point).map(|point| point.percent).collect();
    assert_eq!(percent, [10.0, 50.0, 70.0, 80.0, 90.0, 100.0]);
    let relative = read(&with("").replace("iorate=max", "iorate=(max,50%)"));
    assert_eq!(relative.phases[1].curve_point.unwrap().percent, 50.0);
}

/// The load of SNIA's Emerald as vdbench runs it: thirteen streams that share rate and threads by skew.
fn emerald() -> String {
    let mut text = "sd=default,openflags=o_direct\nsd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\n\
        wd=default,sd=sd*,\nxfersize=(8k,31,4k,27,64k,20,16k,5,32k,5,128k,2,1k,2,60k,2,512,2,256k,2,48k,1,56k,1)\n\
        wd=HOTwd_uniform,skew=6,seekpct=100,rdpct=50\n"
        .to_owned();
    for (number, skew, band) in [(1, 28, "10,18"), (2, 14, "32,40"), (3, 7, "55,63"), (4, 5, "80,88")] {
        text += &format!("wd=HOTwd_hot{number},skew={skew},seekpct=rand,hotband=({band}),rdpct=70\n");
    }
    for number in 1..=5 {
        text += &format!("wd=HOTwd_99rseq{number},skew=5,seekpct=1,rdpct=100\n");
    }
    for number in 1..=3 {
        text += &format!("wd=HOTwd_99wseq{number},skew=5,seekpct=1,rdpct=0\n");
    }
    text + "rd=default,elapsed=31m,interval=60\nrd=rd1_hband,wd=HOTwd*,iorate=MAX,threads=30\n\
            rd=rd2_hband,wd=HOTwd*,iorate=1300,threads=30\n"
}

#[test]
fn workloads_share_by_skew() {
    let read = read(&emerald());
    assert_eq!(read.remarks, []);
    let max = &read.phases[0];
    assert_eq!((max.jobs.len(), max.pool), (26, Some(60)));
    assert_eq!(max.jobs.iter().filter_map(|job| job.share_percent).sum::<f64>(), 100.0);
    assert_eq!((max.jobs[2].name.as_str(), max.jobs[2].share_percent), ("HOTwd_hot1 sd1", Some(14.0)));
    assert_eq!(max.jobs[2].part.start, Extent::Percent(10.0));
    // 31 minutes, of which vdbench excludes the first.
    assert_eq!(max.jobs[0].limits.time_ns, Some(1_800_000_000_000));
    let limited = &read.phases[1];
    assert_eq!((limited.pool, rate(&limited.jobs[0]), rate(&limited.jobs[2])), (None, 39.0, 182.0));
    let reads: f64 = limited.jobs.iter().map(|job| rate(job) * job.workload.specification.lines[0].read_percent).sum();
    assert!((reads / 1300.0 - 65.8).abs() < 1e-9, "{reads}");
    // Each storage has thirty threads for its thirteen streams.
    let of_one: u32 = limited.jobs.iter().filter(|job| job.targets == ["/dev/sdb"]).map(|job| job.slots).sum();
    assert_eq!(of_one, 30);
}

#[test]
fn skew_that_is_left_over_is_spread() {
    let text = "sd=sd1,lun=/a\nwd=a,sd=sd1,skew=40\nwd=b,sd=sd1\nwd=c,sd=sd1\nrd=r,wd=*,iorate=1000\n";
    let rates: Vec<f64> = read(text).phases[0].jobs.iter().map(rate).collect();
    assert_eq!(rates, [400.0, 300.0, 300.0]);
    let error = try_read(&text.replace("wd=b,", "wd=b,skew=70,")).unwrap_err();
    assert!(error.contains("p.txt:5: rd: the skew of its workloads sums to"), "{error}");
    // Without skew, threads are divided and no proportions are kept.
    let plain = read(&text.replace(",skew=40", "").replace("iorate=1000", "iorate=max"));
    let threads: Vec<u32> = plain.phases[0].jobs.iter().map(queue_depth).collect();
    assert_eq!((threads, plain.phases[0].pool), (vec![3, 3, 2], None));
    let own = read("sd=sd1,lun=/a\nwd=a,sd=sd1,iorate=50,priority=1\nwd=b,sd=sd1,priority=2\nrd=r,wd=*,iorate=max\n");
    assert_eq!((rate(&own.phases[0].jobs[0]), own.remarks.len()), (50.0, 2));
    queue_depth(&own.phases[0].jobs[1]);
}

#[test]
fn seeks_streams_and_ends() {
    let random = |seek: &str| only(&with(seek)).workload.specification.lines[0].random_percent;
    assert_eq!((random(",seekpct=seq"), random(",seekpct=rand"), random(",seekpct=12.5")), (0.0, 100.0, 12.5));
    assert_eq!(read(&with(",seekpct=seqnz")).remarks[0].option, "seekpct");
    assert_eq!(only(&with(",seekpct=seq,streams=10")).workload.streams, 10);
    let eof = with(",seekpct=eof").replace("lun=/dev/sdb", "lun=/dev/sdb,size=10g");
    assert_eq!(only(&eof).limits.bytes, Some(10 << 30));
    assert_eq!(read(&with(",seekpct=eof")).remarks[0].option, "rd".replace("rd", "seekpct"));
    let data = with("").replace("iorate=max", "iorate=max,maxdata=5g");
    assert_eq!(only(&data).limits.bytes, Some(5 << 30));
}

#[test]
fn included_files_and_variables_are_put_in() {
    let include = |name: &str| match name {
        "sds.txt" => Ok("sd=sd1,lun=$lun\n* end\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let given = [("lun".to_owned(), "/dev/sdz".to_owned()), ("size".to_owned(), "8k".to_owned())];
    let text = "include=sds.txt\nwd=wd1,sd=sd1,xfersize=$size\nrd=rd1,wd=wd1,iorate=max\n";
    let read = vdbench::read("p.txt", text, &given, &include).unwrap();
    let job = &read.phases[0].jobs[0];
    assert_eq!((job.targets[0].as_str(), sizes(job)), ("/dev/sdz", vec![(8192, 100.0)]));
    let error = vdbench::read("p.txt", text, &given[..1], &include).unwrap_err().to_string();
    assert_eq!(error, "p.txt:2: $size: this variable has no value; add NAME=VALUE");
    let error = vdbench::read("p.txt", &text.replace("sds", "x"), &given, &include).unwrap_err().to_string();
    assert!(error.starts_with("p.txt:1: include: x.txt cannot be read: "), "{error}");
    let nested = |_: &str| Ok("\ninclude=other\n".to_owned());
    let error = vdbench::read("p.txt", text, &given, &nested).unwrap_err().to_string();
    assert_eq!(error, "sds.txt:2: include: includes a file; included files must not include others");
}

#[test]
fn an_error_in_an_included_file_prints_no_text_of_it() {
    for line in ["root:$6$hunter2:19000::", "password=hunter2", "sd=sd1,lun=hunter2,size=hunter2", "\"hunter2", "sd=,"]
    {
        let include = |_: &str| Ok(format!("* a remark\n{line}\n"));
        let text = "include=/etc/shadow\nwd=wd1,sd=hunter2,xfersize=4k\nrd=rd1,wd=wd1,iorate=max\n";
        let error = vdbench::read("p.txt", text, &[], &include).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("/etc/shadow", Some(2)), "{line}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{line}: {error}");
    }
}

#[test]
fn pauses_come_before_the_next_run() {
    let text = with("") + "rd=rd2,wd=wd1,iorate=max,pause=30\nrd=rd3,wd=wd1,iorate=max\n";
    let delay = |phase: &Phase| phase.jobs[0].start_delay_ns;
    assert_eq!(read(&text).phases.iter().map(delay).collect::<Vec<_>>(), [0, 0, 30_000_000_000]);
}

#[test]
fn ignored_settings_are_reported() {
    let text = format!(
        "validate=yes\ncompratio=2\nhistogram=(default,1,5,10)\nmessagescan=no\n{}",
        with(",rhpct=50,stride=(8k,16k)")
    )
    .replace("interval=5", "interval=5,startcmd=\"echo a, b\"");
    let read = read(&text);
    let told: Vec<(u32, &str)> = read.remarks.iter().map(|remark| (remark.line, remark.option.as_str())).collect();
    assert_eq!(told, [(1, "validate"), (2, "compratio"), (6, "rhpct"), (6, "stride"), (7, "startcmd")]);
    // The job only reads.
    assert_eq!(read.phases[0].jobs[0].verify, Verify::No);
    assert_eq!(only(&text.replace(",rhpct=50", ",rdpct=0")).verify, Verify::StampAndRead);
}

#[test]
fn what_is_refused_is_one_line_with_its_place() {
    let good = with("");
    for (from, to, expected) in [
        (
            "sd=sd1,lun",
            "fsd=fsd1,anchor",
            "p.txt:2: wd: storage (sd, wd) and trees of files (fsd, fwd) must be in separate job files",
        ),
        (
            "rd=rd1,wd=wd1",
            "rd=rd1,fwd=wd1",
            "p.txt:3: fwd: needs a tree of files; define fsd=NAME,anchor=... before it",
        ),
        ("rd=rd1,", "rg=a\nrd=rd1,", "p.txt:3: rg: job files cannot replay traces"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd2", "p.txt:2: wd: there is no sd=sd2; allowed: sd1"),
        ("rd=rd1,wd=wd1", "rd=rd1,wd=x*", "p.txt:3: rd: there is no wd=x*; allowed: wd1"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,sizes=4k", "p.txt:2: sizes: unknown keyword; allowed: sd, hd, skew, xfersize"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,xfersize=1000", "p.txt:2: xfersize: 1000 is not a multiple of 512 bytes"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,xfersize=(4k,50,8k,40)", "p.txt:2: xfersize: the percentages sum to 90"),
        (
            "wd=wd1,sd=sd1",
            "wd=wd1,sd=sd1,xfersize=(4k,50,8k,40,1k)",
            "p.txt:2: xfersize: use pairs of sizes and percentages",
        ),
        (
            "wd=wd1,sd=sd1",
            "wd=wd1,sd=sd1,xfersize=(8k,4k,1k)",
            "p.txt:2: xfersize: (min,max,align) needs min below max",
        ),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,rdpct=101", "p.txt:2: rdpct: 101 is out of range; must be 0 to 100"),
        (
            "wd=wd1,sd=sd1",
            "wd=wd1,sd=sd1,seekpct=maybe",
            "p.txt:2: seekpct: \"maybe\" is not allowed; use 0 to 100, seq, seqnz, rand or eof",
        ),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,range=10", "p.txt:2: range: 10 is not a range; use percent such as (10,20)"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,seekpct=50,range=(90,110)", "p.txt:2: wd: a range above 100 % wraps around"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=(sd1", "p.txt:2: a parenthesis is not closed"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1,skew=10,iorate=5", "p.txt:2: iorate: a workload definition cannot have both"),
        (
            "wd=wd1,sd=sd1",
            "wd=wd1,sd=sd1,threads=4",
            "p.txt:2: wd: threads in a workload definition need concatenatesds=yes",
        ),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=sd1\nwd=wd1", "p.txt:3: wd: \"wd1\" is already defined"),
        ("wd=wd1,sd=sd1", "wd=wd1,sd=$x", "p.txt:2: $x: this variable has no value"),
        ("lun=/dev/sdb,", "", "p.txt:1: sd: has no lun"),
        ("o_direct", "o_fast", "p.txt:1: openflags: \"o_fast\" is not allowed; allowed: o_direct, directio"),
        ("iorate=max,", "", "p.txt:3: rd: has no iorate; add iorate=max, iorate=curve or a number"),
        (
            "iorate=max",
            "iorate=fast",
            "p.txt:3: iorate: \"fast\" is not a rate; use max, curve, a number or a list of numbers",
        ),
        ("iorate=max", "iorate=50%", "p.txt:3: rd: the rate is a percentage of an earlier run's result"),
        ("iorate=max", "iorate=(1-9)", "p.txt:3: iorate: \"(1-9)\" is not a rate"),
        ("elapsed=60", "elapsed=7", "p.txt:3: rd: elapsed must be at least twice the interval"),
        ("elapsed=60", "elapsed=61", "p.txt:3: rd: elapsed and warmup must be multiples of the interval"),
        ("elapsed=60", "elapsed=soon", "p.txt:3: elapsed: \"soon\" is not a number"),
        ("elapsed=60", "elapsed", "p.txt:3: \"elapsed\" is not a parameter; use keyword=value"),
        ("elapsed=60", "distribution=variable", "p.txt:3: distribution: \"variable\" is not allowed"),
        ("elapsed=60", "forthreads=(1-64,x)", "p.txt:3: forthreads: \"x\" is not a step of a range; use d (doubled)"),
        (
            "sd=sd1,lun",
            "nonsense=1\nsd=sd1,lun",
            "p.txt:1: nonsense: unknown keyword; allowed: hd, sd, wd, fsd, fwd, rd, compression",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let error = try_read(&good.replacen(from, to, 1)).expect_err(to);
        assert!(error.starts_with(expected), "{error}\n{expected}");
        assert_eq!(error.lines().count(), 1);
    }
    assert!(try_read("").unwrap_err().starts_with("p.txt: rd: the file defines no run"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,300}") {
        if let Err(error) = try_read(&text) {
            prop_assert_eq!(error.lines().count(), 1);
        }
    }

    /// Valid parameters with values of all kinds, on their own line and among others.
    #[test]
    fn no_parameters_panic(
        section in 0usize..4,
        words in prop::collection::vec(
            (
                "(si|th|ran|hot|xf|rd|se|sk|str|io|cur|stop|el|in|wa|pa|forth|forxf|dis|maxdata|off|al|open|sd|wd)[a-z]{0,4}",
                "(max|curve|eof|seq|[0-9]{1,19}[kmgt%h]?|\\(([0-9]{1,6}[kmg%]?[,-]){0,4}[0-9d]{0,3}\\)|[a-z*$]{0,6})",
            ),
            0..4,
        ),
    ) {
        let added: String = words.iter().map(|(word, value)| format!(",{word}={value}")).collect();
        let good = emerald();
        let begin = ["sd=default", "wd=default", "rd=default", "rd=rd1_hband"][section];
        match try_read(&good.replacen(begin, &format!("{begin}{added}"), 1)) {
            Ok(read) => for phase in read.phases.iter().take(50) {
                prop_assert!(!phase.jobs.is_empty());
                for job in &phase.jobs {
                    prop_assert_eq!(job.workload.validate(), Ok(()));
                }
            },
            Err(error) => prop_assert_eq!(error.lines().count(), 1),
        }
    }
}

#[test]
fn the_longest_name_of_a_variable_is_replaced_first() {
    let given = [("size".to_owned(), "8k".to_owned()), ("size2".to_owned(), "16k".to_owned())];
    let text = "sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1,xfersize=$size2\nrd=rd1,wd=wd1,iorate=max\n";
    for given in [given.clone(), [given[1].clone(), given[0].clone()]] {
        let read = vdbench::read("p.txt", text, &given, &no_include).unwrap();
        assert_eq!(sizes(&read.phases[0].jobs[0]), [(16_384, 100.0)]);
    }
}

#[test]
fn ranges_double_or_halve_up_to_their_end() {
    let threads = |range: &str| {
        let text = format!("sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,forthreads={range}\n");
        read(&text).phases.iter().map(|phase| phase.jobs[0].slots).collect::<Vec<_>>()
    };
    assert_eq!(threads("(1-8,d)"), [1, 2, 4, 8]);
    assert_eq!(threads("(1-7,d)"), [1, 2, 4]);
    assert_eq!(threads("(8-2,d)"), [8, 4, 2]);
    assert_eq!(threads("(4-4,d)"), [4]);
    assert_eq!(threads("(1-7,3)"), [1, 4, 7]);
    assert_eq!(threads("(0)"), [1], "no threads are one");
}

#[test]
fn a_size_may_be_a_share_of_another() {
    let part = |size: &str| {
        only(&format!("sd=sd1,lun=/dev/sdb,size={size}\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n")).part.length
    };
    assert_eq!(part("100m"), Some(Extent::Bytes(100 << 20)));
    assert_eq!(part("(100m,4)"), Some(Extent::Bytes(25 << 20)));
}
