//! Tracepoints as text: the same requests as the same events of blktrace, whoever prints them.

use crate::reading::read;
use headstack_trace::{Clock, Flags, Format, NOT_RECORDED, Operation, Place, ResponseSpan};

/// A read of 8 sectors and a write of 16 that was queued, a flush, a failed read.
const FTRACE: &str = "# tracer: nop
CPU:1 [LOST 12 EVENTS]
             fio-1234    [001] ..... 10.000100: block_bio_queue: 8,0 R 2048 + 8 [fio]
             fio-1234    [001] d..1. 10.000110: block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]
  kworker/u8:2-77 (-------) [000] 10.000150: block_bio_queue: 8,0 WFS 64 + 16 [kworker/u8:2]
             fio-1234    [001] ..... 10.000160: sched_switch: prev_comm=fio ==> next_comm=idle
          <idle>-0       [000] d.h1. 10.000200: block_rq_complete: 8,0 R () 2048 + 8 none,0,0 [0]
  kworker/u8:2-77        [000] d..1. 10.000210: block_rq_issue: 8,0 WFS 8192 () 64 + 16 be,0,4 [kworker/u8:2]
          <idle>-0       [000] d.h1. 10.000400: block_rq_complete: 8,0 WFS () 64 + 16 [0]
  jbd2/sda1-8-301        [000] ..... 10.000500: block_bio_queue: 8,0 FWS 0 + 0 [jbd2/sda1-8]
   kworker/0:1H-78       [000] ..... 10.000501: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kworker/0:1H]
          <idle>-0       [000] d.h1. 10.000900: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]
             fio-1234    [001] ..... 10.001000: block_bio_queue: 8,0 R 4096 + 8 [fio]
             fio-1234    [001] d..1. 10.001001: block_rq_issue: 8,0 R 4096 () 4096 + 8 [fio]
          <idle>-0       [000] d.h1. 10.001100: block_rq_complete: 8,0 R () 4096 + 8 [-5]
";

#[test]
fn requests_are_paired() {
    let (records, meta) = read(FTRACE.as_bytes(), None, false).unwrap();
    assert_eq!((meta.origin[0].format.as_str(), meta.clock, meta.resolution_ns), ("ftrace", Clock::Boot, 1_000));
    assert_eq!((meta.response, meta.counts["lost events"]), (Some(ResponseSpan::QueueToCompletion), 12));
    let told: Vec<_> = records.iter().map(|r| (r.operation, r.wait_ns, r.response_ns, r.flags)).collect();
    let fua = Flags::FUA.with(Flags::SYNC);
    let expected = [
        (Operation::Read, 10_000, 100_000, Flags::default()),
        (Operation::Write, 60_000, 250_000, fua),
        (Operation::Flush, 1_000, 400_000, Flags::SYNC),
        (Operation::Read, 1_000, 100_000, Flags::ERROR),
    ];
    assert_eq!(told, expected);
    assert_eq!((records[0].offset_bytes, records[0].length_bytes), (1 << 20, 4_096));
    let names: Vec<_> = meta.processes.iter().map(|process| (process.pid, process.name.as_str())).collect();
    assert!(names.contains(&(1_234, "fio")) && names.contains(&(77, "kworker/u8:2")), "{names:?}");
}

/// perf script prints the same events otherwise.
#[test]
fn perf_script_text_agrees() {
    let perf: String = FTRACE
        .lines()
        .filter(|line| line.contains(": block_"))
        .map(|line| {
            let (task, rest) = line.split_once('[').unwrap();
            let (cpu, rest) = rest.split_once(']').unwrap();
            let (name, pid) = task.split(" (").next().unwrap().trim().rsplit_once('-').unwrap();
            let event = rest[rest.find("10.").unwrap()..].replace(": block_", ":      block:block_");
            format!("{name:>16} {pid:>5} [{cpu}] {event}\n")
        })
        .collect();
    let ((records, meta), (expected, _)) =
        (read(perf.as_bytes(), None, false).unwrap(), read(FTRACE.as_bytes(), None, false).unwrap());
    assert_eq!((records, meta.origin[0].format.as_str()), (expected, "ftrace"));
}

#[test]
fn issue_events_without_queue_events_are_requests() {
    let text: String =
        FTRACE.lines().filter(|line| !line.contains("bio_queue")).map(|line| format!("{line}\n")).collect();
    let (records, meta) = read(text.as_bytes(), None, false).unwrap();
    assert_eq!((records.len(), meta.response), (4, Some(ResponseSpan::IssueToCompletion)));
    assert!(records.iter().all(|record| record.wait_ns == NOT_RECORDED && record.response_ns != NOT_RECORDED));
}

#[test]
fn bad_events_are_refused_with_their_line() {
    for (event, field) in [
        ("10.1: block_rq_issue: 8 R 4096 () 2048 + 8 [fio]", "device"),
        ("10.1: block_rq_issue: 8,0 Q 4096 () 2048 + 8 [fio]", "rwbs"),
        ("10.1: block_rq_issue: 8,0 R 4096 ( 2048 + 8 [fio]", "command"),
        ("10.1: block_rq_issue: 8,0 R 4096 () x + 8 [fio]", "sector"),
        ("10.1: block_rq_issue: 8,0 R 4096 () 2048 + 8388608 [fio]", "sectors"),
        ("10.1: block_rq_complete: 8,0 R () 2048 + 8 [x]", "error"),
        ("99999999999.1: block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]", "time"),
        ("10.1: block_rq_issue 8,0 R 4096 () 2048 + 8 [fio]", ""),
        ("block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]", ""),
    ] {
        let text = format!("{FTRACE}  fio-1234 [001] d..1. {event}\n");
        let error = read(text.as_bytes(), Some(Format::Ftrace), false).expect_err(event);
        assert_eq!((error.place, error.field), (Place::Line(16), field), "{event}: {error}");
        assert_eq!(read(text.as_bytes(), Some(Format::Ftrace), true).unwrap().1.rejected, 1);
    }
}
