//! Requirements of tests on the machine they run on.
//!
//! A test that lacks something cannot fail, and must not pass unnoticed: [`lacks`] reports it on standard error, past
//! the test harness, which hides what tests print. `HEADSTACK_REQUIRE=loop,root` names requirements that must be met: a
//! test that lacks one of them fails. `HEADSTACK_SKIPPED` names a file that collects the skipped tests; `make test`
//! prints it at its end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Returns true under `make test-all`, which sets `HEADSTACK_TEST_ALL`: slow tests then try all of their cases.
pub fn is_test_all() -> bool {
    std::env::var_os("HEADSTACK_TEST_ALL").is_some()
}

/// The cases that a slow test tries: all of them in `make test-all`, and every `step`-th, beginning with the first, in
/// `make test`.
pub fn sampled<T>(cases: impl IntoIterator<Item = T>, step: usize) -> Vec<T> {
    cases.into_iter().step_by(if is_test_all() { 1 } else { step }).collect()
}

/// How many random cases a slow property tries: all of them in `make test-all`, and a quarter in `make test`.
pub fn cases(all: u32) -> u32 {
    if is_test_all() { all } else { all.div_ceil(4) }
}

/// Returns true under `make test`, and lists the calling test as skipped: only `make test-all` runs it.
#[track_caller]
pub fn left_to_test_all() -> bool {
    if !is_test_all() {
        note_skipped(&format!("skipped: {}: runs only in make test-all", thread_name()));
    }
    !is_test_all()
}

/// Returns true if this process can mount file systems and attach loop devices. Root in a container often cannot.
pub fn is_privileged() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| may_administer(&status))
}

/// Returns true if the `CapEff:` line of `/proc/PID/status` includes `CAP_SYS_ADMIN`.
fn may_administer(status: &str) -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    effective.is_some_and(|effective| effective >> CAP_SYS_ADMIN & 1 == 1)
}

/// A requirement that a machine may not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be root, with its privileges.
    Root,
    /// Loop devices.
    Loop,
    /// A program that Debian has a package for.
    Programs,
    /// Something of the kernel: a file system, a device, a tracer.
    Kernel,
    /// Files that are not part of this repository.
    Data,
    /// A store that `make crash-stores` installs or builds.
    Stores,
}

impl Need {
    const ALL: [Need; 6] = [Need::Root, Need::Loop, Need::Programs, Need::Kernel, Need::Data, Need::Stores];

    /// The name used in `HEADSTACK_REQUIRE`.
    fn name(self) -> &'static str {
        match self {
            Need::Root => "root",
            Need::Loop => "loop",
            Need::Programs => "programs",
            Need::Kernel => "kernel",
            Need::Data => "data",
            Need::Stores => "stores",
        }
    }
}

/// Reports that the calling test, or a part of it, is skipped for lack of `what`.
///
/// # Panics
/// If `HEADSTACK_REQUIRE` names the need, or an unknown one.
#[track_caller]
pub fn lacks(need: Need, what: impl Display) {
    let line = format!("skipped: {}: {what} ({})", thread_name(), need.name());
    let required = std::env::var("HEADSTACK_REQUIRE").unwrap_or_default();
    assert!(!requires(&required, need), "{line}, which HEADSTACK_REQUIRE={required} does not allow");
    // Without a standard error, the file below still has the line.
    let _ = writeln!(std::io::stderr(), "{line}");
    note_skipped(&line);
}

/// The name of the calling test, which is that of its thread.
fn thread_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Adds a line to the file that `HEADSTACK_SKIPPED` names.
#[track_caller]
fn note_skipped(line: &str) {
    if let Some(path) = std::env::var_os("HEADSTACK_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Whether the text of `HEADSTACK_REQUIRE` names `need`.
fn requires(text: &str, need: Need) -> bool {
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = Need::ALL.map(Need::name);
    for name in &names {
        assert!(known.contains(name), "HEADSTACK_REQUIRE: {name} is not one of {}", known.join(", "));
    }
    names.contains(&need.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_capabilities_is_not_privileged() {
        assert!(may_administer("Name:\tcat\nCapEff:\t000001ffffffffff\n"));
        assert!(!may_administer(
            "Name:\tcat\nUid:\t0\t0\t0\t0\nCapPrm:\t000001ffffffffff\nCapEff:\t00000000a80425fb\n"
        ));
        assert!(!may_administer(""));
    }

    #[test]
    fn what_is_required_is_named() {
        for need in Need::ALL {
            assert!(!requires("", need));
            assert!(requires("loop, root,programs,kernel,data,stores", need));
        }
        assert!(requires("loop,root", Need::Loop) && !requires("loop,root", Need::Kernel));
        assert!(std::panic::catch_unwind(|| requires("loops", Need::Loop)).is_err());
    }

    #[test]
    fn sampling_keeps_the_first_case_and_every_step() {
        let expected = if is_test_all() { (0..10).collect() } else { vec![0, 4, 8] };
        assert_eq!(sampled(0..10, 4), expected);
    }

    #[test]
    fn what_is_lacking_is_seen_or_fails() {
        let skipped = std::env::temp_dir().join(format!("headstack-skipped-{}", std::process::id()));
        let run = |required: &str| {
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            test.args(["--exact", "tests::a_test_that_lacks_something", "--ignored"]);
            test.env("HEADSTACK_REQUIRE", required).env("HEADSTACK_SKIPPED", &skipped).output().unwrap()
        };
        let line = "skipped: tests::a_test_that_lacks_something: a folder of traces (data)\n";
        let seen = run("loop,root");
        assert!(seen.status.success() && String::from_utf8(seen.stderr).unwrap().contains(line));
        assert_eq!(std::fs::read_to_string(&skipped).unwrap(), line);
        let failed = run("data");
        assert!(!failed.status.success());
        assert!(String::from_utf8(failed.stdout).unwrap().contains("which HEADSTACK_REQUIRE=data does not allow"));
        std::fs::remove_file(&skipped).unwrap();
    }

    #[test]
    #[ignore = "run by another test, which looks at what it says"]
    fn a_test_that_lacks_something() {
        lacks(Need::Data, "a folder of traces");
    }
}
