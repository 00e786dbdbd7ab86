//! Waits of an [`Ssd`]'s commands for programs: the random time of a suspension, urgent writes, and flushes.

use headstack_sim::ssd::Ssd;
use headstack_sim::ssd::description::{FlashState, SsdDescription};
use headstack_workload::{Kind, Request};

use crate::common::flash::{PROGRAM_NS, READ_NS, UNIT, small_ssd};
use crate::common::{Dice, US, flush, request};

const SPREAD_NS: u64 = 70 * US;
const SUSPEND_NS: u64 = 15 * US;

/// Serves reads at a fixed pace beside random overwrites at `writes_per_s`, of which a host keeps at most 64
/// outstanding; returns the latencies of the reads, sorted.
fn reads_beside_writes(description: &SsdDescription, writes_per_s: u64) -> Vec<u64> {
    let mut drive = Ssd::new(description, 11).expect("the description is possible");
    let (units, mut dice) = (drive.capacity_bytes() / UNIT, Dice(17));
    let (write_ns, read_ns) = (1_000_000_000 / writes_per_s, 400 * US);
    let (mut next_write_ns, mut next_read_ns, mut submitted_ns) = (0, 0, vec![0; 4096]);
    let (mut latencies, mut writes_outstanding) = (Vec::new(), 0);
    let mut id = 0;
    while latencies.len() < 20_000 {
        let now_ns = next_write_ns.min(next_read_ns);
        let kind = if next_read_ns < next_write_ns { Kind::Read } else { Kind::Write };
        if kind == Kind::Read {
            next_read_ns += read_ns
        } else {
            next_write_ns += write_ns
        }
        drive.advance(now_ns, |done| {
            if done.id % 2 == 1 {
                latencies.push(done.at_ns - submitted_ns[done.id as usize]);
            } else {
                writes_outstanding -= 1;
            }
        });
        if kind == Kind::Write {
            if writes_outstanding == 64 {
                continue;
            }
            writes_outstanding += 1;
        }
        id = (id + 2) % 4096;
        let id = id + u32::from(kind == Kind::Read);
        submitted_ns[id as usize] = now_ns;
        drive.submit(now_ns, id, &request(kind, dice.below(units) * UNIT, UNIT));
    }
    latencies.sort_unstable();
    latencies
}

fn worn_drive() -> SsdDescription {
    let mut description = SsdDescription { state: FlashState::Steady, ..small_ssd() };
    description.timing.suspend_ns = Some(SUSPEND_NS);
    // So long that a wait is hardly ever cut short by the end of a program.
    description.timing.program_ns = 8 * PROGRAM_NS;
    description
}

#[test]
fn reads_that_suspend_wait_for_a_fixed_and_an_exponential_time() {
    let quantile = |latencies: &[u64], q: f64| latencies[(q * latencies.len() as f64) as usize] as f64;
    let mut description = worn_drive();
    let fixed = reads_beside_writes(&description, 2_000);
    description.timing.suspend_spread_ns = SPREAD_NS;
    let spread = reads_beside_writes(&description, 2_000);
    let base = quantile(&fixed, 0.01);
    // The share of reads that meet a busy die is the same in both.
    let share = |latencies: &[u64]| {
        latencies.iter().filter(|&&ns| ns as f64 > base + 5e3).count() as f64 / latencies.len() as f64
    };
    let busy = share(&fixed);
    assert!((0.1..0.6).contains(&busy) && (share(&spread) - busy).abs() < 0.04, "{busy} {}", share(&spread));
    // P(wait > 15 us + t) = busy e^(-t / 70 us), so p99 follows; with a fixed time all waits are about 15 us.
    let expected = base + SUSPEND_NS as f64 + SPREAD_NS as f64 * libm::log(busy / 0.01);
    let p99 = quantile(&spread, 0.99);
    println!("{busy:.3} wait; p99 {p99:.0} ns, expected {expected:.0} ns");
    assert!((p99 / expected - 1.0).abs() < 0.15, "p99 {p99} ns; {expected} ns by the law");
    assert!(quantile(&fixed, 0.95) < base + 80e3);
}

#[test]
fn urgent_writes_are_not_suspended() {
    let mut description = worn_drive();
    let beyond = 60_000;
    let suspending = reads_beside_writes(&description, beyond);
    description.timing.writes_urgent_when_full = true;
    let waiting = reads_beside_writes(&description, beyond);
    let below = reads_beside_writes(&description, 2_000);
    let median = |latencies: &[u64]| latencies[latencies.len() / 2];
    println!("{} {} {}", median(&suspending), median(&waiting), median(&below));
    assert!(median(&waiting) > description.timing.program_ns / 4, "reads wait for the rest of a program");
    assert!(median(&suspending) < description.timing.program_ns / 8);
    assert!(median(&below) < 2 * READ_NS, "below saturation nothing is urgent");
}

#[test]
fn reads_wait_longer_for_urgent_programs_of_three_pages() {
    let quantile = |latencies: &[u64], q: f64| latencies[(q * latencies.len() as f64) as usize] as f64;
    let mut description = SsdDescription { state: FlashState::Steady, ..small_ssd() };
    (description.timing.suspend_ns, description.timing.suspend_spread_ns) = (Some(SUSPEND_NS), SPREAD_NS);
    description.timing.writes_urgent_when_full = true;
    let page = [2_000, 60_000].map(|rate| reads_beside_writes(&description, rate));
    description.flash.pages_per_program = 3;
    let pages = [2_000, 60_000].map(|rate| reads_beside_writes(&description, rate));
    let (at_saturation, below) =
        (|q| quantile(&pages[1], q) / quantile(&page[1], q), |q| quantile(&pages[0], q) / quantile(&page[0], q));
    println!("{:.2} {:.2}; {:.2} {:.2}", at_saturation(0.5), at_saturation(0.95), below(0.5), below(0.99));
    // A read waits for the rest of a program, which is as long as three pages take.
    assert!((2.0..3.5).contains(&at_saturation(0.5)), "{}", at_saturation(0.5));
    // Below saturation the die is as busy as with single pages, and a suspension takes as long.
    assert!((below(0.5) - 1.0).abs() < 0.02 && (below(0.99) - 1.0).abs() < 0.2, "{} {}", below(0.5), below(0.99));
}

/// Returns the latencies of flushes, each after one write to an idle drive.
fn flushes(description: &SsdDescription, count: u64) -> Vec<u64> {
    let mut drive = Ssd::new(description, 7).expect("the description is possible");
    let mut now_ns = 0;
    let mut serve = |drive: &mut Ssd, request: &Request| {
        let start_ns = now_ns;
        drive.submit(now_ns, 0, request);
        while drive.next_event_ns() != u64::MAX {
            let event_ns = drive.next_event_ns();
            drive.advance(event_ns, |done| now_ns = done.at_ns);
        }
        now_ns - start_ns
    };
    let mut latencies = Vec::new();
    for index in 0..count {
        serve(&mut drive, &request(Kind::Write, index * UNIT, UNIT));
        latencies.push(serve(&mut drive, &flush()));
    }
    latencies
}

#[test]
fn every_second_flush_also_programs_the_map() {
    let mut description = small_ssd();
    (description.buffer.power_loss_protected, description.buffer.map_update_ns) = (false, 1_000 * US);
    description.buffer.flushes_per_map_update = 2;
    let latencies = flushes(&description, 6);
    for pair in latencies.chunks(2) {
        assert_eq!(pair[0], latencies[0]);
        assert_eq!(pair[1], pair[0] + 1_000 * US);
    }
}

#[test]
fn a_protected_drive_executes_a_flush_only_if_it_reports_a_volatile_cache() {
    let mut description = small_ssd();
    let free = flushes(&description, 3);
    description.buffer.flush_ns = 200 * US;
    let executed = flushes(&description, 3);
    assert!(free.iter().zip(&executed).all(|(free, executed)| executed - free == 200 * US), "{free:?} {executed:?}");
}
