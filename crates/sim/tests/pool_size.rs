//! Memory of the map of a large array. A separate process, since it measures its whole memory. `cargo test --release -p
//! headstack-sim --test pool_size -- --nocapture` prints the figures.

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
        (((state >> 32) * u64::from(count)) >> 32) as u32
    })
}

fn report(what: &str, count: u64, started: Instant) {
    println!("{what}: {:.1} million a second", count as f64 / started.elapsed().as_secs_f64() / 1e6);
}

fn pool(raw_bytes: u64) -> Pool {
    let group_bytes = 30 * SEGMENT;
    let description = PoolDescription {
        segment_bytes: SEGMENT,
        members: MEMBERS,
        member_bytes: raw_bytes / u64::from(MEMBERS),
        spare_bytes: 0,
        allocation_ns: 0,
        classes: Classes::Migrating {
            parity_width: MEMBERS,
            low_free_bytes: 100 * group_bytes,
            high_free_bytes: 200 * group_bytes,
        },
    };
    Pool::new(&description, &[TB]).unwrap()
}

// One after the other: the first measures the memory of the process.
#[test]
fn a_terabyte() {
    has_room();
    has_to_be_demoted();
}

fn has_room() {
    let before = resident_bytes();
    let mut pool = pool(2 * TB + TB / 100);
    assert!(resident_bytes() - before < 1 << 20, "an empty pool is small");
    let segments = TB.div_ceil(SEGMENT) as u32;
    let started = Instant::now();
    // Scattered: consecutive writes are 7,919 segments apart.
    for number in 0..u64::from(segments) {
        let segment = (number * 7_919 % u64::from(segments)) as u32;
        pool.write(0, segment).unwrap();
    }
    report("first writes", u64::from(segments), started);
    assert_eq!(pool.allocated_bytes(0), u64::from(segments) * SEGMENT);
    let bytes = resident_bytes() - before;
    println!("{segments} segments in {:.1} MiB", bytes as f64 / 1048576.0);
    assert!(bytes < 80 << 20, "{bytes} bytes");
    pool.verify().unwrap();

    const COUNT: usize = if cfg!(debug_assertions) { 1_000_000 } else { 20_000_000 };
    for (of, range) in [("1 TB", segments), ("10 GB", segments / 100)] {
        let started = Instant::now();
        for segment in random_segments(range).take(COUNT) {
            black_box(pool.place(0, segment));
        }
        report(&format!("random lookups in {of}"), COUNT as u64, started);
        let started = Instant::now();
        random_segments(range).take(COUNT).for_each(|segment| drop(black_box(pool.write(0, segment))));
        report(&format!("random writes in {of}"), COUNT as u64, started);
    }
}

fn has_to_be_demoted() {
    let mut pool = pool(3 * TB / 2);
    let segments = TB.div_ceil(SEGMENT) as u32;
    let started = Instant::now();
    (0..segments).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    report("first writes, room made for a third of them", u64::from(segments), started);

    let (started, count, mut migrations) = (Instant::now(), if cfg!(debug_assertions) { 20_000 } else { 1_000_000 }, 0);
    for segment in random_segments(segments).take(count) {
        pool.write(0, segment).unwrap();
        if let Some(migration) = pool.next_migration() {
            pool.complete(&migration);
            migrations += 1;
        }
    }
    report(&format!("random writes among {migrations} migrations"), count as u64, started);
    pool.verify().unwrap();
}
