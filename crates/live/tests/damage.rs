//! Damage to contents as an outside client finds it, who keeps books of his own of what he wrote: exactly what is stated,
//! and nothing else.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use headstack_live::journal::JournalPlan;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::power::damage::PreviousData;
use headstack_live::power::{Change, UndoLog};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Order, Session, SessionOptions};
use headstack_sim::faults::contents::{Alteration, Damage, Replacement};
use headstack_sim::power_cut::{Fate, Verdict};
use headstack_sim::{Constant, Model};
use headstack_workload::Span;
use serde_json::Value;

const BLOCK: usize = 4096;

/// A served device, and a client that waits for each answer.
pub struct Bench {
    pub parts: Option<(Session, Server)>,
    pub device: Arc<Device>,
    client: Client,
    socket: PathBuf,
    cookie: u64,
}

impl Bench {
    fn new(name: &str, model: &Model, faults: &str) -> Bench {
        Bench::journaled(name, model, faults, None)
    }

    /// One that keeps a journal.
    pub fn journaled(name: &str, model: &Model, faults: &str, journal: Option<JournalPlan>) -> Bench {
        Bench::at_speed(name, model, faults, (50.0, journal))
    }

    /// One whose model goes so much faster than the wall.
    pub fn at_speed(name: &str, model: &Model, faults: &str, (speed, journal): (f64, Option<JournalPlan>)) -> Bench {
        let schedule = schedule(model, faults);
        let options = SessionOptions { speed, realtime: false, schedule, journal, ..SessionOptions::default() };
        let session = Session::start(model, options, None).unwrap();
        let (length_bytes, block_bytes) = match model {
            Model::System(system) => (system.capacity_bytes(), system.block_bytes()),
            Model::Constant(constant) => (constant.capacity_bytes, 512),
        };
        let span = Span { start_bytes: 0, length_bytes };
        let (name_of_it, description) = ("lun".to_owned(), String::new());
        let export = Export { name: name_of_it, description, span, block_bytes, is_rotational: true };
        let device = Device::of(&session, vec![export], Contents::in_memory(length_bytes).unwrap());
        let socket = std::env::temp_dir().join(format!("headstack-damage-{name}-{}", std::process::id()));
        let server = Server::start(&device, &[Endpoint::Unix(socket.clone())], Security::None).unwrap();
        let client = client_of(&socket);
        Bench { parts: Some((session, server)), device, client, socket, cookie: 0 }
    }

    fn ask(&mut self, command: u16, offset_bytes: u64, data: &mut [u8]) -> u32 {
        self.try_to((command, 0), offset_bytes, data).unwrap()
    }

    /// Asks for something with flags, and returns the error; none where the connection broke, after which it has another.
    pub fn try_to(&mut self, (command, flags): (u16, u16), offset_bytes: u64, data: &mut [u8]) -> Option<u32> {
        self.cookie += 1;
        let length_bytes = data.len() as u64;
        let header = Header { flags, command, cookie: self.cookie, offset_bytes, length_bytes };
        let payload: &[u8] = if command == command::WRITE { data } else { &[] };
        let brings = command == command::READ;
        let sent = self.client.send(&header, payload);
        match sent.and_then(|()| self.client.receive(|_| if brings { data } else { &mut [] })) {
            Ok((cookie, error)) => {
                assert_eq!(cookie, self.cookie);
                Some(error)
            }
            Err(_) => {
                while !self.device.has_power() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                self.client = client_of(&self.socket);
                None
            }
        }
    }

    /// How many writes of a block are answered in a time, so many under way at once.
    pub fn writes_at_depth(&mut self, depth: u64, time: std::time::Duration) -> u64 {
        let (begun, data, mut sent, mut answered) = (std::time::Instant::now(), block(1), 0, 0);
        while answered < sent || begun.elapsed() < time {
            while sent < answered + depth && begun.elapsed() < time {
                let offset_bytes = sent % 2048 * BLOCK as u64;
                let length_bytes = BLOCK as u64;
                let header = Header { flags: 0, command: command::WRITE, cookie: sent, offset_bytes, length_bytes };
                self.client.send(&header, &data).unwrap();
                sent += 1;
            }
            if answered < sent {
                assert_eq!(self.client.receive(|_| &mut []).unwrap().1, 0);
                answered += 1;
            }
        }
        answered
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> u32 {
        self.ask(command::WRITE, offset_bytes, &mut data.to_vec())
    }

    fn read(&mut self, offset_bytes: u64, length: usize) -> Vec<u8> {
        let mut data = vec![0xEE; length];
        assert_eq!(self.ask(command::READ, offset_bytes, &mut data), 0);
        data
    }

    fn order(&self, order: Order) -> Value {
        let (session, _) = self.parts.as_ref().unwrap();
        session.commander().order(order).unwrap()
    }

    fn injections(&self) -> Vec<Value> {
        self.order(Order::Injections)["injections"].as_array().unwrap().clone()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let (session, server) = self.parts.take().unwrap();
        server.stop();
        session.stop();
        std::fs::remove_file(&self.socket).ok();
    }
}

fn client_of(socket: &Path) -> Client {
    Client::connect(Stream::socket_of(UnixStream::connect(socket).unwrap()), "").unwrap()
}

/// A block that nobody else writes.
pub fn block(number: u64) -> Vec<u8> {
    (0..BLOCK as u64 / 8).flat_map(|word| (number << 20 | word << 1 | 1).to_le_bytes()).collect()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn place(harm: &Value) -> std::ops::Range<usize> {
    let at = number(harm, "at_bytes") as usize;
    at..at + harm["length_bytes"].as_u64().unwrap_or(1) as usize
}

#[test]
fn client_ledger_and_damage_proof_predict_the_stored_bytes() {
    const BLOCKS: u64 = 400;
    const FAR: u64 = 16 << 20;
    let text = "seed = 11\n\
                [[fault]]\nat = \"0s\"\nwhat = \"lose-write\"\npercent = 10.0\n\
                [[fault]]\nat = \"0s\"\nwhat = \"corrupt\"\non = \"write\"\nhow = \"bit-flip\"\nbits = 5\npercent = 12.0\n\
                [[fault]]\nat = \"0s\"\nwhat = \"corrupt\"\non = \"write\"\nhow = \"pattern\"\npattern = \"0xdeadbe\"\n\
                sectors = 2\nevery = 17\n\
                [[fault]]\nat = \"0s\"\nwhat = \"misdirect\"\ndistance = \"16MiB\"\npercent = 8.0\n\
                [[fault]]\nat = \"0s\"\nwhat = \"shorn-write\"\npart = \"3/8\"\npercent = 9.0\n\
                [[fault]]\nafter = { writes = 400 }\nwhat = \"corrupt\"\non = \"rest\"\nhow = \"ones\"\nsectors = 8\n\
                ranges = [{ offset = 0, length = \"1600KiB\" }]\n";
    let constant = Model::Constant(Constant { latency_ns: 50_000, capacity_bytes: 64 << 20 });
    for (name, model) in [("constant", constant), ("drive", model("cheetah-x15-36lp"))] {
        let mut bench = Bench::new(name, &model, text);
        let mut books = vec![0u8; 32 << 20];
        for number in 0..BLOCKS {
            let data = block(number);
            assert_eq!(bench.write(number * BLOCK as u64, &data), 0, "nobody is told");
            books[number as usize * BLOCK..][..BLOCK].copy_from_slice(&data);
        }
        let written = books.clone();
        let injections = bench.injections();
        let mut harmed = 0;
        for injection in &injections {
            let harms = injection["harms"].as_array().unwrap_or_else(|| panic!("{name}: {injection}"));
            assert_eq!(harms.len() as u64, number(injection, "harmed"));
            harmed += harms.len();
        }
        // Faults strike a write in the order of the schedule; what is struck where it lies comes last.
        let all = injections.iter().flat_map(|one| one["harms"].as_array().unwrap());
        let ordered = |harm: &&Value| (harm["request"].is_null(), harm["at_ns"].as_u64());
        let mut all: Vec<&Value> = all.collect();
        all.sort_by_key(ordered);
        for harm in all {
            let place = place(harm);
            match harm["harm"].as_str().unwrap() {
                "flipped" => books[place.start] ^= number(harm, "mask") as u8,
                "not-stored" => books[place].fill(0),
                "stored-elsewhere" => {
                    let to = number(harm, "to_bytes") as usize;
                    let (data, length) = (books[place.clone()].to_vec(), place.len());
                    books[to..to + length].copy_from_slice(&data);
                    books[place].fill(0);
                }
                "overwritten" if harm["request"].is_null() => books[place].fill(0xFF),
                "overwritten" => {
                    let pattern = [0xDE, 0xAD, 0xBE].into_iter().cycle();
                    books[place].iter_mut().zip(pattern).for_each(|(byte, value)| *byte = value);
                }
                other => panic!("{other}"),
            }
        }
        assert!(harmed > 200 && books != written, "{name}: {harmed}");
        let mut stored = bench.read(0, 2 << 20);
        stored.extend(bench.read(FAR, 2 << 20));
        let expected = [&books[..2 << 20], &books[FAR as usize..][..2 << 20]].concat();
        let differs = stored.iter().zip(&expected).position(|(is, should)| is != should);
        assert_eq!(differs, None, "{name}");
    }
}

#[test]
fn what_is_read_wrong_is_stored_right() {
    let text =
        "[[fault]]\nat = \"0s\"\nwhat = \"corrupt\"\non = \"read\"\nhow = \"bit-flip\"\nbits = 2\npercent = 50.0\n";
    let mut bench = Bench::new("read", &constant(), text);
    for number in 0..64 {
        bench.write(number * BLOCK as u64, &block(number));
    }
    let mut wrong = Vec::new();
    for number in 0..64 {
        let data = bench.read(number * BLOCK as u64, BLOCK);
        let bits = data.iter().zip(block(number)).enumerate().filter(|(_, (is, should))| *is != should);
        wrong.extend(bits.map(|(at, (is, should))| (number * BLOCK as u64 + at as u64, u64::from(is ^ should))));
    }
    let injections = bench.injections();
    let harms = injections[0]["harms"].as_array().unwrap();
    let stated: Vec<_> = harms.iter().map(|harm| (number(harm, "at_bytes"), number(harm, "mask"))).collect();
    assert_eq!(wrong, stated);
    assert!((20..44).contains(&number(&injections[0], "met")), "{}", injections[0]["met"]);
    bench.order(Order::Clear { number: Some(0) });
    // Zeros have no place of their own in a reply, until a fault needs them.
    assert!(bench.read(1 << 20, 1 << 20) == vec![0; 1 << 20]);
    for number in 0..64 {
        assert!(bench.read(number * BLOCK as u64, BLOCK) == block(number));
    }
}

#[test]
fn a_misdirected_read_returns_data_of_another_offset() {
    let text =
        "[[fault]]\nat = { read = 2 }\nonce = true\nwhat = \"misdirect\"\nkinds = [\"read\"]\ndistance = \"-4KiB\"\n";
    let mut bench = Bench::new("elsewhere", &constant(), text);
    (0..2).for_each(|number| assert_eq!(bench.write(number * BLOCK as u64, &block(number)), 0));
    let read: Vec<Vec<u8>> = (0..3).map(|_| bench.read(BLOCK as u64, BLOCK)).collect();
    assert!(read == [block(1), block(0), block(1)]);
}

#[test]
fn old_data_are_read_once_or_until_they_are_written_again() {
    for (lasting, expected) in [("once", [1, 2, 2]), ("until-rewritten", [1, 1, 1])] {
        let text = format!("[[fault]]\nat = {{ write = 2 }}\nwhat = \"stale-read\"\nlasting = \"{lasting}\"\n");
        let mut bench = Bench::new(lasting, &model("cheetah-x15-36lp"), &text);
        bench.write(0, &block(1));
        bench.write(0, &block(2));
        bench.write(8192, &block(7));
        for wanted in expected {
            assert!(bench.read(0, BLOCK) == block(wanted), "{lasting}: {wanted} is wanted");
        }
        // The neighbour had nothing before: what is read there are the zeros.
        assert!(bench.read(4096, 8192) == vec![0; 8192], "{lasting}");
        bench.write(0, &block(3));
        bench.order(Order::Clear { number: None });
        assert!(bench.read(0, BLOCK) == block(3), "{lasting}: it was stored all the time");
    }
}

#[test]
fn a_refused_write_is_not_stored_and_its_error_is_reported() {
    for (errno, told) in [("EIO", 5), ("ENOSPC", 28), ("ETIMEDOUT", 5), ("EROFS", 1)] {
        let text = format!("[[fault]]\nat = {{ write = 2 }}\nonce = true\nwhat = \"errno\"\nerrno = \"{errno}\"\n");
        let mut bench = Bench::new(errno, &constant(), &text);
        assert_eq!(bench.write(0, &block(1)), 0);
        assert_eq!(bench.write(0, &block(2)), told, "{errno}");
        assert!(bench.read(0, BLOCK) == block(1), "{errno}");
        assert_eq!(bench.write(0, &block(3)), 0);
        assert!(bench.read(0, BLOCK) == block(3), "{errno}");
        let injections = bench.injections();
        assert_eq!((number(&injections[0], "met"), number(&injections[0], "failed")), (1, 1));
        assert_eq!(injections[0]["first"]["deed"], "refused");
    }
}

#[test]
fn a_failed_flush_keeps_or_drops_dirty_data() {
    const WRITES: u64 = 200;
    let place = |number: u64| number * 7919 % 20_000 * (4 << 20);
    for (unflushed, drops) in [("keep", false), ("drop", true)] {
        let text = format!(
            "[[fault]]\nat = {{ flush = 2 }}\nonce = true\nwhat = \"errno\"\nkinds = [\"flush\"]\n\
             unflushed = \"{unflushed}\"\n"
        );
        // A cache that answers writes at once, and takes a second or so until they are all on the disk.
        let mut bench = Bench::at_speed(unflushed, &model("wd1200bb"), &text, (2.0, None));
        bench.write(512 << 20, &block(1));
        assert_eq!(bench.ask(command::FLUSH, 0, &mut []), 0);
        (0..WRITES).for_each(|number| assert_eq!(bench.write(place(number), &block(number)), 0));
        assert_eq!(bench.ask(command::FLUSH, 0, &mut []), 5);
        let loss = bench.injections()[0]["loss"].clone();
        assert_eq!(bench.ask(command::FLUSH, 0, &mut []), 0, "{unflushed}: the error is told once");
        assert!(bench.read(512 << 20, BLOCK) == block(1), "{unflushed}: it was flushed");
        let lost = loss["lost"].as_array().cloned().unwrap_or_default();
        let is_lost = |at: u64| lost.iter().any(|extent| number(extent, "at_bytes") == at);
        for number in 0..WRITES {
            let wanted = if is_lost(place(number)) { vec![0; BLOCK] } else { block(number) };
            assert!(bench.read(place(number), BLOCK) == wanted, "{unflushed}: {number}");
        }
        assert_eq!(!lost.is_empty(), drops, "{unflushed}");
        assert_eq!(loss["lost_writes"].as_u64().unwrap_or(0), lost.len() as u64, "{unflushed}");
    }
}

#[test]
fn a_fault_selects_writes_by_content() {
    let text = "[[fault]]\nwhat = \"lose-write\"\ncontaining = \"COMMIT\"\n";
    let mut bench = Bench::new("pattern", &constant(), text);
    let mut commit = block(2);
    commit[700..706].copy_from_slice(b"COMMIT");
    bench.write(0, &block(1));
    bench.write(0, &commit);
    assert!(bench.read(0, BLOCK) == block(1));
    assert_eq!(number(&bench.injections()[0], "met"), 1);
}

#[test]
fn an_order_damages_from_then_on() {
    let mut bench = Bench::new("order", &constant(), "");
    bench.write(0, &block(1));
    let fault = serde_json::json!({ "do": "inject", "fault": { "what": "lose-write" }, "when": { "every": 2 } });
    bench.order(serde_json::from_value(fault).unwrap());
    bench.write(0, &block(2));
    bench.write(0, &block(3));
    assert!(bench.read(0, BLOCK) == block(2));
}

/// A log with three writes to one place, of which the clock knows nothing yet.
fn three_writes() -> (Contents, UndoLog, Vec<u64>) {
    let contents = Contents::in_memory(1 << 20).unwrap();
    let mut log = UndoLog::default();
    let span = Span { start_bytes: 8192, length_bytes: 4096 };
    let numbers = (1..=3).map(|number| log.apply(&contents, span, Change::Data(&block(number))).unwrap()).collect();
    (contents, log, numbers)
}

#[test]
fn damage_under_newer_writes_shows_after_they_are_lost() {
    let span = Span { start_bytes: 8192, length_bytes: 4096 };
    let stored = |contents: &Contents, at: u64| {
        let mut data = vec![0; BLOCK];
        contents.read(at, &mut data).unwrap();
        data
    };
    let lost = |number| Verdict { number, span, fate: Fate::Lost { acknowledged: false } };
    let mut older = PreviousData::default();

    let (contents, mut log, numbers) = three_writes();
    log.damage(&contents, &Damage::Undone { change: numbers[1], span }, &mut older).unwrap();
    assert!(stored(&contents, 8192) == block(3), "the newest is there");
    log.settle(&contents, &[lost(numbers[2])]).unwrap();
    assert_eq!(stored(&contents, 8192), block(1), "beneath it is not what was undone");

    let (contents, mut log, numbers) = three_writes();
    let how = Alteration { span: Span { start_bytes: 8193, length_bytes: 1 }, with: Replacement::Flip(0x81) };
    log.damage(&contents, &Damage::Altered { change: Some(numbers[1]), how }, &mut older).unwrap();
    assert_eq!(stored(&contents, 8192), block(3));
    log.settle(&contents, &[lost(numbers[2])]).unwrap();
    let mut altered = block(2);
    altered[1] ^= 0x81;
    assert_eq!(stored(&contents, 8192), altered);

    let (contents, mut log, numbers) = three_writes();
    log.damage(&contents, &Damage::Astray { change: numbers[1], span, to_bytes: 0 }, &mut older).unwrap();
    assert_eq!((stored(&contents, 0), stored(&contents, 8192)), (block(2), block(3)));
    log.settle(&contents, &[lost(numbers[2]), lost(numbers[1])]).unwrap();
    assert_eq!((stored(&contents, 0), stored(&contents, 8192)), (block(2), block(1)));

    // What was undone takes nothing older along when it is settled.
    let (contents, mut log, numbers) = three_writes();
    log.damage(&contents, &Damage::Undone { change: numbers[2], span }, &mut older).unwrap();
    log.settle(&contents, &[Verdict { number: numbers[2], span, fate: Fate::Durable }]).unwrap();
    assert_eq!(stored(&contents, 8192), block(2));
    log.settle(&contents, &[lost(numbers[1]), lost(numbers[0])]).unwrap();
    assert_eq!(stored(&contents, 8192), vec![0; BLOCK]);
}
