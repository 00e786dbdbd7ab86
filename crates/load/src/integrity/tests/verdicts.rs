//! Tests of each class and severity, with a single fault that causes it.

use super::*;

const UNIT: usize = 4096;

struct Bench {
    stamper: Stamper,
}

impl Bench {
    fn new() -> Bench {
        Bench { stamper: Stamper::new(Layout::new(1 << 20, UNIT as u32, 512).unwrap(), None).unwrap() }
    }

    /// Writes data and records the end of the write before anything else happens.
    fn write(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        self.stamper.ended(self.stamper.fill(offset, &mut buffer).unwrap(), Outcome::Acknowledged);
        buffer
    }

    fn flush(&self) {
        self.stamper.flushed(self.stamper.flush());
    }

    fn scan(&self, offset: u64, content: &[u8]) -> IntegrityReport {
        let mut scanner = Scanner::new(self.stamper.ledger());
        scanner.read(offset, content).unwrap();
        scanner.finish()
    }

    fn examine(&self, content: &[u8]) -> (Class, Severity) {
        let report = self.scan(0, content);
        assert_eq!(report.faults(), 1, "{report:?}");
        (report.findings[0].class, report.findings[0].severity)
    }
}

#[test]
fn losses_are_judged_by_flushes() {
    let bench = Bench::new();
    let first = bench.write(0, UNIT);
    assert_eq!(bench.examine(&[0; UNIT]), (Class::Zeros, Severity::Acknowledged));
    bench.flush();
    assert_eq!(bench.examine(&[0; UNIT]), (Class::Zeros, Severity::Flushed));
    let second = bench.write(0, UNIT);
    assert_eq!(bench.examine(&first), (Class::Stale, Severity::Acknowledged));
    assert_eq!(bench.examine(&[0; UNIT]), (Class::Zeros, Severity::Flushed));
    let epoch = bench.stamper.flush();
    let third = bench.write(0, UNIT);
    bench.stamper.flushed(epoch);
    assert_eq!(bench.examine(&second), (Class::Stale, Severity::Acknowledged), "acknowledged after the flush began");
    assert_eq!(
        bench.examine(&first),
        (Class::Stale, Severity::Acknowledged),
        "compared with the floor when it last rose"
    );
    bench.flush();
    assert_eq!(bench.examine(&second), (Class::Stale, Severity::Flushed));
    assert_eq!(bench.scan(0, &third).intact.count, 1);
    let ticket = bench.stamper.fill(0, &mut [0; UNIT]).unwrap();
    bench.stamper.ended(ticket, Outcome::Durable);
    assert_eq!(bench.examine(&third), (Class::Stale, Severity::Flushed), "written with FUA");
}

#[test]
fn a_finding_names_offset_and_fault() {
    let bench = Bench::new();
    let old = bench.write(8192, UNIT);
    let new = bench.write(8192, UNIT);
    let mut torn = new.clone();
    torn[1024..2048].copy_from_slice(&old[1024..2048]);
    let report = bench.scan(8192, &torn);
    let finding = &report.findings[0];
    assert_eq!((finding.class, finding.offset, finding.bytes, finding.sector_offset), (Class::Torn, 8192, 4096, 9216));
    assert_eq!((finding.expected_from, finding.expected_to, finding.found), (Some(2), Some(2), Some(1)));
    assert_eq!(finding.found_run, Some(format!("{:016x}", bench.stamper.ledger().run())));
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<IntegrityReport>(&text).unwrap(), report);
}

#[test]
fn data_of_another_place_and_changed_data_are_damage() {
    let bench = Bench::new();
    let (here, there) = (bench.write(0, UNIT), bench.write(65536, UNIT));
    assert_eq!(bench.examine(&there), (Class::Misplaced, Severity::Damage));
    assert_eq!(bench.scan(0, &there).findings[0].found_offset, Some(65536));
    // This also holds where this run never wrote.
    assert_eq!(bench.scan(4096, &there).misplaced.count, 1);
    let mut flipped = here.clone();
    flipped[700] ^= 8;
    assert_eq!(bench.examine(&flipped), (Class::Corrupt, Severity::Damage));
    let finding = bench.scan(0, &flipped).findings.remove(0);
    assert_eq!((finding.sector_offset, finding.changed_byte, finding.changed_bits), (512, Some(188), Some(1)));
    let other = Bench::new().write(0, UNIT);
    assert_eq!(bench.examine(&other), (Class::Foreign, Severity::Acknowledged));
    assert_eq!(bench.examine(&[7; UNIT]), (Class::Foreign, Severity::Acknowledged));
    assert_eq!(bench.scan(4096, &[7; UNIT]).unwritten.count, 1);
    let mut scanner = Scanner::new(bench.stamper.ledger());
    scanner.unreadable(0, 8192).unwrap();
    let report = scanner.finish();
    assert_eq!((report.unreadable.count, report.damaged.bytes, report.faults()), (2, 8192, 2));
}

#[test]
fn either_of_two_overlapping_writes_is_valid_until_a_later_write() {
    let bench = Bench::new();
    let zero = bench.write(0, UNIT);
    let (mut one, mut two) = (vec![0; UNIT], vec![0; UNIT]);
    let first = bench.stamper.fill(0, &mut one).unwrap();
    let second = bench.stamper.fill(0, &mut two).unwrap();
    assert_eq!(bench.scan(0, &zero).faults(), 0, "no write is acknowledged yet");
    bench.stamper.ended(second, Outcome::Acknowledged);
    assert_eq!(bench.scan(0, &one).faults(), 0);
    assert_eq!(bench.examine(&zero).0, Class::Stale);
    bench.stamper.ended(first, Outcome::Acknowledged);
    assert_eq!((bench.scan(0, &one).intact.count, bench.scan(0, &two).intact.count), (1, 1));
    let mut mixed = one.clone();
    mixed[..512].copy_from_slice(&two[..512]);
    assert_eq!(bench.scan(0, &mixed).mixed.count, 1);
    let third = bench.write(0, UNIT);
    assert_eq!((bench.examine(&one).0, bench.examine(&two).0), (Class::Stale, Class::Stale));
    assert_eq!(bench.examine(&mixed).0, Class::Torn);
    // A failed write may be there or not.
    let mut failed = vec![0; UNIT];
    bench.stamper.ended(bench.stamper.fill(0, &mut failed).unwrap(), Outcome::Failed);
    assert_eq!((bench.scan(0, &third).intact.count, bench.scan(0, &failed).intact.count), (1, 1));
    bench.write(0, UNIT);
    assert_eq!(bench.examine(&failed).0, Class::Stale);
}

#[test]
fn a_trim_leaves_zeros_or_old_data() {
    let bench = Bench::new();
    let old = bench.write(0, UNIT);
    bench.flush();
    bench.stamper.ended(bench.stamper.trim(0, UNIT as u64).unwrap(), Outcome::Acknowledged);
    assert_eq!((bench.scan(0, &old).intact.count, bench.scan(0, &[0; UNIT]).trimmed.count), (1, 1));
    assert_eq!(bench.examine(&[1; UNIT]), (Class::Foreign, Severity::Flushed));
    bench.write(0, UNIT);
    assert_eq!(bench.examine(&[0; UNIT]), (Class::Zeros, Severity::Acknowledged), "the zeros of the trim reappear");
    bench.flush();
    assert_eq!(bench.examine(&[0; UNIT]), (Class::Zeros, Severity::Flushed));
}

#[test]
fn a_durable_write_does_not_end_a_trim_that_came_after_it() {
    let bench = Bench::new();
    let durable = bench.stamper.fill(0, &mut [0; UNIT]).unwrap();
    let trim = bench.stamper.trim(0, UNIT as u64).unwrap();
    bench.stamper.ended(trim, Outcome::Acknowledged);
    bench.write(0, UNIT);
    bench.stamper.ended(durable, Outcome::Durable);
    assert_eq!(
        bench.examine(&[0; UNIT]),
        (Class::Zeros, Severity::Acknowledged),
        "zeros of the trim are allowed if the last write is lost"
    );
}

#[test]
fn a_read_is_held_against_all_that_could_be_there_while_it_ran() {
    let bench = Bench::new();
    let (old, mut report) = (bench.write(0, UNIT), IntegrityReport::default());
    let mut expectation = Expectation::default();
    bench.stamper.expect(0, UNIT as u64, &mut expectation).unwrap();
    let new = bench.write(0, UNIT);
    for content in [&old, &new] {
        bench.stamper.check(&expectation, content, &mut report);
    }
    let mut half_copied = new.clone();
    half_copied[100..612].copy_from_slice(&old[100..612]);
    bench.stamper.check(&expectation, &half_copied, &mut report);
    assert_eq!((report.intact.count, report.unsettled.count, report.faults()), (2, 1, 0));
    bench.stamper.expect(0, UNIT as u64, &mut expectation).unwrap();
    bench.stamper.check(&expectation, &old, &mut report);
    bench.stamper.check(&expectation, &half_copied, &mut report);
    assert_eq!((report.stale.count, report.corrupt.count, report.lost_flushed.count), (1, 1, 1));
    // A write that was in flight before the read and is still in flight after it.
    let under_way = bench.stamper.fill(0, &mut [0; UNIT]).unwrap();
    bench.stamper.expect(0, UNIT as u64, &mut expectation).unwrap();
    bench.stamper.check(&expectation, &half_copied, &mut report);
    assert_eq!((report.unsettled.count, report.corrupt.count), (2, 1));
    bench.stamper.ended(under_way, Outcome::Acknowledged);
    // A trim and a write that began and ended during the read.
    bench.stamper.expect(0, UNIT as u64, &mut expectation).unwrap();
    bench.stamper.ended(bench.stamper.trim(0, UNIT as u64).unwrap(), Outcome::Acknowledged);
    bench.write(0, UNIT);
    bench.stamper.check(&expectation, &[0; UNIT], &mut report);
    assert_eq!((report.faults(), report.trimmed.count), (2, 1));
}

#[test]
fn a_request_of_which_a_part_is_missing_is_named() {
    let bench = Bench::new();
    let old = bench.write(0, 4 * UNIT);
    let new = bench.write(UNIT as u64, 2 * UNIT);
    let mut whole = old.clone();
    whole[UNIT..3 * UNIT].copy_from_slice(&new);
    assert_eq!((bench.scan(0, &whole).torn_requests.count, bench.scan(0, &whole).intact.count), (0, 4));
    for lost in [UNIT..2 * UNIT, 2 * UNIT..3 * UNIT] {
        let mut torn = whole.clone();
        torn[lost.clone()].copy_from_slice(&old[lost.clone()]);
        let report = bench.scan(0, &torn);
        assert_eq!((report.torn_requests, report.stale.count), (Tally { count: 1, bytes: 8192 }, 1));
        let request = report.findings.iter().find(|finding| finding.class == Class::TornRequest).unwrap();
        assert_eq!((request.offset, request.sector_offset), (4096, lost.start as u64));
        let mut alone = Scanner::without_ledger(bench.stamper.ledger().layout(), None);
        alone.read(0, &torn).unwrap();
        let report = alone.finish();
        assert_eq!((report.torn_requests.count, report.faults(), report.cannot_tell.len()), (1, 0, 1));
    }
}

#[test]
fn stamps_without_a_ledger_show_damage_and_misplacement() {
    let bench = Bench::new();
    let mut content = bench.write(0, 4 * UNIT);
    let (layout, run) = recognise(1 << 20, 0, &content).unwrap();
    assert_eq!((layout, run), (bench.stamper.ledger().layout(), bench.stamper.ledger().run()));
    assert_eq!(recognise(1 << 20, 0, &[0; 8192]), None);
    content[5000] ^= 1;
    content.copy_within(0..UNIT, 2 * UNIT);
    let other = Bench::new().write(3 * UNIT as u64, UNIT);
    content[3 * UNIT..].copy_from_slice(&other);
    let mut scanner = Scanner::without_ledger(layout, Some(run));
    scanner.read(0, &content).unwrap();
    let report = scanner.finish();
    let counts = [report.intact, report.corrupt, report.misplaced, report.foreign].map(|tally| tally.count);
    assert_eq!((counts, report.damaged.count, report.unknown.count), ([1, 1, 1, 1], 2, 1));
}
