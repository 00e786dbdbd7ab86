//! Iometer's configuration files: the meaning of each part, and errors.

use headstack_jobfiles::{Extent, Job, JobFile, icf};
use headstack_workload::{Arrivals, Think, WarmUp};
use proptest::prelude::*;

/// The four specifications that Iometer's example files made well known.
const CLASSICS: &str = "'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\tFile Server,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t512,10,80,100,0,1,0,0
\t1024,5,80,100,0,1,0,0
\t2048,5,80,100,0,1,0,0
\t4096,60,80,100,0,1,0,0
\t8192,2,80,100,0,1,0,0
\t16384,4,80,100,0,1,0,0
\t32768,4,80,100,0,1,0,0
\t65536,10,80,100,0,1,0,0
'Access specification name,default assignment
\tWeb Server,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t512,22,100,100,0,1,0,0
\t1024,15,100,100,0,1,0,0
\t2048,8,100,100,0,1,0,0
\t4096,23,100,100,0,1,0,0
\t8192,15,100,100,0,1,0,0
\t16384,2,100,100,0,1,0,0
\t32768,6,100,100,0,1,0,0
\t65536,7,100,100,0,1,0,0
\t131072,1,100,100,0,1,0,0
\t524288,1,100,100,0,1,0,0
'Access specification name,default assignment
\tWorkstation,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t8192,100,80,80,0,1,0,0
'Access specification name,default assignment
\tDatabase,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t8192,100,67,100,0,1,4096,0
'END access specifications
";

/// Returns a worker with these specifications and targets.
fn worker(name: &str, depth: u32, specifications: &[&str], targets: &[&str]) -> String {
    let specifications: String = specifications.iter().map(|name| format!("\t{name}\n")).collect();
    let targets: String =
        targets.iter().map(|name| format!("'Target\n\t{name}\n'Target type\n\tDISK\n'End target\n")).collect();
    format!(
        "'Worker\n\t{name}\n'Worker type\n\tDISK\n'Default target settings for worker\n\
         'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\
         \t{depth},DISABLED,1,DISABLED,0\n'Disk maximum size,starting sector,Data pattern\n\t0,0,0\n\
         'End default target settings for worker\n'Assigned access specs\n{specifications}\
         'End assigned access specs\n'Target assignments\n{targets}'End target assignments\n'End worker\n"
    )
}

/// Returns a file with one manager; `cycling` holds lines of the test setup.
fn file(cycling: &str, workers: &[String]) -> String {
    format!(
        "Version 2006.07.27 \n'TEST SETUP ====================================================================\n\
         'Test Description\n\t\n'Run Time\n'\thours      minutes    seconds\n\t0          10         30\n\
         'Ramp Up Time (s)\n\t15\n'Default Disk Workers to Spawn\n\tNUMBER_OF_CPUS\n\
         'Default Network Workers to Spawn\n\t0\n'Record Results\n\tALL\n{cycling}'END test setup\n\
         'RESULTS DISPLAY ===============================================================\n\
         'Record Last Update Results,Update Frequency,Update Type\n\tDISABLED,2,WHOLE_TEST\n\
         'Bar chart 1 statistic\n\tTotal I/Os per Second\n'END results display\n{CLASSICS}\
         'MANAGER LIST ==================================================================\n\
         'Manager ID, manager name\n\t1,TESTBED3\n'Manager network address\n\t\n{}'End manager\n'END manager list\n\
         Version 2006.07.27 \n",
        workers.concat()
    )
}

const DEPTHS: &str = "'Queue Depth Cycling\n'\tstart      end        step       step type\n\
                      \t1          256        4          EXPONENTIAL\n'Test Type\n\tCYCLE_OUTSTANDING_IOS\n";

fn read(text: &str) -> JobFile {
    icf::read("t.icf", text).unwrap_or_else(|error| panic!("{error}"))
}

fn names(file: &JobFile) -> Vec<&str> {
    file.phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn depth(job: &Job) -> u32 {
    match job.workload.arrivals {
        Arrivals::Closed { queue_depth, think: Think::None } => queue_depth,
        other => panic!("{other:?}"),
    }
}

#[test]
fn specifications_of_a_worker_are_run_in_turn() {
    let four = ["File Server", "web server", "Workstation", "Database"];
    let read = read(&file("", &[worker("Worker 1", 4, &four, &["PHYSICALDRIVE:1"])]));
    assert_eq!(names(&read), ["File Server", "Web Server", "Workstation", "Database"]);
    assert_eq!(read.remarks, []);
    let job = &read.phases[0].jobs[0];
    assert_eq!((job.targets.as_slice(), job.direct), (&["PHYSICALDRIVE:1".to_owned()][..], true));
    assert_eq!(job.limits.time_ns, Some(630_000_000_000));
    assert_eq!(job.workload.warm_up, WarmUp { requests: 0, time_ns: 15_000_000_000 });
    assert_eq!(depth(job), 4);
    let lines = &job.workload.specification.lines;
    let shares: Vec<(u32, f64)> = lines.iter().map(|line| (line.size_bytes, line.share_percent)).collect();
    let expected =
        [(512, 10.), (1024, 5.), (2048, 5.), (4096, 60.), (8192, 2.), (16384, 4.), (32768, 4.), (65536, 10.)];
    assert_eq!(shares, expected);
    assert!(lines.iter().all(|line| line.read_percent == 80.0 && line.random_percent == 100.0 && line.burst == 1));
    assert_eq!(read.phases[3].jobs[0].workload.specification.lines[0].align_bytes, Some(4096));
    assert!(read.phases.iter().flat_map(|phase| &phase.jobs).all(|job| job.workload.validate().is_ok()));
}

#[test]
fn queue_depths_cycle_within_each_specification() {
    let two = ["File Server", "Database"];
    let exponential = read(&file(DEPTHS, &[worker("Worker 1", 1, &two, &["C:"])]));
    let depths: Vec<u32> = exponential.phases.iter().map(|phase| depth(&phase.jobs[0])).collect();
    assert_eq!(depths, [1, 4, 16, 64, 256, 1, 4, 16, 64, 256]);
    assert_eq!(exponential.phases[5].name, "Database, outstanding 1");
    let linear = DEPTHS.replace("1          256        4          EXPONENTIAL", "2 9 3 LINEAR");
    let linear = read(&file(&linear, &[worker("Worker 1", 1, &["Database"], &["C:"])]));
    assert_eq!(linear.phases.iter().map(|phase| depth(&phase.jobs[0])).collect::<Vec<_>>(), [2, 5, 8]);
}

#[test]
fn each_target_of_each_worker_has_its_requests() {
    let workers = [worker("A", 8, &["Database"], &["C:", "D:"]), worker("B", 2, &["Database", "Workstation"], &["E:"])];
    let read = read(&file("", &workers));
    let jobs = |phase: usize| -> Vec<(&str, u32, Option<u32>)> {
        read.phases[phase].jobs.iter().map(|job| (job.name.as_str(), depth(job), job.group)).collect()
    };
    assert_eq!(jobs(0), [("A C:", 8, Some(0)), ("A D:", 8, Some(0)), ("B", 2, Some(1))]);
    // The first worker has no second specification.
    assert_eq!(jobs(1), [("B", 2, Some(0))]);
}

#[test]
fn targets_and_workers_cycle() {
    let workers = [worker("A", 1, &["Database"], &["1:", "2:", "3:"]), worker("B", 1, &["Database"], &["4:"])];
    let targets = |kind: &str| -> Vec<Vec<String>> {
        let cycling = format!("'Worker Cycling\n\t1 1 LINEAR\n'Disk Cycling\n\t1 1 LINEAR\n'Test Type\n\t{kind}\n");
        let read = read(&file(&cycling, &workers));
        let of = |phase: &headstack_jobfiles::Phase| phase.jobs.iter().flat_map(|job| job.targets.clone()).collect();
        read.phases.iter().map(of).collect()
    };
    assert_eq!(targets("NORMAL"), [vec!["1:", "2:", "3:", "4:"]]);
    assert_eq!(targets("CYCLE_TARGETS"), [vec!["1:", "4:"], vec!["1:", "2:", "4:"], vec!["1:", "2:", "3:", "4:"]]);
    assert_eq!(targets("CYCLE_WORKERS"), [vec!["1:", "2:", "3:"], vec!["1:", "2:", "3:", "4:"]]);
    let serial = [vec!["1:"], vec!["1:", "2:"], vec!["1:", "2:", "3:"], vec!["1:", "2:", "3:", "4:"]];
    assert_eq!(targets("INCREMENT_TARGETS_SERIAL"), serial);
    assert_eq!(targets("INCREMENT_TARGETS_PARALLEL"), serial);
    let grid = [vec!["1:"], vec!["1:", "2:"], vec!["1:", "2:", "3:"], vec!["1:", "4:"]];
    assert_eq!(targets("CYCLE_WORKERS_AND_TARGETS")[..4], grid);
}

#[test]
fn targets_and_depths_cycle_depth_first() {
    let cycling = format!("'Disk Cycling\n\t1 1 LINEAR\n{}", DEPTHS.replace("IOS\n", "IOS_AND_TARGETS\n"));
    let read = read(&file(&cycling.replace("256 ", "4 "), &[worker("A", 1, &["Database"], &["1:", "2:"])]));
    let seen: Vec<(usize, u32)> = read.phases.iter().map(|phase| (phase.jobs.len(), depth(&phase.jobs[0]))).collect();
    assert_eq!(seen, [(1, 1), (1, 4), (2, 1), (2, 4)]);
}

#[test]
fn built_in_specifications_and_idle_ones_are_known() {
    let own = ["Default", "Idle", "4 KiB aligned; 50% Read; 100% random", "32 KiB; 0% Read; 0% random", "All in one"];
    let read = read(&file("", &[worker("A", 1, &own, &["sda"])]));
    let kept = ["Default", "4 KiB aligned; 50% Read; 100% random", "32 KiB; 0% Read; 0% random", "All in one"];
    assert_eq!(names(&read), kept);
    let lines = |phase: usize| &read.phases[phase].jobs[0].workload.specification.lines;
    let default = &lines(0)[0];
    assert_eq!((default.size_bytes, default.read_percent, default.align_bytes), (2048, 67.0, Some(2048)));
    assert_eq!((lines(1)[0].align_bytes, lines(2)[0].size_bytes), (Some(4096), 32768));
    assert_eq!(lines(3).iter().map(|line| line.share_percent).sum::<f64>(), 100.0);
    assert_eq!((lines(3).len(), lines(3)[0].share_percent, lines(3)[28].share_percent), (29, 4.0, 3.0));
}

#[test]
fn part_seed_and_ignored_settings_are_reported() {
    let changed = file("", &[worker("A", 1, &["Database"], &["sda"])])
        .replace("\t1,DISABLED,1,DISABLED,0", "\t1,ENABLED,100,ENABLED,42")
        .replace("\t0,0,0\n", "\t2048,63,2\n")
        .replace("\t8192,100,67,100,0,1,4096,0", "\t8192,100,67,100,5,3,0,512");
    let read = read(&changed);
    let job = &read.phases[0].jobs[0];
    assert_eq!((job.part.start, job.part.length), (Extent::Bytes(63 * 512), Some(Extent::Bytes(1 << 20))));
    assert_eq!(job.seed, Some(42));
    let line = &job.workload.specification.lines[0];
    assert_eq!((line.delay_ns, line.burst, line.align_bytes), (5_000_000, 3, None));
    let options: Vec<&str> = read.remarks.iter().map(|remark| remark.option.as_str()).collect();
    assert_eq!(options, ["reply", "test connection rate", "Data pattern"]);
    let number = |text: &str| changed.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    assert_eq!(read.remarks[0].line, number("5,3,0,512"));
    assert_eq!(read.remarks[1].line, number("ENABLED,100"));
}

#[test]
fn missing_settings_of_a_file_are_reported() {
    let only = read(&format!("Version 1.1.0 \n{CLASSICS}Version 1.1.0 \n"));
    assert_eq!(names(&only), ["File Server", "Web Server", "Workstation", "Database"]);
    assert!(only.phases.iter().all(|phase| phase.jobs[0].targets.is_empty() && depth(&phase.jobs[0]) == 1));
    let options = |file: &JobFile| file.remarks.iter().map(|remark| remark.option.clone()).collect::<Vec<_>>();
    assert_eq!(options(&only), ["MANAGER LIST", "Run Time"]);
    let idle = read(&file("", &[worker("A", 1, &["Database"], &["sda"]), worker("B", 1, &["Database"], &[])]));
    assert_eq!((idle.phases[0].jobs.len(), options(&idle)), (1, vec!["Target assignments".to_owned()]));
    let none = read(&file("", &[worker("A", 1, &["Database"], &[]), worker("B", 1, &["Database"], &[])]));
    assert_eq!((none.phases[0].jobs.len(), none.remarks.len()), (2, 0));
    let network = worker("N", 1, &["Database"], &[]).replace("\tDISK", "\tNETWORK,TCP");
    let network = read(&file("", &[network, worker("B", 1, &["Database"], &["sda"])]));
    assert_eq!((network.phases[0].jobs.len(), options(&network)), (1, vec!["Worker type".to_owned()]));
}

#[test]
fn specifications_assigned_by_default_go_to_workers_without_any() {
    let text = file("", &[worker("A", 1, &[], &["sda"])])
        .replace("\tWeb Server,NONE", "\tWeb Server,ALL")
        .replace("\tDatabase,NONE", "\tDatabase,DISK")
        .replace("\tWorkstation,NONE", "\tWorkstation,NET")
        .replace("'Assigned access specs\n'End assigned access specs\n", "");
    assert_eq!(names(&read(&text)), ["Web Server", "Database"]);
}

#[test]
fn a_repeated_name_replaces_the_first() {
    let again = "'Access specification name,default assignment\n\tdatabase,NONE\n'size,% of size,% reads\n\
                 \t4096,100,0,0,0,1,0,0\n'END access";
    let text = file("", &[worker("A", 1, &["Database"], &["sda"])]).replace("'END access", again);
    assert_eq!(read(&text).phases[0].jobs[0].workload.specification.lines[0].size_bytes, 4096);
}

#[test]
fn files_before_names_have_six_columns() {
    let text = "Version 1998.03.12\n'TEST SETUP ===\n'Run Time\n\t0 1 0\n'END test setup\n'ACCESS SPECIFICATIONS ===\n\
                '\tsize % of size\n\t2048 60 67 100 0 1\n\t4096 40 100 0 2 4\n\t512 100 0 0 0 1\n\
                'END access specifications\n";
    let read = read(text);
    assert_eq!(names(&read), ["Untitled 1", "Untitled 2"]);
    let lines = &read.phases[0].jobs[0].workload.specification.lines;
    assert_eq!((lines[1].delay_ns, lines[1].burst, lines[1].align_bytes), (2_000_000, 4, None));
}

#[test]
fn what_is_refused_is_one_line_with_its_place() {
    let good = file(DEPTHS, &[worker("A", 1, &["Database"], &["sda"])]);
    for (from, to, expected) in [
        ("Version 2006.07.27 \n'TEST", "'TEST", "t.icf:1: Version: an .icf file must begin with its version"),
        (
            "\t4096,60,80",
            "\t4096,59,80",
            "% of size: the shares of \"File Server\" sum to 99; they must sum to exactly 100",
        ),
        ("\t4096,60,80", "\t4096,60,101", "% reads: \"101\" is not allowed; must be a whole number from 0 to 100"),
        ("\t4096,60,80,100,0,1,0,0", "\t4096,60,80,100,0,1", "align: field 7 is missing"),
        ("\t4096,60,80,100,0,1,0,0", "\t4096,60,80,100,0,1,0,0,7", "reply: more than eight fields"),
        ("\t4096,60,80,100,0,1", "\t4096,60,80,100,0,0", "burst: \"0\" is not allowed"),
        (
            "\tDatabase\n'End assigned",
            "\tDatabse\n'End assigned",
            "Assigned access specs: there is no access specification \"Databse\"; allowed: File Server; Web Server",
        ),
        (
            "\t1,DISABLED,1",
            "\t0,DISABLED,1",
            "Number of outstanding IOs: \"0\" is not allowed; must be a whole number from 1 to 65536",
        ),
        ("\t1,DISABLED,1", "\t1,MAYBE,1", "test connection rate: \"MAYBE\" is not allowed; use ENABLED or DISABLED"),
        (
            "\tCYCLE_OUTSTANDING_IOS",
            "\tCYCLE_ALL",
            "test type: \"CYCLE_ALL\" is not allowed; use NORMAL or CYCLE_TARGETS",
        ),
        ("4          EXPONENTIAL", "0          LINEAR", "Queue Depth Cycling: start and step must be 1 or more"),
        (
            "'Ramp Up Time (s)",
            "'Ramp Down Time",
            "Ramp Down Time: this line is not expected here; allowed: 'Test Description",
        ),
        ("'END manager list\n", "", "END manager list: the file ends before 'END manager list"),
        ("'Worker type\n\tDISK", "'Worker type\n\tTAPE", "worker type: \"TAPE\" is not allowed; use DISK or NETWORK"),
        ("\tFile Server,NONE", "\tFile Server", "default assignment: field 2 is missing"),
        ("0          10         30", "0          10", "seconds: field 3 is missing"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = icf::read("t.icf", &good.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.starts_with("t.icf:") && error.contains(expected), "{error}\n{expected}");
        assert_eq!(error.lines().count(), 1);
    }
    let long = good.replace("\tWeb Server,", &format!("\t{},", "x".repeat(81)));
    assert!(icf::read("t.icf", &long).unwrap_err().to_string().contains("the maximum is 80 characters"));
    let many = format!("{}\t512,0,0,0,0,1,0,0\n", "\t512,1,80,100,0,1,0,0\n".repeat(100));
    let many = good.replace("\t8192,100,80,80,0,1,0,0\n", &many);
    let error = icf::read("t.icf", &many).unwrap_err().to_string();
    assert!(error.contains("\"Workstation\" has 101 lines; the maximum is 100"), "{error}");
}

/// An error names the line of the wrong value.
#[test]
fn errors_name_the_line() {
    let good = file("", &[worker("A", 1, &["Database"], &["sda"])]);
    for (number, line) in good.lines().enumerate().filter(|(_, line)| line.starts_with("\t8192,")) {
        let changed = good.replacen(line, "\tx,100,0,0,0,1,0,0", 1);
        let at = good.lines().position(|other| other == line).unwrap();
        if at == number {
            let error = icf::read("t.icf", &changed).unwrap_err();
            assert_eq!((error.line, error.key.as_str()), (Some(number + 1), "size"));
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,400}") {
        if let Err(error) = icf::read("t.icf", &text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    /// A valid file with one line changed, duplicated or omitted.
    #[test]
    fn no_changed_file_panics(line in 0usize..120, with in "['\t]{0,1}[a-zA-Z0-9, %]{0,40}", how in 0u8..3) {
        let good = file(DEPTHS, &[worker("A", 3, &["Database", "Default"], &["sda", "sdb"])]);
        let mut lines: Vec<&str> = good.lines().collect();
        let line = line % lines.len();
        match how {
            0 => lines[line] = &with,
            1 => lines.insert(line, lines[line]),
            _ => { lines.remove(line); }
        }
        match icf::read("t.icf", &lines.join("\n")) {
            Ok(read) => for job in read.phases.iter().flat_map(|phase| &phase.jobs) {
                prop_assert!(job.workload.validate().is_ok());
            },
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
