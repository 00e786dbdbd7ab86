//! A small trace with everything that can happen to a request.

use super::encoder::{Event, Layout, clock_note, message_note, name_note};

pub const DISK: (u32, u32) = (8, 16);
pub const MAPPED: (u32, u32) = (253, 0);
/// Processes with names as unusual as the kernel allows.
pub const NAMES: [(u32, &str); 3] = [(100, "fio"), (200, "kworker/0:1H"), (300, "a [b] c]")];

/// `at_us cpu pid action rwbs sector sectors`, and the action's extra value.
type Told = (u64, u32, u32, &'static str, &'static str, u64, u32, u64);
const STORY: &[Told] = &[
    // A single request with all its events, completed in the context of an arbitrary process.
    (10, 0, 100, "Q", "R", 2_048, 8, 0),
    (11, 0, 100, "G", "R", 2_048, 8, 0),
    (12, 0, 100, "P", "N", 0, 0, 0),
    (13, 0, 100, "U", "N", 0, 0, 1),
    (14, 0, 200, "D", "R", 2_048, 8, 0),
    (90, 1, 0, "C", "R", 2_048, 8, 0),
    // Two identical requests in flight together.
    (100, 0, 100, "Q", "WS", 64, 8, 0),
    (101, 1, 300, "Q", "WS", 64, 8, 0),
    (102, 0, 100, "D", "WS", 64, 8, 0),
    (104, 1, 300, "D", "WS", 64, 8, 0),
    (150, 0, 0, "C", "WS", 64, 8, 0),
    (170, 0, 0, "C", "WS", 64, 8, 0),
    // Two requests at one address, of which the second, shorter one completes first.
    (180, 0, 100, "Q", "W", 300, 16, 0),
    (181, 0, 100, "Q", "W", 300, 8, 0),
    (183, 0, 100, "D", "W", 300, 16, 0),
    (184, 0, 100, "D", "W", 300, 8, 0),
    (188, 0, 0, "C", "W", 300, 8, 0),
    (195, 0, 0, "C", "W", 300, 16, 0),
    // Two requests that are merged.
    (200, 0, 100, "Q", "W", 1_000, 8, 0),
    (201, 0, 100, "Q", "W", 1_008, 16, 0),
    (202, 0, 100, "M", "W", 1_008, 16, 0),
    (205, 0, 200, "D", "W", 1_000, 24, 0),
    (290, 1, 0, "C", "W", 1_000, 24, 0),
    // A request that is split; the second part is issued first.
    (300, 0, 100, "Q", "W", 4_096, 2_048, 0),
    (301, 0, 100, "X", "W", 4_096, 1_024, 5_120),
    (303, 0, 100, "D", "W", 5_120, 1_024, 0),
    (305, 0, 100, "D", "W", 4_096, 1_024, 0),
    (390, 1, 0, "C", "W", 4_096, 1_024, 0),
    (395, 1, 0, "C", "W", 5_120, 1_024, 0),
    // A request that the driver returns to the queue.
    (400, 0, 300, "Q", "RA", 7_000, 8, 0),
    (402, 0, 300, "D", "RA", 7_000, 8, 0),
    (410, 0, 0, "R", "RA", 7_000, 8, 0),
    (420, 0, 200, "D", "RA", 7_000, 8, 0),
    (450, 1, 0, "C", "RA", 7_000, 8, 0),
    // Two flushes, of which the device receives one.
    (500, 0, 100, "Q", "FWS", 0, 0, 0),
    (501, 1, 300, "Q", "FWS", 0, 0, 0),
    (505, 0, 200, "D", "FR", 0, 0, 0),
    (550, 1, 0, "C", "FR", u64::MAX, 0, 0),
    (551, 1, 0, "C", "WS", 0, 0, 0),
    (552, 1, 0, "C", "WS", 0, 0, 0),
    // A discard that fails.
    (600, 0, 100, "Q", "DS", 8_192, 4_096, 0),
    (601, 0, 100, "D", "DS", 8_192, 4_096, 0),
    (640, 1, 0, "C", "DS", 8_192, 4_096, 5),
    // A request completed in two halves.
    (700, 0, 100, "Q", "R", 9_000, 16, 0),
    (701, 0, 100, "D", "R", 9_000, 16, 0),
    (740, 1, 0, "C", "R", 9_000, 8, 0),
    (760, 1, 0, "C", "R", 9_008, 8, 0),
    // Forced writes that follow a flush.
    (800, 1, 300, "Q", "WFSM", 10_000, 8, 0),
    (802, 1, 300, "D", "WFSM", 10_000, 8, 0),
    (830, 0, 0, "C", "WFSM", 10_000, 8, 0),
    (840, 1, 300, "Q", "FWFS", 10_008, 8, 0),
    (842, 1, 300, "D", "FWFS", 10_008, 8, 0),
    (870, 0, 0, "C", "FWFS", 10_008, 8, 0),
    // A completion of a request issued before the trace began, and a request that never completes.
    (900, 1, 0, "C", "R", 77_000, 8, 0),
    (910, 0, 200, "D", "W", 88_000, 8, 0),
    (920, 1, 0, "C", "W", 88_000, 8, 0),
    (930, 0, 100, "Q", "W", 99_000, 8, 0),
];

fn plain(at_us: u64, device: (u32, u32), pid: u32, action: &'static str, rwbs: &'static str, sector: u64) -> Event {
    Event { at_us, cpu: 0, sequence: 0, device, pid, action, rwbs, sector, bytes: 4_096, extra: 0, error: 0 }
}

/// Returns all events in order of time.
pub fn events() -> Vec<Event> {
    let mut events: Vec<Event> = STORY
        .iter()
        .map(|&(at_us, cpu, pid, action, rwbs, sector, sectors, extra)| {
            let error = if action == "C" { -(extra as i16) } else { 0 };
            Event {
                at_us,
                cpu,
                sequence: 0,
                device: DISK,
                pid,
                action,
                rwbs,
                sector,
                bytes: sectors * 512,
                extra,
                error,
            }
        })
        .collect();
    events.extend([
        // A request to a mapped device, which becomes a request to the disk below.
        plain(940, MAPPED, 100, "Q", "R", 10),
        Event { extra: 10, ..plain(941, DISK, 100, "A", "R", 2_058) },
        plain(942, DISK, 100, "Q", "R", 2_058),
        plain(943, DISK, 100, "D", "R", 2_058),
        plain(960, DISK, 0, "C", "R", 2_058),
        plain(961, MAPPED, 0, "C", "R", 10),
        // A pass-through command.
        Event { bytes: 36, ..plain(970, DISK, 100, "D", "PR", 0) },
        Event { bytes: 36, ..plain(980, DISK, 0, "C", "PR", 0) },
    ]);
    let mut sequences = [0; 2];
    for event in &mut events {
        sequences[event.cpu as usize] += 1;
        event.sequence = sequences[event.cpu as usize];
    }
    events
}

/// Returns the events for which `wanted` is true as the kernel records them, after notifications of names and time.
/// Some events have a cgroup id, which not every version of blkparse supports.
pub fn binary(layout: Layout, wanted: impl Fn(&Event) -> bool) -> Vec<u8> {
    recorded(layout, wanted, |number| (number % 5 == 4).then_some(4_711))
}

/// Returns the same events without cgroup ids.
pub fn without_cgroups(layout: Layout, wanted: impl Fn(&Event) -> bool) -> Vec<u8> {
    recorded(layout, wanted, |_| None)
}

fn recorded(layout: Layout, wanted: impl Fn(&Event) -> bool, cgroup: impl Fn(usize) -> Option<u64>) -> Vec<u8> {
    let events: Vec<Event> = events().into_iter().filter(|event| wanted(event)).collect();
    let mut bytes = clock_note(layout, &events[0]);
    for (pid, name) in NAMES {
        bytes.extend(name_note(layout, &events[0], pid, name));
    }
    bytes.extend(message_note(layout, &events[0], "all begins"));
    for (number, event) in events.iter().enumerate() {
        bytes.extend(event.binary(layout, cgroup(number)));
    }
    bytes
}

/// Returns the events as blkparse prints them, without totals.
pub fn text() -> String {
    let events = events();
    let name = |pid| NAMES.iter().find(|(known, _)| *known == pid).map_or("swapper/0", |(_, name)| name);
    let line = |(number, event): (usize, &Event)| event.text(number + 1, events[0].at_us, name(event.pid));
    events.iter().enumerate().map(line).collect()
}
