//! Power losses: acknowledged writes survive at every event, and no stripe is left half written.

use std::collections::BTreeMap;

use headstack_workload::{Kind, Span};

use super::*;
use crate::common::{Dice, MS, flush, request};

const PAGE: u64 = 4096;
const PAGES: u64 = 800;

/// Submits random requests, and compares at every event what a power loss would lose with what was acknowledged. Returns
/// the number of events, and of pages at risk below: in the caches of members, without the log.
fn survives_losses(journal: &MdJournalDescription, seed: u64) -> [u64; 2] {
    let mut bench = Bench::new(&journaled(journal, &forgetful()));
    let mut dice = Dice(seed);
    let (mut newest, mut ended): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = Default::default();
    let mut writes: BTreeMap<u32, (u64, std::ops::Range<u64>)> = BTreeMap::new();
    let [mut events, mut at_risk_below] = [0, 0];
    for number in 1..300 {
        let until_ns = bench.now_ns + dice.below(MS);
        while bench.system.next_event_ns() <= until_ns {
            let next_ns = bench.system.next_event_ns();
            events += 1;
            for done in bench.run_to(next_ns) {
                let Some((write, pages)) = writes.remove(&done.id) else { continue };
                pages.for_each(|page| _ = ended.insert(page, write));
            }
            let all = [Span { start_bytes: 0, length_bytes: PAGES * PAGE }];
            let mut lost = vec![];
            bench.system.volatile(next_ns, &all, &mut lost);
            for span in lost {
                for page in span.start_bytes / PAGE..(span.start_bytes + span.length_bytes).div_ceil(PAGE) {
                    let [newest, ended] = [&newest, &ended].map(|map| map.get(&page).copied().unwrap_or(0));
                    assert!(
                        ended < newest,
                        "{journal:?}: page {page}: acknowledged write {ended} is lost at {next_ns}"
                    );
                }
            }
            let System::Stack(stack) = &bench.system else { unreachable!() };
            let mut held = vec![];
            stack.systems()[0].volatile(next_ns, &all, &mut held);
            at_risk_below += held.iter().map(|span| span.length_bytes / PAGE).sum::<u64>();
        }
        bench.run_to(until_ns);
        if dice.below(100) == 0 {
            bench.system.power_fails(bench.now_ns);
            bench.system.power_cycle(bench.now_ns);
            // Writes in flight may or may not be there: they count as neither.
            for (_, pages) in std::mem::take(&mut writes).into_values() {
                pages.for_each(|page| _ = newest.insert(page, ended.get(&page).copied().unwrap_or(0)));
            }
            assert_eq!(bench.volatile(), []);
        }
        let request = match dice.below(10) {
            0 => flush(),
            1..=2 => request(Kind::Read, dice.below(PAGES) * PAGE, (1 + dice.below(16)) * PAGE),
            3 => request(Kind::Write, dice.below(PAGES - 20) * PAGE + 512, 1024),
            _ => request(Kind::Write, dice.below(PAGES - 20) * PAGE, (1 + dice.below(20)) * PAGE),
        };
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let pages = request.offset_bytes / PAGE..end.div_ceil(PAGE);
        // The order of writes of a page that overlap in time is undefined.
        let overlaps = |other: &std::ops::Range<u64>| other.start < pages.end && pages.start < other.end;
        if request.kind == Kind::Write && writes.values().any(|(_, other)| overlaps(other)) {
            continue;
        }
        let forced = request.kind == Kind::Write && dice.below(4) == 0;
        let id = bench.submit(&headstack_workload::Request { force_unit_access: forced, ..request });
        if request.kind == Kind::Write {
            pages.clone().for_each(|page| _ = newest.insert(page, number));
            writes.insert(id, (number, pages));
        }
    }
    [events, at_risk_below]
}

#[test]
fn acknowledged_writes_survive_a_power_loss_at_any_event() {
    for mode in [MdJournalMode::WriteThrough, MdJournalMode::WriteBack] {
        for reclaim_bytes in [192 * MIB, MIB] {
            let journal = MdJournalDescription { stripe_cache: 64, reclaim_bytes, ..description(mode) };
            for seed in 1..=2 {
                let [events, at_risk_below] = survives_losses(&journal, seed);
                assert!(events > 500 && at_risk_below > 500, "{mode:?}: {events} events, {at_risk_below} pages");
            }
        }
    }
}

/// The array alone must be resynced after a power loss during a write; with a journal, recovery replays the log.
#[test]
fn a_journal_leaves_no_write_hole() {
    let resyncs = |system: &SystemDescription| {
        let mut bench = Bench::new(system);
        bench.submit(&request(Kind::Write, 0, 4096));
        let mut resyncs = 0;
        while bench.system.next_event_ns() < u64::MAX {
            let next_ns = bench.system.next_event_ns();
            bench.run_to(next_ns);
            let mut cut = bench.clone();
            cut.system.power_fails(next_ns);
            cut.system.power_cycle(next_ns);
            resyncs += u64::from(cut.system.gauges(next_ns).groups[0].pass.is_some());
        }
        (resyncs, bench.system.leaves_halves())
    };
    let (alone, halves) = resyncs(&SystemDescription::Array(raid5(&forgetful())));
    assert!(alone > 0 && halves, "{alone} of the events");
    for mode in [MdJournalMode::WriteThrough, MdJournalMode::WriteBack] {
        assert_eq!(resyncs(&journaled(&description(mode), &forgetful())), (0, false), "{mode:?}");
    }
}

/// What write-back keeps in memory comes back from the log, and goes to the members later.
#[test]
fn stripes_in_memory_survive_a_power_cycle() {
    let mut bench = Bench::new(&journaled(&description(MdJournalMode::WriteBack), &forgetful()));
    (0..100u64).for_each(|number| _ = bench.takes_ns(&request(Kind::Write, number * 48 * PAGE, PAGE)));
    bench.submit(&request(Kind::Write, 100 * 48 * PAGE, PAGE));
    bench.system.power_fails(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!(level(&bench, 0), 100 * PAGE, "the write in flight is gone");
    assert_eq!(bench.takes_ns(&request(Kind::Read, 99 * 48 * PAGE, PAGE)), 0);
    (101..260u64).for_each(|number| _ = bench.takes_ns(&request(Kind::Write, number * 48 * PAGE, PAGE)));
    bench.settle();
    assert!(counted(&bench, "md_journal_stripes") >= 60 && level(&bench, 0) <= 192 * PAGE);
}
