//! Members of an array with contents of their own, as seen by a client over NBD: the write hole, silent damage, scrubs
//! and rebuilds.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::*;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Order, Session, SessionOptions};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::WriteCache;
use headstack_sim::faults::Fault;
use headstack_sim::power_cut::Tear;
use headstack_sim::{Model, SystemDescription};
use headstack_workload::Span;
use serde_json::Value;

const UNIT: u64 = 64 * KIB;
/// Bytes of data per row of three data units and a parity.
const ROW: u64 = 3 * UNIT;
const ROWS: u64 = 64;

/// Virtual time of most tests, as a multiple of real time.
const SPEED: f64 = 20.0;
/// The same where writes wait for a cache: the fault comes before the last of them are answered.
const SLOW: f64 = 2.0;

/// An exported array of drives that cache no writes, and its client.
struct Served {
    session: Session,
    server: Server,
    socket: PathBuf,
    client: Client,
}

impl Served {
    fn new(name: &str, groups: &str, seed: u64) -> Served {
        Served::at_speed(name, groups, seed, SPEED)
    }

    /// Serves the array `speed` times as fast as in real time.
    fn at_speed(name: &str, groups: &str, seed: u64, speed: f64) -> Served {
        let drives = "name = \"Five\"\n[[drives]]\ndrive = \"cheetah-x15-36lp\"\ncount = 5\n";
        let mut model = model_of(name, &format!("{drives}[[groups]]\n{groups}"));
        let Model::System(SystemDescription::Array(array)) = &mut model else { panic!("an array") };
        for device in &mut array.devices {
            let DeviceDescription::Disk(disk) = device else { panic!("disks") };
            disk.buffer.write_cache = WriteCache::Off;
        }
        let capacity_bytes = array.capacity_bytes();
        let options = SessionOptions { speed, realtime: false, seed, ..SessionOptions::default() };
        let session = Session::start(&model, options, None).unwrap();
        let export = Export {
            name: "disk".to_owned(),
            description: String::new(),
            span: Span { start_bytes: 0, length_bytes: capacity_bytes },
            block_bytes: 512,
            is_rotational: true,
        };
        let device = Device::of(&session, vec![export], Contents::in_memory(capacity_bytes).unwrap());
        let socket = std::env::temp_dir().join(format!("headstack-members-{name}-{}", std::process::id()));
        let server = Server::start(&device, &[Endpoint::Unix(socket.clone())], Security::None).unwrap();
        let client = connect(&socket);
        Served { session, server, socket, client }
    }

    fn order(&self, order: Order) -> Value {
        self.session.commander().order(order).unwrap()
    }

    fn inject(&self, fault: Fault) -> Value {
        self.order(Order::Inject { fault, lasts: None, when: Box::default() })
    }

    fn fail(&self, member: &str) {
        self.inject(Fault::MemberFails { member: member.to_owned() });
    }

    fn send(&mut self, command: u16, offset_bytes: u64, length_bytes: u64, data: &[u8]) {
        let header = Header { flags: 0, command, cookie: offset_bytes, offset_bytes, length_bytes };
        self.client.send(&header, data).unwrap();
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) {
        self.send(command::WRITE, offset_bytes, data.len() as u64, data);
        assert_eq!(self.client.receive(|_| &mut []).unwrap(), (offset_bytes, 0));
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Vec<u8> {
        let mut data = vec![0; length_bytes as usize];
        self.send(command::READ, offset_bytes, length_bytes, &[]);
        assert_eq!(self.client.receive(|_| &mut data[..]).unwrap(), (offset_bytes, 0));
        data
    }

    /// Corrupts the data of a member from a byte on.
    fn corrupt(&self, member: &str, at_bytes: u64, length_bytes: u64, pattern: &str) {
        let fault = serde_json::json!({
            "what": "corrupt", "member": member, "on": "rest", "how": "pattern", "pattern": pattern,
            "ranges": [{ "offset": at_bytes, "length": length_bytes }],
        });
        self.inject(serde_json::from_value(fault).unwrap());
    }

    /// Waits until `holds` is true for the only group, and returns the group's status.
    fn status(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.order(Order::Status);
            let group = &status["gauges"]["groups"][0];
            if holds(group) {
                return serde_json::json!({ "group": group, "mismatches": status["mismatches"][0] });
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Scrubs the group; returns the mismatched sectors and the differing bytes.
    fn scrub(&self, repair: bool) -> (u64, u64) {
        self.order(Order::Scrub { group: None, repair });
        let told = self.status(|group| group["pass"]["state"] == "done")["mismatches"].clone();
        (told["mismatched_sectors"].as_u64().unwrap(), told["differing_bytes"].as_u64().unwrap())
    }

    fn stop(self) {
        self.server.stop();
        self.session.stop();
    }
}

fn connect(socket: &PathBuf) -> Client {
    Client::connect(Stream::socket_of(UnixStream::connect(socket).unwrap()), "").unwrap()
}

/// Returns the initial data at an address.
fn before(offset_bytes: u64, length_bytes: u64) -> Vec<u8> {
    (offset_bytes..offset_bytes + length_bytes).step_by(8).flat_map(|at| (at ^ 0x5aa5).to_le_bytes()).collect()
}

fn fill(served: &mut Served) {
    for row in 0..ROWS {
        served.write(row * ROW, &before(row * ROW, ROW));
    }
}

/// State after a power loss during small writes.
#[derive(Debug, Default)]
struct Left {
    under_way: u64,
    /// Changed bytes of units that no client wrote, after a member has failed.
    wrong_bytes: u64,
    /// Number of bytes of each member that the resync had to cover.
    resynced_bytes: u64,
}

/// Writes the first block of each row, cuts the power during these writes, restores it, fails a member immediately or
/// after the resync, and reads the units that were never written.
fn cut(name: &str, groups: &str, seed: u64, waits: bool, speed: f64) -> Left {
    let mut served = Served::at_speed(name, groups, seed, speed);
    fill(&mut served);
    for row in 0..ROWS {
        served.send(command::WRITE, row * ROW, 4096, &[0xee; 4096]);
    }
    for _ in 0..8 {
        assert_eq!(served.client.receive(|_| &mut []).unwrap().1, 0);
    }
    let loss = served.inject(Fault::PowerCut { tear: Tear::Sector, atom: None })["loss"].clone();
    served.inject(Fault::PowerOn);
    let pass = served.status(|group| !waits || group["pass"]["state"] != "running")["group"]["pass"].clone();
    served.fail("d0");
    served.client = connect(&served.socket);
    let mut left = Left {
        under_way: loss["under_way"].as_u64().unwrap(),
        resynced_bytes: pass["of_bytes"].as_u64().unwrap_or(0),
        ..Left::default()
    };
    for offset in (0..ROWS).flat_map(|row| [1, 2].map(|unit| row * ROW + unit * UNIT)) {
        let wrong =
            served.read(offset, UNIT).iter().zip(before(offset, UNIT)).filter(|(now, then)| **now != *then).count();
        left.wrong_bytes += wrong as u64;
    }
    served.stop();
    left
}

const RAID5: &str = "level = \"raid5\"\ndrives = [\"d0..d3\"]\nchunk_size = \"64KiB\"\nrotation = \"left-symmetric\"\n";

#[test]
fn power_loss_and_failure_change_unwritten_blocks() {
    let found = (0..5).map(|seed| cut("hole", RAID5, seed, false, SPEED)).find(|left| left.wrong_bytes > 0);
    let left = found.expect("at least one power loss opens the write hole");
    assert!(left.under_way > 0 && left.resynced_bytes > 30 << 30, "without a bitmap all is resynced: {left:?}");
}

/// Maximum number of power losses: they happen at wall-clock times, so on a busy machine several may find no write in
/// flight. At least four are made.
const CUTS_MAX: u64 = 20;

#[test]
fn a_bitmap_makes_the_hole_short_and_a_resync_closes_it() {
    let bitmap = format!("{RAID5}[groups.bitmap]\nchunk = \"1MiB\"\n");
    let found = (0..5).map(|seed| cut("bitmap", &bitmap, seed, false, SPEED)).any(|left| left.wrong_bytes > 0);
    assert!(found, "the write hole remains open until the resync is complete");
    let mut under_way = 0;
    for seed in 0..CUTS_MAX {
        let left = cut("resynced", &bitmap, seed, true, SPEED);
        assert_eq!(left.wrong_bytes, 0, "{left:?}");
        assert!((1..=ROWS * UNIT).contains(&left.resynced_bytes), "{left:?}");
        under_way += left.under_way;
        if seed >= 3 && under_way > 0 {
            break;
        }
    }
    assert!(under_way > 0);
}

/// Data that a controller's cache has acknowledged or accepted is rewritten completely after the power loss.
#[test]
fn a_cache_with_a_battery_has_no_write_hole() {
    let cached =
        format!("{RAID5}[controller.cache]\nmemory = \"1MiB\"\npage = \"64KiB\"\nbattery = true\nwrites = \"back\"\n");
    let mut under_way = 0;
    for seed in 0..CUTS_MAX {
        let left = cut("battery-hole", &cached, seed, false, SLOW);
        assert_eq!((left.wrong_bytes, left.resynced_bytes), (0, 0), "{left:?}");
        under_way += left.under_way;
        if seed >= 3 && under_way > 0 {
            break;
        }
    }
    assert!(under_way > 0);
}

const SMALL: &str = "drive_size = \"16MiB\"\n";

#[test]
fn a_check_counts_mismatches_and_a_repair_rewrites_parity() {
    for repairs in [false, true] {
        let mut served = Served::new("scrub", &format!("{RAID5}{SMALL}"), 1);
        fill(&mut served);
        assert_eq!(served.scrub(false), (0, 0));
        // The parity of row 0 is on d3, and its first unit on d0.
        served.corrupt("d0", 4096, 100, "0xff");
        let read = served.read(4096, 512);
        assert!(read[..100] == [0xff; 100] && read[100..] == before(4096, 512)[100..], "reads report no error");
        let (sectors, differing_bytes) = served.scrub(false);
        assert!(sectors == 8 && differing_bytes > 0, "md counts a whole page");
        if repairs {
            assert_eq!(served.scrub(true), (8, 0));
            assert_eq!(served.scrub(false), (0, 0));
        }
        // Without the repair, the parity still restores the original data.
        served.fail("d0");
        let now = served.read(4096, 512);
        assert_eq!(now == before(4096, 512), !repairs);
        assert_eq!(now[..100] == [0xff; 100], repairs);
        served.stop();
    }
}

#[test]
fn a_rebuild_spreads_damage_to_an_untouched_block() {
    let spare = format!("{RAID5}{SMALL}spares = [\"d4\"]\n");
    let mut served = Served::new("spread", &spare, 1);
    fill(&mut served);
    // The units of row 0 are on d0, d1 and d2.
    served.corrupt("d0", 0, 512, "0xff");
    served.fail("d1");
    served.status(|group| group["state"] == "healthy");
    let (damaged, neighbour) = (served.read(0, 512), served.read(UNIT, 512));
    assert_eq!(damaged, [0xff; 512]);
    let spread: Vec<u8> = before(UNIT, 512).iter().zip(before(0, 512)).map(|(own, old)| own ^ old ^ 0xff).collect();
    assert_eq!(neighbour, spread);
    assert_eq!(served.scrub(false), (0, 0), "the rebuilt member agrees with the damage");
    // The owner rewrites the damaged data, but its neighbour stays wrong.
    served.write(0, &before(0, 512));
    assert_eq!(served.read(UNIT, 512), spread);
    served.stop();
}

#[test]
fn copies_that_differ_are_read_in_turn_until_they_are_repaired() {
    let mirror = format!("level = \"raid1\"\ndrives = [\"d0\", \"d1\"]\nmirror_reads = \"round-robin\"\n{SMALL}");
    let mut served = Served::new("mirror", &mirror, 1);
    served.write(0, &before(0, 65536));
    served.corrupt("d1", 8192, 512, "0x01");
    let reads: Vec<bool> = (0..4).map(|_| served.read(8192, 512) == before(8192, 512)).collect();
    assert_eq!(reads, [true, false, true, false]);
    assert_eq!(served.scrub(true), (8, 0));
    assert!((0..4).all(|_| served.read(8192, 512) == before(8192, 512)), "the first copy is trusted");
    // A single remaining copy serves its own data.
    served.corrupt("d1", 8192, 512, "0x01");
    served.fail("d0");
    assert_eq!(served.read(8192, 512), [1; 512]);
    served.stop();
}

#[test]
fn faults_damage_stored_data_of_a_member() {
    let mut served = Served::new("struck", &format!("{RAID5}{SMALL}"), 1);
    fill(&mut served);
    let order = |text: &str| -> Order { serde_json::from_str(text).unwrap() };
    let struck = served.order(order(
        r#"{"do": "inject", "fault": {"what": "corrupt", "member": "d3", "on": "rest", "how": "ones",
            "ranges": [{"offset": 0, "length": 512}]}}"#,
    ));
    assert_eq!(struck["number"], 0);
    // The parity of row 0 is on d3: the mismatch is invisible until a member is missing.
    assert_eq!(served.read(0, ROW), before(0, ROW));
    assert_eq!(served.scrub(true), (8, 0));
    // d1 acknowledges a write that it does not store: the second unit of row 0, and the parity of row 2.
    served.order(order(
        r#"{"do": "inject", "fault": {"what": "lose-write", "member": "d1", "ranges": [{"offset": 0, "length": 1048576}]}}"#,
    ));
    served.write(UNIT, &[0xee; 4096]);
    served.write(2 * ROW, &[0xee; 4096]);
    assert_eq!(served.read(UNIT, 4096), before(UNIT, 4096), "the data is unchanged");
    assert_eq!(served.read(2 * ROW, 4096), [0xee; 4096]);
    assert_eq!(served.scrub(false).0, 16);
    // The scrubs are also in the log.
    let log = served.order(Order::Injections)["injections"].clone();
    assert_eq!([0, 2].map(|number| log[number]["harmed"].as_u64()), [Some(1), Some(2)], "{log}");
    // The parity of row 0 includes the write, so the data returns when the member that lost it is gone.
    served.fail("d1");
    assert_eq!(served.read(UNIT, 4096), [0xee; 4096]);
    served.stop();
}

#[test]
fn impossible_damage_or_scrub_is_refused_with_a_reason() {
    let served = Served::new("refusals", &format!("{RAID5}{SMALL}"), 1);
    let corrupt = |served: &Served, member: &str| {
        let text = r#"{"do": "inject", "fault": {"what": "corrupt", "member": "MEMBER", "on": "rest", "how": "ones"}}"#;
        let order = serde_json::from_str(&text.replace("MEMBER", member)).unwrap();
        served.session.commander().order(order).unwrap_err().to_string()
    };
    let said = corrupt(&served, "d4");
    assert!(said.contains("d4 has no slot in a group; use an active member"), "{said}");
    let scrub = || served.session.commander().order(Order::Scrub { group: None, repair: false });
    served.fail("d2");
    assert!(scrub().unwrap_err().to_string().contains("is degraded; wait until it is healthy"));
    served.stop();
    let draid = "level = \"draid1:2d:1s\"\ndrives = [\"d0..d4\"]\ndrive_size = \"64MiB\"\n";
    let served = Served::new("flat", draid, 1);
    let said = corrupt(&served, "d0");
    assert!(
        said.contains("has no individual contents; use a member of a group without records and without a pool"),
        "{said}"
    );
    let status = served.order(Order::Status);
    assert_eq!(status["mismatches"][0]["differing_bytes"], Value::Null);
    let scrub = served.session.commander().order(Order::Scrub { group: None, repair: false });
    assert!(scrub.unwrap_err().to_string().contains("no redundancy to scrub"));
    served.stop();
}
