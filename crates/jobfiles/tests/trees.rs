//! vdbench's file system workloads: the meaning of each definition, and errors.

use std::io;

use headstack_jobfiles::trees::{Format, Operation, Order};
use headstack_jobfiles::{JobFile, Sync, TreePhase, vdbench};
use headstack_workload::ArrivalProcess;

fn try_read(text: &str) -> Result<JobFile, String> {
    let no_include = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    vdbench::read("p.txt", text, &[], &no_include).map_err(|error| error.to_string())
}

fn phases(text: &str) -> Vec<TreePhase> {
    let file = try_read(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(file.phases.is_empty());
    file.tree_phases
}

fn only(text: &str) -> TreePhase {
    let [phase] = <[TreePhase; 1]>::try_from(phases(text)).unwrap();
    phase
}

const TREE: &str = "fsd=f,anchor=/mnt/f,depth=2,width=3,files=4,size=8k\n";
const RUN: &str = "rd=r,fwd=w,fwdrate=max,elapsed=10,interval=2\n";

#[test]
fn defaults_are_those_of_vdbench() {
    let phase = only(&format!("{TREE}fwd=w,fsd=f\n{RUN}"));
    assert_eq!((phase.name.as_str(), phase.format, phase.rate_per_s), ("r", Format::No, None));
    assert_eq!((phase.time_ns, phase.interval_ns, phase.warm_up_ns), (10_000_000_000, 2_000_000_000, 0));
    assert_eq!((phase.process, phase.verify), (ArrivalProcess::Poisson, false));
    let [tree] = &phase.trees[..] else { panic!() };
    assert_eq!((tree.depth, tree.width, tree.files, tree.has_files_everywhere), (2, 3, 4, false));
    assert_eq!((tree.anchor.as_str(), &tree.sizes[..]), ("/mnt/f", &[(8_192, 100.0)][..]));
    assert_eq!((tree.folders(), tree.folders_with_files(), tree.members()), (Some(12), Some(9), Some(12 + 36)));
    let [load] = &phase.loads[..] else { panic!() };
    assert_eq!((load.operation, load.files, load.requests), (Operation::Read, Order::Sequential, Order::Sequential));
    assert_eq!((load.threads, &load.sizes[..], load.share_percent), (1, &[(4_096, 100.0)][..], None));
}

#[test]
fn parameters_are_taken() {
    let phase = only(
        "validate=yes\nfsd=default,files=10,sizes=(4k,25,1m,75),totalsize=1g,wss=100m,distribution=all,openflags=directio\n\
         fsd=a,anchor=/a,depth=1,width=2\nfsd=b,anchor=/b,depth=1,width=2,openflags=fsync\n\
         fwd=default,threads=8\n\
         fwd=one,fsd=a,operation=write,fileio=random,fileselect=random,xfersizes=(4k,50,8k,50),stopafter=5,skew=70\n\
         fwd=two,fsd=a,operation=copy,target=b\n\
         fwd=three,fsd=b,operation=read,rdpct=80,fileselect=once,openflags=o_dsync\n\
         rd=r,fwd=*,fwdrate=500,format=(restart),warmup=4,elapsed=20,interval=2,distribution=d\n",
    );
    assert_eq!((phase.format, phase.rate_per_s, phase.verify), (Format::Restart, Some(500.0), true));
    assert_eq!((phase.process, phase.warm_up_ns), (ArrivalProcess::Fixed, 4_000_000_000));
    let [a, b] = &phase.trees[..] else { panic!() };
    assert_eq!((a.sizes.as_slice(), a.total_bytes), (&[(4_096, 25.0), (1 << 20, 75.0)][..], Some(1 << 30)));
    assert_eq!((a.used_bytes, a.has_files_everywhere, b.anchor.as_str()), (Some(100 << 20), true, "/b"));
    let [one, two, three] = &phase.loads[..] else { panic!() };
    assert_eq!((one.operation, one.requests, one.files), (Operation::Write, Order::Random, Order::Random));
    assert_eq!((one.sizes.as_slice(), one.requests_per_file), (&[(4_096, 50.0), (8_192, 50.0)][..], Some(5)));
    assert_eq!(
        (one.direct, one.share_percent, two.share_percent, three.share_percent),
        (true, Some(70.0), Some(15.0), Some(15.0))
    );
    assert_eq!((two.operation, two.tree, two.to_tree), (Operation::Copy, 0, Some(1)));
    assert_eq!((three.read_percent, three.files, three.sync), (Some(80.0), Order::Once, Sync::Data));
    assert!(phase.loads.iter().all(|load| load.threads == 8));
}

#[test]
fn each_list_value_expands_to_a_run() {
    let run = "rd=r,fwd=w,fwdrate=(10,20),format=only,operations=(create,delete),forfiles=(1,2)\n";
    let all = phases(&format!("{TREE}fwd=w,fsd=f\n{run}"));
    let names: Vec<&str> = all.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(
        names[..3],
        [
            "r operation=create files=1 fwdrate=10",
            "r operation=create files=1 fwdrate=20",
            "r operation=create files=2 fwdrate=10"
        ]
    );
    assert_eq!((all.len(), all[7].trees[0].files), (8, 2));
    assert!(all.iter().all(|phase| phase.loads.is_empty() && phase.format == Format::Anew), "nothing but the format");
    let many =
        phases("fsd=f,anchor=/m/f*,files=1,size=4k,count=(3,2)\nfwd=w,fsd=f*,operation=open\nrd=r,fwd=w,fwdrate=1\n");
    let anchors: Vec<&str> = many[0].trees.iter().map(|tree| tree.anchor.as_str()).collect();
    assert_eq!(anchors, ["/m/f3", "/m/f4"]);
    assert_eq!(many[0].loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(), ["w f3", "w f4"]);
}

#[test]
fn invalid_values_are_refused_with_the_allowed_ones() {
    let with = |fwd: &str| format!("{TREE}fwd=w,fsd=f{fwd}\n{RUN}");
    for (text, complaint) in [
        (with(",operation=fly"), "p.txt:2: operation: \"fly\" is not an operation; allowed: mkdir, rmdir"),
        (with(",operation=copy"), "p.txt:2: fwd: copy needs a destination tree"),
        (
            with(",operation=delete,rdpct=5"),
            "p.txt:2: fwd: rdpct mixes reads and writes; the operation delete does not",
        ),
        (with(",fileselect=poisson"), "p.txt:2: fileselect: use random, sequential or once"),
        (with(",skew=50"), "p.txt:3: rd: the skew of the loads sums to 50"),
        (
            with(",skew=60")
                .replace("rd=", "fwd=w2,fsd=f,skew=40.5\nfwd=w3,fsd=f\nrd=")
                .replace("fwd=w,fwdrate", "fwd=w*,fwdrate"),
            "p.txt:5: rd: the skew of the loads sums to 100.5",
        ),
        (with("x"), "p.txt:2: fwd: there is no fsd=fx; allowed: f"),
        (with("").replace("anchor=/mnt/f,", ""), "p.txt:1: fsd: has no anchor"),
        (with("").replace("width=3,", ""), "p.txt:1: fsd: has a depth but no width"),
        (with("").replace("files=4", "files=1000000000"), "p.txt:1: fsd: depth, width and files yield more than"),
        (with("").replace("size=8k", "sizes=(4k,50,8k,40)"), "p.txt:1: sizes: the percentages sum to 90"),
        (with("").replace("fwdrate=max,", ""), "p.txt:3: rd: has no fwdrate"),
        (with("").replace("fwdrate", "iorate"), "p.txt:3: iorate: is a rate of requests to storage"),
        (with("").replace("interval=2", "interval=20"), "p.txt:3: rd: elapsed must be at least the interval"),
        (format!("{TREE}sd=s,lun=/dev/sdb\n"), "p.txt:2: sd: storage (sd, wd) and trees of files"),
        (format!("{TREE}fwd=w,fsd=f\n"), "p.txt: rd: the file defines no run"),
        (
            format!("{}{TREE}fwd=w,fsd=f\n{RUN}", TREE.replace("fsd=f", "fsd=f*").replace("8k", "8k,count=(1,1)"))
                .replace("\nfsd=f,", "\nfsd=f1,"),
            "p.txt:2: fsd: \"f1\" is already defined",
        ),
    ] {
        let error = try_read(&text).unwrap_err();
        assert!(error.starts_with(complaint), "{error}\n{complaint}");
    }
    let remarks =
        try_read(&with(",host=h2,fileio=(seq,delete)").replace("interval=2", "interval=2,pause=5")).unwrap().remarks;
    let lines: Vec<(u32, &str)> = remarks.iter().map(|remark| (remark.line, remark.option.as_str())).collect();
    assert_eq!(lines, [(2, "host"), (2, "fileio"), (3, "pause")]);
    // Reads of files are checked; reads of storage are not.
    assert_eq!(try_read(&format!("validate=yes\n{}", with(""))).unwrap().remarks, []);
}
