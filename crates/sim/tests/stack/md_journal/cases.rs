//! Latencies by hand, reclaim, full stripes, refusals.

use headstack_sim::array::description::{Bitmap, Level, PartialParityLog};
use headstack_workload::Kind;

use super::*;
use crate::common::{closed, flush, line, request};
use crate::stack::of;

fn write(offset_bytes: u64, length_bytes: u64) -> headstack_workload::Request {
    request(Kind::Write, offset_bytes, length_bytes)
}

/// Write-through: the log, its flush, and the array. Write-back: the log and its flush. Each as it takes alone.
#[test]
fn the_latency_of_a_write_is_the_sum_of_its_parts() {
    let device = || Bench::from(&forgetful());
    let log_ns = |pages: u64| {
        let mut device = device();
        device.takes_ns(&write(0, pages * 4096)) + device.takes_ns(&flush())
    };
    let array_ns = Bench::from(&raid5(&forgetful())).takes_ns(&write(0, 4096));
    let took_ns = |mode| Bench::new(&journaled(&description(mode), &forgetful())).takes_ns(&write(0, 4096));
    assert_eq!(took_ns(MdJournalMode::WriteThrough), log_ns(3) + array_ns);
    assert_eq!(took_ns(MdJournalMode::WriteBack), log_ns(2));
    let unflushed = MdJournalDescription { flushes: false, ..description(MdJournalMode::WriteBack) };
    let took_ns = Bench::new(&journaled(&unflushed, &forgetful())).takes_ns(&write(0, 4096));
    assert_eq!(took_ns, device().takes_ns(&write(0, 2 * 4096)));
    // A flush is free in write-through, and reaches the journal device in write-back.
    let flush_ns = |mode| Bench::new(&journaled(&description(mode), &forgetful())).takes_ns(&flush());
    assert_eq!(flush_ns(MdJournalMode::WriteThrough), 0);
    assert!(flush_ns(MdJournalMode::WriteBack) > 0);
}

/// Reads do not use the log: the array alone gives the same result.
#[test]
fn reads_are_those_of_the_array_alone() {
    let alone = SystemDescription::Array(raid5(&small_ssd()));
    for mode in [MdJournalMode::WriteThrough, MdJournalMode::WriteBack] {
        let layered = journaled(&description(mode), &small_ssd());
        let reads = line(8192, 100.0, 80.0);
        let [layered, alone] = [&layered, &alone].map(|system| of(system, reads.clone(), closed(8), 3_000));
        assert_eq!((layered.kinds.read, layered.duration_ns), (alone.kinds.read, alone.duration_ns));
    }
}

/// Small sequential writes: write-through reads old data for each, write-back collects whole stripes and reads nothing.
#[test]
fn write_back_turns_small_sequential_writes_into_full_stripes() {
    let written = |mode| {
        let mut bench = Bench::new(&journaled(&description(mode), &small_ssd()));
        // Forty rows of 48 pages.
        for page in 0..40 * 48 {
            bench.takes_ns(&write(page * 4096, 4096));
        }
        bench.settle();
        ["parity_reads", "full_rows", "md_journal_stripes", "md_journal_full_stripes"].map(|name| counted(&bench, name))
    };
    let [reads, full, ..] = written(MdJournalMode::WriteThrough);
    assert!(reads >= 40 * 48 && full == 0, "{reads} reads");
    let [reads, full, stripes, full_stripes] = written(MdJournalMode::WriteBack);
    assert_eq!((reads, stripes), (0, full_stripes));
    // 640 stripes, of which up to 65 stay in memory (`R5C_FULL_STRIPE_FLUSH_BATCH` of 256).
    assert!(stripes >= 640 - 65 && full >= 36, "{stripes} stripes in {full} writes");
}

/// Random writes fill memory with partial stripes: above 3/4 of the limit, the oldest go to the members.
#[test]
fn partial_stripes_are_written_out_when_memory_is_short() {
    let mut bench = Bench::new(&journaled(&description(MdJournalMode::WriteBack), &small_ssd()));
    for number in 0..192u64 {
        bench.takes_ns(&write(number * 5 * 48 * 4096, 4096));
    }
    bench.settle();
    assert_eq!((counted(&bench, "md_journal_stripes"), level(&bench, 0)), (0, 192 * 4096));
    bench.takes_ns(&write(192 * 5 * 48 * 4096, 4096));
    bench.settle();
    // A group of 16.
    assert_eq!((counted(&bench, "md_journal_stripes"), level(&bench, 0)), (16, 177 * 4096));
    // The first were written out: they are read from the members, the last from memory.
    assert!(bench.takes_ns(&request(Kind::Read, 0, 4096)) > 0);
    assert_eq!(bench.takes_ns(&request(Kind::Read, 192 * 5 * 48 * 4096, 4096)), 0);
    // A burst does not exceed the stripes of memory, and all of it ends.
    let mut done = 0;
    (0..2_000u64).for_each(|number| _ = bench.submit(&write((7 + number * 3) % 1_000 * 48 * 4096, 4096)));
    while bench.system.next_event_ns() < u64::MAX {
        let next_ns = bench.system.next_event_ns();
        done += bench.run_to(next_ns).len();
        assert!(level(&bench, 0) <= 256 * 4096, "{} bytes", level(&bench, 0));
    }
    assert_eq!(done, 2_000);
    assert!(counted(&bench, "md_journal_waiting_writes") > 0 && bench.failed().is_empty());
}

/// The tail moves each time that enough of the log is finished; the log never exceeds the device, however long the run.
#[test]
fn the_log_is_reclaimed() {
    for mode in [MdJournalMode::WriteThrough, MdJournalMode::WriteBack] {
        let journal = MdJournalDescription { reclaim_bytes: 16 * MIB, ..description(mode) };
        let mut bench = Bench::new(&journaled(&journal, &forgetful()));
        let mut most = 0;
        for number in 0..1_200u64 {
            bench.takes_ns(&write(number % 150 * MIB, MIB));
            most = most.max(level(&bench, 2));
        }
        bench.settle();
        assert!(counted(&bench, "md_journal_reclaims") >= 40, "{mode:?}: {}", counted(&bench, "md_journal_reclaims"));
        assert!(counted(&bench, "md_journal_bytes") > 768 * MIB, "the ring went round");
        assert!((16 * MIB..48 * MIB).contains(&most), "{mode:?}: {most}");
    }
}

/// A burst larger than the log waits for space, and ends.
#[test]
fn writes_wait_for_space_in_the_log() {
    for mode in [MdJournalMode::WriteThrough, MdJournalMode::WriteBack] {
        let journal = MdJournalDescription { reclaim_bytes: 384 * MIB, ..description(mode) };
        let mut bench = Bench::new(&journaled(&journal, &small_ssd()));
        (0..900u64).for_each(|number| _ = bench.submit(&write(number % 150 * MIB, MIB)));
        assert_eq!(bench.settle().len(), 900);
        assert!(counted(&bench, "md_journal_waiting_writes") > 0, "{mode:?}");
        assert_eq!(bench.failed(), []);
    }
}

#[test]
fn arrays_that_md_gives_no_journal_are_refused_in_one_line() {
    let error = |change: &dyn Fn(&mut ArrayDescription)| {
        let mut array = raid5(&small_ssd());
        change(&mut array);
        let device = SystemDescription::Drive(DeviceDescription::Ssd(small_ssd()));
        let layer = LayerDescription::MdJournal(description(MdJournalMode::WriteThrough));
        crate::stack::over(layer, &[SystemDescription::Array(array), device]).check().unwrap_err().to_string()
    };
    for (message, expected) in [
        (
            error(&|array| (array.groups[0].level, array.luns[0].length_bytes) = (Level::Raid10, MIB)),
            "over raid10; must be raid5 or raid6 with one span",
        ),
        (
            error(&|array| {
                array.groups[0].bitmap = Some(Bitmap { chunk_bytes: UNIT, daemon_ns: 1, safe_mode_ns: 1 });
            }),
            "over an array with a bitmap; must be one without",
        ),
        (
            error(&|array| {
                array.groups[0].ppl = Some(PartialParityLog { area_bytes: 132 * KIB });
                array.luns[0].start_bytes = 3 * 3 * UNIT;
                array.luns[0].length_bytes -= 3 * 3 * UNIT;
            }),
            "over an array with a partial parity log; must be one without",
        ),
    ] {
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
}
