//! fio's job files and command lines: errors, and agreement with the real fio and its examples.

use crate::job_files::{environment, include, phases, read, try_read};
use headstack_jobfiles::{JobFile, fio};
use headstack_needs::{Need, lacks};
use headstack_workload::InputError;
use proptest::prelude::*;

fn error(text: &str) -> String {
    match try_read(text) {
        Ok(file) => panic!("{text:?} is accepted as {file:?}"),
        Err(error) => error.to_string(),
    }
}

/// Rejected input and the beginning of its error message.
#[test]
fn errors_name_file_line_option_and_allowed_values() {
    for (text, expected) in [
        ("bs=4k\n", "test.fio:1: bs: is before the first [section]"),
        ("[j]\niodepht=4\n", "test.fio:2: iodepht: unknown option; did you mean iodepth"),
        ("[j]\nqqqqqqqqqq\n", "test.fio:2: qqqqqqqqqq: unknown option; see `fio --cmdhelp=all`"),
        ("[j\n", "test.fio:1: \"[j\" has no closing bracket"),
        ("[j]\n\nbs=4q\n", "test.fio:3: bs: \"4q\" is invalid; use a whole number"),
        ("[j]\nsize=1.5m\n", "test.fio:2: size: \"1.5m\" is invalid"),
        ("[j]\nsize=110%\n", "test.fio:2: size: \"110%\" is too large; the maximum is 100%"),
        ("[j]\nsize=3z\n", "test.fio:2: size: a number of zones needs a zone size"),
        ("[j]\nsize=99999999999g\n", "test.fio:2: size: \"99999999999g\" exceeds 2^64"),
        ("[j]\nruntime=5w\n", "test.fio:2: runtime: \"5w\" is invalid; use a whole number with an optional us"),
        ("[j]\ndirect\n", "test.fio:2: direct: the value is missing"),
        ("[j]\ndirect=2\n", "test.fio:2: direct: \"2\" is not allowed; use 0 or 1"),
        ("[j]\nrw=randreed\n", "test.fio:2: rw: \"randreed\" is not allowed; allowed: read, write"),
        ("[j]\nrwmixread=101\n", "test.fio:2: rwmixread: 101 is out of range; must be 0 to 100"),
        ("[j]\niodepth=0\n", "test.fio:2: iodepth: 0 is out of range; must be 1 or more"),
        ("[j]\niodepth=100000\n", "test.fio:2: iodepth: 100000 is out of range; must be 1 to 65536"),
        ("[j]\nnumjobs=5000\n", "test.fio:2: numjobs: 5000 is out of range; must be 1 to 4096"),
        ("[j]\nnumjobs=300\nnrfiles=300\n", "test.fio:3: nrfiles: there are more than 65536 files"),
        ("[j]\nbs=4k,4k,4k,4k\n", "test.fio:2: bs: \"4k,4k,4k,4k\" has more than three values"),
        ("[j]\nbs=8g\n", "test.fio:2: bs: 8589934592 bytes is too large"),
        ("[j]\nbssplit=4k/60:8k/60\n", "test.fio:2: bssplit: the percentages of \"4k/60:8k/60\" sum to 120"),
        ("[j]\nbsrange=4k\n", "test.fio:2: bsrange: \"4k\" is not a range"),
        ("[j]\nrw=randread\nrandom_distribution=zipf:0\n", "test.fio:3: random_distribution: \"0\" is out of range"),
        ("[j]\nrw=randread\nrandom_distribution=zoned:50/5:30/95\n", "test.fio:3: random_distribution: the shares of"),
        ("[j]\nrw=randrw\nrate_iops=1000,\n", "test.fio:3: rate_iops: covers only some kinds of requests; give"),
        ("[j]\ndedupe_percentage=30\n", "test.fio:2: dedupe_percentage: not supported: data is always random, zeros"),
        ("[j]\nscramble_buffers=0\n", "test.fio:2: scramble_buffers: not supported: writes never repeat"),
        ("[global]\nend_syncfs=1\n[j]\n", "test.fio:2: end_syncfs: not supported: a whole file system"),
        ("[j]\nsync_file_range=write:8\n", "test.fio:2: sync_file_range: not supported: sync_file_range(2)"),
        ("[j]\nbuffer_pattern='f'\n", "test.fio:2: buffer_pattern: \"'f'\" names a file, which is not supported"),
        ("[j]\nrw=read:-4k\n", "test.fio:2: rw: -4096 bytes would give every request the same offset"),
        ("[j]\nzonemode=strided\n", "test.fio:2: zonemode: strided zones need a size; add zonesize"),
        ("[j]\nverify_interval=x\n", "test.fio:2: verify_interval: \"x\" is invalid"),
        (
            "[j]\nioengine=io_uring_cmd\nwrite_mode=zeroes\n",
            "test.fio:3: write_mode: zeroes commands are not supported; use write",
        ),
        ("[j]\nioengine=nbd\n", "test.fio:2: ioengine: job [j] names no export; add uri=nbd://HOST:PORT/EXPORT"),
        ("[j]\nioengine=nbd\nuri=/dev/nbd0\n", "test.fio:3: uri: \"/dev/nbd0\" is not the address of an export"),
        ("[j]\nioengine=net\n", "test.fio:2: ioengine: the engine net of job [j] does not access files"),
        (
            "[j]\nioengine=libaoi\n",
            "test.fio:2: ioengine: \"libaoi\" of job [j] is not an engine of fio; did you mean libaio",
        ),
        (
            "[j]\nread_iolog=x\n",
            "test.fio:2: read_iolog: not supported: a job cannot replay; use headstack trace replay LOG",
        ),
        ("[j]\nwait_for=k\n", "test.fio:2: wait_for: there is no job \"k\" before this one"),
        ("[j]\noffset=1m\noffset_increment=1%\nnumjobs=2\n", "test.fio:3: offset_increment: the offset and its"),
        ("[j]\nsize=(1/0)\n", "test.fio:2: size: \"(1/0)\" divides by 0"),
        ("[j]\nsize=(1\n", "test.fio:2: size: \"(1\" has no closing parenthesis"),
        ("[j]\nsize=8*$mb_memory+\n", "test.fio:2: size: \"8*1000+\" is invalid"),
        ("[j]\nloops=18446744073709551615\nio_size=2\n", "test.fio:3: io_size: 18446744073709551615 loops of 2"),
        ("[j]\ninclude none.fio\n", "test.fio:2: include: \"none.fio\": no such file"),
        ("[j]\ninclude bad.fio\n", "bad.fio:2: is not valid; the line is not shown"),
        ("[j]\ninclude section.fio\n", "section.fio:1: begins a section; included files must not have sections"),
        ("[j]\ninclude self.fio\n", "self.fio:1: include: nests includes too deeply"),
    ] {
        let found = error(text);
        assert!(found.starts_with(expected), "{text:?}:\n  {found}\n  {expected}");
        assert_eq!(found.lines().count(), 1);
    }
}

#[test]
fn an_error_in_an_included_file_prints_no_text_of_it() {
    for line in
        ["root:$6$hunter2:19000::", "password=hunter2", "size=hunter2", "[hunter2", "include hunter2", "rw=hunter2"]
    {
        let include = |name: &str| match name {
            "/etc/shadow" => Ok(format!("# a remark\n{line}\n")),
            _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        let text = "[j]\nrw=randread\ninclude /etc/shadow\n";
        let error = fio::read("test.fio", text, &[], &|_| None, &include).unwrap_err().to_string();
        assert!(error.starts_with("/etc/shadow:2: ") && !error.contains("hunter2"), "{line}: {error}");
    }
}

#[test]
fn arguments_are_read_as_fio_reads_them() {
    let read = |line: &str| {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        fio::from_arguments(&arguments)
    };
    let file = read(
        "fio --filename=/dev/sdx --direct=1 --output-format=json --name=a --rw randread --time_based \
         --runtime=5 --name=b --rw=write --stonewall",
    )
    .unwrap();
    assert_eq!(phases(&file), [["a"], ["b"]]);
    assert!(file.phases.iter().all(|phase| phase.jobs[0].direct && phase.jobs[0].targets == ["/dev/sdx"]));
    assert_eq!(file.phases[0].jobs[0].limits.time_ns, Some(5_000_000_000));
    assert_eq!(file.remarks.len(), 1);
    assert_eq!((file.remarks[0].line, file.remarks[0].option.as_str()), (4, "output-format"));
    assert_eq!(file.global.len(), 2);
    assert_eq!(phases(&read("--name=global --bs=8k --name=a").unwrap()), [["a"]]);
    let message = |line: &str| read(line).unwrap_err().to_string();
    assert!(
        message("--name=a --bss=4k").starts_with("bss: unknown option; did you mean bs,"),
        "{}",
        message("--name=a --bss=4k")
    );
    assert!(message("--name=a --bs=x").starts_with("bs: \"x\" is invalid"));
    assert!(message("--name=a job.fio").starts_with("job.fio: is not an option"));
}

/// Runs fio if it is installed.
fn fio_program(arguments: &[&str]) -> Option<std::process::Output> {
    std::process::Command::new("fio").args(arguments).output().ok()
}

/// The reader knows every option that the installed fio prints.
#[test]
fn every_option_of_the_installed_fio_is_known() {
    let Some(help) = fio_program(&["--cmdhelp=all"]) else { return lacks(Need::Programs, "fio is not installed") };
    let help = String::from_utf8(help.stdout).unwrap();
    let names: Vec<&str> = help.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert!(names.len() > 150, "{help}");
    for name in names {
        let outcome = try_read(&format!("[j]\n{name}=1\n"));
        let is_unknown = outcome.is_err_and(|error| error.message.contains("unknown option"));
        assert!(!is_unknown, "{name}");
    }
}

/// fio accepts everything that the reader accepts.
#[test]
fn the_installed_fio_accepts_the_samples() {
    let samples = [
        "[global]\nkb_base=1000\nsize=64m\n[a]\nbs=4kib\nrw=randrw\nrwmixread=70\n[b]\nstonewall\nrw=read:8k\n",
        "[a]\nsize=1g\nrw=randread\nrandom_distribution=zoned:50/5:30/15:20/\nnumjobs=3\ngroup_reporting\n[b]\n\
         wait_for=a\nsize=1m\n",
        "[a]\nsize=1g\nrw=randrw\nbssplit=4k/60:8k/20,1k/100\npercentage_random=50,20\nthinktime=1ms\n\
         thinktime_blocks=4\n",
        "[a]\nsize=1g\nbsrange=1k-4k,2k-8k\nblockalign=512\nrate=1m,2m\nrate_process=poisson\nruntime=5m\ntime_based\n",
        "[a]\nsize=10%\nfilename=a\\:b:c\nio_size=50%\noffset=10%\nioengine=libaio\niodepth=16\nrw=write:-8k\nbs=16k\n",
        "[a]\nsize=1g\nzonemode=strided\nzonesize=1m\nzoneskip=1m\nverify=crc32c\nrw=write\nfsync=32\nsync=dsync\n",
        "[a]\nsize=1g ; all\nrandom_distribution=normal:20\nrw=randread\npercentile_list=50:99.9\nexitall\n\
         exit_what=stonewall\n",
    ];
    for (index, sample) in samples.iter().enumerate() {
        read(sample);
        let path = std::env::temp_dir().join(format!("headstack-fio-{}-{index}.fio", std::process::id()));
        std::fs::write(&path, sample).unwrap();
        let output = fio_program(&["--parse-only", path.to_str().unwrap()]);
        std::fs::remove_file(&path).unwrap();
        let Some(output) = output else { return lacks(Need::Programs, "fio is not installed") };
        assert!(output.status.success(), "{sample}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Returns valid and invalid names and values.
fn any_line() -> impl Strategy<Value = String> {
    let names = "rw|bs|bsrange|bssplit|size|io_size|offset|offset_increment|numjobs|nrfiles|rate|rate_iops|thinktime|\
                 thinktime_blocks|random_distribution|zonesize|zoneskip|zonemode|filename|loops|runtime|iodepth|ba|\
                 percentage_random|percentile_list|startdelay|filesize|number_ios|ramp_size|kb_base|stonewall|wait_for";
    let values = "(rand)?(read|rw|write|trimwrite)(:-?[0-9]{1,4}k?)?|[0-9]{1,20}[kKmgtp]?(ib)?|[0-9]{1,3}%|\
     [0-9]z|1k-4k|\
                  4k/60:8k/[0-9]{1,2}|4k,,8k|(zipf|pareto|normal|zoned|zoned_abs):[0-9./:]{0,9}|strided|\
                   \\([0-9*/^%k() -]{1,12}|\
                  .{0,8}|[0-9]{1,9}(us|ms|s|m|h|d)|[$][{]?[a-zA-Z_}]{0,9}|1000";
    prop_oneof![
        8 => (names, values).prop_map(|(name, value)| format!("{name}={value}")),
        1 => Just("[job]".to_owned()),
        1 => Just("[global]".to_owned()),
        1 => ".{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_panics_and_every_error_is_one_line(lines in prop::collection::vec(any_line(), 0..12)) {
        let text = format!("[j]\n{}", lines.join("\n"));
        match try_read(&text) {
            Ok(file) => {
                let printed = serde_json::to_string(&file).unwrap();
                let again = serde_json::from_str::<JobFile>(&printed).unwrap();
                // The last bits of a fraction may change in the round trip.
                prop_assert_eq!((again.remarks, again.global), (file.remarks, file.global));
                prop_assert_eq!(again.phases.len(), file.phases.len());
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error),
        }
    }

    #[test]
    fn the_line_of_an_error_is_right(before in 0usize..30, after in 0usize..5, name in "x[a-z]{4,8}q") {
        let text = format!("[j]\n{}{name}=1\n{}", "bs=4k\n; nothing\n\n".repeat(before), "rw=read\n".repeat(after));
        let error = try_read(&text).unwrap_err();
        prop_assert_eq!((error.line, error.key), (Some(2 + 3 * before), name));
    }
}

/// Returns the folder of fio's own examples: `$HEADSTACK_FIO_EXAMPLES`, or the folder used by distributions.
fn examples() -> Option<Vec<std::path::PathBuf>> {
    let stated = std::env::var("HEADSTACK_FIO_EXAMPLES").ok();
    let folder = stated.unwrap_or_else(|| "/usr/share/doc/fio/examples".to_owned());
    let mut paths: Vec<_> = std::fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    (!paths.is_empty()).then_some(paths)
}

/// Whether the error is about an engine for neither files nor block devices.
fn is_for_another_engine(error: &InputError) -> bool {
    error.key == "ioengine" && error.message.contains("does not access files or block devices")
}

/// Returns the values of the variables used in the examples.
fn of_examples(name: &str) -> Option<String> {
    if name == "FIO_RW" { Some("randread".to_owned()) } else { environment(name).or_else(|| Some("1".to_owned())) }
}

/// Jobs and files of each supported example agree with fio's own output (`--showcmd`).
#[test]
fn jobs_and_files_of_the_examples_are_those_of_the_installed_fio() {
    let Some(paths) = examples() else {
        return lacks(Need::Data, "no fio examples in $HEADSTACK_FIO_EXAMPLES or /usr/share/doc/fio/examples");
    };
    let mut compared = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(file) = fio::read("example", &text, &[], &of_examples, &include) else { continue };
        let mut command = std::process::Command::new("fio");
        command.arg("--showcmd").arg(&path).env("FIO_RW", "randread").envs(["SIZE", "NUMJOBS"].map(|name| (name, "1")));
        let Ok(shown) = command.output() else { return lacks(Need::Programs, "fio is not installed") };
        if !shown.status.success() {
            continue;
        }
        let shown = String::from_utf8(shown.stdout).unwrap();
        let values =
            |option: &str| shown.split_whitespace().filter_map(move |word| word.strip_prefix(option)).collect();
        // A global name names no job.
        let mut names: Vec<&str> = values("--name=");
        names.retain(|name| text.lines().any(|line| line.trim() == format!("[{name}]")));
        names.dedup();
        let jobs = || file.phases.iter().flat_map(|phase| &phase.jobs);
        let mut own: Vec<&str> = jobs().map(|job| job.name.as_str()).collect();
        own.dedup();
        assert_eq!(own, names, "{}", path.display());
        let files: Vec<&str> = values("--filename=");
        for name in files.iter().flat_map(|files| files.split(':')).filter(|name| !name.ends_with('\\')) {
            let is_that = |target: &String| target == name || target.ends_with(&format!("/{name}"));
            assert!(jobs().any(|job| job.targets.iter().any(is_that)), "{}: {name}", path.display());
        }
        compared += 1;
    }
    assert!(compared > 0, "fio read none of the examples");
}

/// Prints a table of the outcome of each example.
#[test]
fn fio_examples_run_or_are_refused_for_engine_or_data() {
    let Some(paths) = examples() else {
        return lacks(Need::Data, "no fio examples in $HEADSTACK_FIO_EXAMPLES or /usr/share/doc/fio/examples");
    };
    let (mut generic, mut refused) = (0, Vec::new());
    println!("| example | outcome | options with a remark, or the reason |\n| --- | --- | --- |");
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (outcome, detail) = match fio::read(&name, &text, &[], &of_examples, &include) {
            Ok(file) => {
                generic += 1;
                let mut options: Vec<String> =
                    file.remarks.iter().map(|remark| format!("`{}`", remark.option)).collect();
                options.sort();
                options.dedup();
                (if options.is_empty() { "runs" } else { "runs, with remarks" }, options.join(", "))
            }
            Err(error) => {
                let is_for_what_it_writes = error.message.starts_with("not supported: the job file does not select");
                if !is_for_another_engine(&error) && !is_for_what_it_writes {
                    refused.push(error.to_string());
                }
                ("refused", error.to_string())
            }
        };
        println!("| {name} | {outcome} | {detail} |");
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(generic > 0);
}
