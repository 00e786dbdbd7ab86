//! Arrays of bare drives.

use headstack_result::RunResult;
use headstack_sim::array::Array;
use headstack_sim::array::description::{
    ArrayDescription, Controller, Filler, Group, Level, Lun, Member, MirrorReads, Prefill, Rebuild, Rotation,
    SmallWrites, Spindles,
};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::Completion;
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{Kind, Request, Workload};
use serde_json::json;

use super::{MS, bare_drive, run_spec};

/// Bytes of a chunk.
pub const UNIT: u64 = 64 << 10;
/// Rows of a member.
pub const ROWS: u64 = 64;

/// A group of members of a common size.
pub fn group(level: Level, members: std::ops::Range<u32>, spans: u32) -> Group {
    Group {
        name: "g".to_owned(),
        level,
        members: members.collect(),
        spans,
        chunk_bytes: UNIT,
        rotation: Rotation::LeftSymmetric,
        member_bytes: ROWS * UNIT,
        record_bytes: 0,
        small_writes: SmallWrites::Cheapest,
        mirror_reads: MirrorReads::ShortestQueue,
        spares: vec![],
        rebuild: Rebuild {
            step_bytes: 4 * UNIT,
            steps: 2,
            rate_limit_bytes_per_s: None,
            yield_to_host: 0.0,
            minimum: None,
            filled_by: Filler::Array,
        },
        pool: None,
        bitmap: None,
        ppl: None,
        is_journaled: false,
    }
}

/// Returns an array of bare drives with one group and one LUN, whose spindles are synchronized, so that latencies can
/// be computed by hand.
pub fn array(group: Group, capacity_bytes: u64) -> ArrayDescription {
    let count = group.members.len() + group.spares.len();
    let member = |at: usize| Member { name: format!("d{at}"), device: 0, ways: vec![] };
    ArrayDescription {
        name: "test".to_owned(),
        devices: vec![DeviceDescription::Disk(bare_drive())],
        members: (0..count).map(member).collect(),
        links: vec![],
        spindles: Spindles::SYNCHRONIZED,
        groups: vec![group],
        luns: vec![Lun {
            name: "lun".to_owned(),
            group: 0,
            start_bytes: 0,
            length_bytes: capacity_bytes,
            prefill: Prefill::None,
        }],
        controller: Controller {
            request_ns: 0,
            command_ns: 0,
            parity_ns_per_byte: 0.0,
            processors: 1,
            member_tags: 32,
            adapter: None,
            cache: None,
        },
        host_links: vec![],
        incidents: vec![],
    }
}

/// Returns the capacity of a group.
pub fn capacity(level: Level, members: u64, spans: u64) -> u64 {
    let data = match level {
        Level::Raid1 => 1,
        Level::Raid10 => return members * ROWS * UNIT / 2 / UNIT * UNIT,
        Level::Concat | Level::Raid0 => members,
        Level::Raid5 => members - spans,
        Level::Raid6 => members - 2 * spans,
        Level::Erasure { data, parity } => members / u64::from(data + parity) * u64::from(data),
        Level::Raidz { .. } | Level::Draid { .. } => panic!("what records take depends on their size"),
    };
    data * ROWS * UNIT
}

/// The levels without counts.
pub const LEVELS: [Level; 6] = [Level::Concat, Level::Raid0, Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6];

/// An array of one level.
pub fn of(level: Level, members: u32) -> ArrayDescription {
    array(group(level, 0..members, 1), capacity(level, members.into(), 1))
}

/// A request.
pub fn request(kind: Kind, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { kind, offset_bytes, length_bytes: length_bytes as u32, force_unit_access: false, ordered: false }
}

/// Serves the requests one after the other; returns the array and the completions.
pub fn serve(description: &ArrayDescription, from_ns: u64, requests: &[Request]) -> (Array, Vec<Completion>) {
    let mut array = Array::new(description, 1).unwrap();
    let (mut now_ns, mut all) = (from_ns, vec![]);
    let mut done = vec![];
    array.advance(now_ns, &mut done);
    for (id, request) in requests.iter().enumerate() {
        array.submit(now_ns, id as u32, request);
        let before = all.len();
        while all.len() == before {
            now_ns = array.next_event_ns();
            assert!(now_ns != u64::MAX, "no event is scheduled");
            array.advance(now_ns, &mut done);
            all.append(&mut done);
        }
        assert_eq!((all.len(), all[before].id), (before + 1, id as u32));
    }
    (array, all)
}

/// A run of one access line in a closed loop, which passes its own checks.
pub fn run_array(
    description: &ArrayDescription,
    line: serde_json::Value,
    queue_depth: u32,
    requests: u64,
    warm_up: u64,
) -> RunResult {
    run_array_seeded(description, line, queue_depth, requests, warm_up, 3)
}

/// Like [`run_array`], with a seed of its own.
pub fn run_array_seeded(
    description: &ArrayDescription,
    line: serde_json::Value,
    queue_depth: u32,
    requests: u64,
    warm_up: u64,
    seed: u64,
) -> RunResult {
    let workload = json!({
        "name": "test", "lines": [line], "arrivals": {"closed": {"queue_depth": queue_depth}},
        "run_length": {"requests": requests}, "warm_up": {"requests": warm_up},
    });
    let workload: Workload = serde_json::from_value(workload).unwrap();
    let system = SystemDescription::Array(description.clone());
    run_spec(&RunSpec {
        system_name: "test".to_owned(),
        system,
        demand: workload.into(),
        span: None,
        seed,
        interval_ns: None,
        preload: 0,
        faults: None,
    })
}

/// Serves 400 requests of several sizes, one a millisecond, while a member fails: each is answered once, in order of
/// time, and the array is rebuilt once.
pub fn assert_answers_each_once(description: &ArrayDescription, of: &str) {
    let mut array = Array::new(description, 1).unwrap();
    let total = description.luns[0].length_bytes;
    let mut done: Vec<Completion> = vec![];
    for id in 0..400u64 {
        let kind = if id % 3 == 0 { Kind::Write } else { Kind::Read };
        let length = [4096, UNIT, 3 * UNIT][(id % 3) as usize];
        let offset = (id * 7_654_321 * 512) % (total - length) / 512 * 512;
        array.advance(id * MS, &mut done);
        array.submit(id * MS, id as u32, &request(kind, offset, length));
    }
    while array.next_event_ns() != u64::MAX {
        array.advance(array.next_event_ns(), &mut done);
    }
    let mut ids: Vec<u32> = done.iter().map(|completion| completion.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..400).collect::<Vec<u32>>(), "{of}");
    assert!(done.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "{of}");
    assert_eq!(array.rebuilds_ns().len(), 1, "{of}");
}
