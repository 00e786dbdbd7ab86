//! Resources that a server uses. Tests run one at a time, since threads and descriptors are counted per process.

#[allow(dead_code)] // Not all of it is needed here.
#[path = "nbd/served.rs"]
mod served;

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use headstack_live::nbd::wire::command;
use served::{Asking, LATENCIES_NS, PATIENCE, Served, header, pattern};

const CLIENTS: u64 = 1000;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the number of open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// Number of threads of an idle server: the clock and a listener.
const THREADS_AT_REST: usize = 2;

/// Returns the number of server threads; other threads of this process belong to the test harness.
fn threads() -> usize {
    of_threads("comm", |_| Some(0)).len()
}

/// Waits until a count is at most `most`.
fn await_at_most(most: usize, count: fn() -> usize, what: &str) {
    let begun = Instant::now();
    while count() > most {
        assert!(begun.elapsed() < PATIENCE, "{} {what}, expected at most {most}", count());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a field for each of the server's threads, with the thread's name and id.
fn of_threads(file: &str, field: impl Fn(&str) -> Option<u64>) -> Vec<(String, String, u64)> {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let told = threads.filter_map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        let text = std::fs::read_to_string(thread.path().join(file)).ok()?;
        let is_ours = name.starts_with("headstack-");
        is_ours.then(|| (name, thread.file_name().to_string_lossy().into_owned(), field(&text)))
    });
    let mut told: Vec<_> =
        told.map(|(name, number, value)| (name, number, value.expect("Linux reports this field"))).collect();
    told.sort();
    told
}

#[test]
fn a_thousand_clients_are_served_at_once_and_leave_nothing_behind() {
    let _alone = alone();
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let before = descriptors();
        // All clients are connected at the same time, and each has a request in flight.
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| served.client()).collect();
        assert_eq!(served.server().connections(), CLIENTS as usize);
        for (number, client) in clients.iter_mut().enumerate() {
            let number = number as u64;
            let write = header(command::WRITE, 0, number, number * 4096, 4096);
            client.send(&write, &pattern(number, 4096)).expect("sending succeeds");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.receive(|_| &mut []).expect("the server replies"), (number as u64, 0));
        }
        let next = |number: usize| (number as u64 + 1) % CLIENTS;
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&header(command::READ, 0, 1, next(number) * 4096, 4096), &[]).expect("sending succeeds");
        }
        let mut data = vec![0; 4096];
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.receive(|_| &mut data).expect("the server replies"), (1, 0));
            assert!(data == pattern(next(number), 4096), "client {number}");
        }
        drop(clients);
        served.await_empty();
        await_at_most(THREADS_AT_REST, threads, "threads");
        await_at_most(before, descriptors, "descriptors");
    }
}

#[test]
fn an_idle_client_uses_no_thread() {
    let _alone = alone();
    let served = Served::new(0);
    let mut settled = served.client();
    // Once this is answered, all threads of the client exist.
    assert_eq!(settled.simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
    let threads = || of_threads("status", |_| Some(0)).len();
    // A thread has its name only a moment after it has begun: count the settled client's in any case.
    let before = threads().max(THREADS_AT_REST + 1);
    let silent: Vec<_> = (0..CLIENTS).map(|_| served.stream()).collect();
    // Connections are accepted in order, so this one was accepted after all others.
    drop(served.greeted());
    await_at_most(before, threads, "threads");
    assert_eq!(settled.simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
    drop(silent);
}

#[test]
fn connections_that_are_cut_leave_nothing_behind() {
    let _alone = alone();
    let mut served = Served::new(0);
    let before = descriptors();
    for _ in 0..50 {
        let clients: Vec<_> = (0..20).map(|_| served.client()).collect();
        served.server().cut_connections();
        for mut client in clients {
            assert!(client.receive(|_| &mut []).is_err(), "a cut connection has no replies");
        }
    }
    served.await_empty();
    await_at_most(THREADS_AT_REST, threads, "threads");
    await_at_most(before, descriptors, "descriptors");
    served.stop();
    await_at_most(before.saturating_sub(2), descriptors, "descriptors");
}

#[test]
fn a_server_without_requests_does_nothing() {
    let _alone = alone();
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut clients: Vec<_> = (0..10).map(|_| served.client()).collect();
        clients.iter_mut().for_each(|client| drop(client.simple(&header(command::READ, 0, 1, 0, 4096), &[])));
        let wakes = || {
            of_threads("status", |text| {
                let line = text.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
                line.split_whitespace().last()?.parse().ok()
            })
        };
        // Wait until the threads are idle, then check that they remain idle.
        let (begun, mut before) = (Instant::now(), wakes());
        loop {
            std::thread::sleep(Duration::from_millis(700));
            let after = wakes();
            if after == before {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "idle threads wake up: {before:?}, {after:?}");
            before = after;
        }
        assert!(before.len() >= 12, "the clock, a listener and ten connections");
    }
}

#[test]
fn only_io_threads_share_the_clocks_scheduling_class() {
    let _alone = alone();
    let served = Served::new(LATENCIES_NS[1]);
    let mut client = served.client();
    // Long replies, which the clock passes to another thread.
    for cookie in 0..4 {
        assert!(client.simple(&header(command::READ, 0, cookie, 0, 1 << 20), &[]).is_ok());
    }
    // Field 41 and field 40, counted after the name, which may contain spaces.
    let field = |number: usize| {
        of_threads("stat", move |text| text.rsplit_once(')')?.1.split_whitespace().nth(number - 3)?.parse().ok())
    };
    let (classes, priorities) = (field(41), field(40));
    let of = |all: &[(String, String, u64)], prefix: &str| -> Vec<u64> {
        all.iter().filter(|(name, ..)| name.starts_with(prefix)).map(|(.., value)| *value).collect()
    };
    let clock = of(&classes, "headstack-clock")[0];
    for (name, _, class) in &classes {
        let is_on_the_path =
            ["headstack-clock", "headstack-nbd", "headstack-send"].iter().any(|on| name.starts_with(on));
        assert_eq!(*class, if is_on_the_path { clock } else { 0 }, "{name}");
    }
    // If a real-time class is available, a long copy does not delay the clock.
    for thread in ["headstack-nbd", "headstack-send"] {
        let behind = of(&priorities, thread);
        assert!(!behind.is_empty(), "{thread}: {classes:?}");
        assert!(
            clock == 0 || behind.iter().all(|&priority| priority < of(&priorities, "headstack-clock")[0]),
            "{thread}"
        );
    }
}
