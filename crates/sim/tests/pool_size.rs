//! What the map of a large array costs. A process of its own, as it looks at the memory of all of it.
//! `cargo test --release -p headstack-sim --test pool_size -- --nocapture` tells the figures.

#![cfg(target_os = "linux")]

use std::hint::black_box;
use std::time::Instant;

use headstack_sim::array::pool::{Classes, Pool, PoolDescription};

const TB: u64 = 1_000_000_000_000;
const SEGMENT: u64 = 256 * 1024;
const MEMBERS: u32 = 15;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells the memory");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has a line for it");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("in KiB") * 1024
}

/// Pseudo-random segment numbers below `count`.
fn random_segments(count: u32) -> impl Iterator<Item = u32> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 32) * u64::from(count) >> 32) as u32
    })
}

fn report(what: &str, count: u64, started: Instant) {
    println!("{what}: {:.1} million a second", count as f64 / started.elapsed().as_secs_f64() / 1e6);
}

#[test]
fn a_terabyte_of_luns() {
    let group_bytes = 30 * SEGMENT;
    let description = PoolDescription {
        segment_bytes: SEGMENT,
        members: MEMBERS,
        member_bytes: 2 * TB / u64::from(MEMBERS) + 100 * group_bytes,
        spare_bytes: 0,
        allocation_ns: 0,
        classes: Classes::Migrating {
            parity_width: MEMBERS,
            low_free_bytes: 100 * group_bytes,
            high_free_bytes: 5_000 * group_bytes,
        },
    };
    let before = resident_bytes();
    let mut pool = Pool::new(&description, &[TB]).unwrap();
    assert!(resident_bytes() - before < 1 << 20, "an empty pool is small");
    let segments = TB.div_ceil(SEGMENT) as u32;
    let started = Instant::now();
    // Scattered: consecutive writes are 7,919 segments apart.
    for number in 0..u64::from(segments) {
        let segment = (number * 7_919 % u64::from(segments)) as u32;
        assert!(pool.write(0, segment).unwrap().allocated);
    }
    report("first writes", u64::from(segments), started);
    let bytes = resident_bytes() - before;
    println!(
        "{segments} segments in {:.1} MiB: {:.1} bytes each",
        bytes as f64 / 1048576.0,
        bytes as f64 / f64::from(segments)
    );
    assert!(bytes < 64 << 20, "{bytes} bytes");
    pool.verify().unwrap();

    const COUNT: usize = 20_000_000;
    let started = Instant::now();
    random_segments(segments).take(COUNT).for_each(|segment| drop(black_box(pool.place(0, segment))));
    report("lookups", COUNT as u64, started);
    let started = Instant::now();
    random_segments(segments).take(COUNT).for_each(|segment| drop(black_box(pool.write(0, segment).unwrap())));
    report("writes", COUNT as u64, started);

    // Shrink what is mirrored; then writes all over the LUN, and a migration whenever one is proposed.
    let started = Instant::now();
    let mut migrations = 0;
    pool.recreate_lun(0);
    (0..segments).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    for segment in random_segments(segments).take(COUNT / 10) {
        pool.write(0, segment).unwrap();
        if let Some(migration) = pool.next_migration() {
            pool.complete(&migration);
            migrations += 1;
        }
    }
    report(
        &format!("refill and writes among {migrations} migrations"),
        u64::from(segments) + COUNT as u64 / 10,
        started,
    );
    let peak = resident_bytes() - before;
    println!("{:.1} MiB with all three", peak as f64 / 1048576.0);
    assert!(peak < 80 << 20, "{peak} bytes");
}
