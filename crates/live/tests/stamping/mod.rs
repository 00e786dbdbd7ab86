//! A client that stamps sectors, and knows which generations of each may be there after a power cut.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Order, Session, SessionOptions};
use headstack_sim::Model;
use headstack_sim::SystemDescription;
use headstack_sim::faults::Fault;
use headstack_sim::power_cut::Tear;
use headstack_workload::{DurationNs, Purpose, Random, Span};
use serde_json::Value;

/// Requests in flight.
const DEPTH: usize = 8;
/// Sectors that are stamped: half of them at the start of the system, half in its middle.
const SECTORS: usize = 1024;
/// Of a write.
const SECTORS_MAX: u64 = 40;
/// Cookies of flushes are above this.
const FLUSHES: u64 = 1 << 40;

/// What cuts have come to.
#[derive(Debug, Default)]
pub struct Tally {
    pub cuts: u32,
    /// Sectors whose newest acknowledged stamp was missing.
    pub lost_sectors: u64,
    /// Writes under way at the cuts, and what the server said became of them.
    pub under_way: u64,
    pub absent: u64,
    pub whole: u64,
    pub torn: u64,
    pub violations: Vec<String>,
}

/// A write: its number is its generation.
#[derive(Debug)]
struct Stamped {
    first: usize,
    sectors: usize,
    forced: bool,
    /// Moments of the client.
    sent: u64,
    acknowledged: Option<u64>,
    /// By FUA or a flush.
    durable: bool,
}

/// A system that is served, and its client.
pub struct Bench {
    session: Session,
    server: Server,
    socket: PathBuf,
    block_bytes: u64,
    middle_bytes: u64,
    random: Random,
    moment: u64,
    writes: Vec<Stamped>,
    under_way: HashMap<u64, u64>,
    /// What is there since power came back: generation of each sector, 0 for none.
    base: Vec<u64>,
    /// The first generation of this round.
    round: u64,
    tally: Tally,
    /// Strikes immediately before power fails.
    pub before_cut: Option<Fault>,
    /// And when it is back.
    pub after_cut: Option<Fault>,
}

impl Bench {
    pub fn new(name: &str, system: SystemDescription, speed: f64, seed: u64) -> Bench {
        let (capacity_bytes, block_bytes) = (system.capacity_bytes(), u64::from(system.block_bytes()));
        let options = SessionOptions { speed, realtime: false, seed, ..SessionOptions::default() };
        let session = Session::start(&Model::System(system), options, None).unwrap();
        let span = Span { start_bytes: 0, length_bytes: capacity_bytes };
        let (description, block) = (String::new(), block_bytes as u32);
        let export = Export { name: "disk".to_owned(), description, span, block_bytes: block, is_rotational: true };
        let device = Device::of(&session, vec![export], Contents::in_memory(capacity_bytes).unwrap());
        let socket = std::env::temp_dir().join(format!("headstack-power-{name}-{}", std::process::id()));
        let server = Server::start(&device, &[Endpoint::Unix(socket.clone())], Security::None).unwrap();
        Bench {
            session,
            server,
            socket,
            block_bytes,
            middle_bytes: capacity_bytes / 2 / block_bytes * block_bytes,
            random: Random::new(seed, Purpose::Addresses),
            moment: 0,
            writes: Vec::new(),
            under_way: HashMap::new(),
            base: vec![0; SECTORS],
            round: 1,
            tally: Tally::default(),
            before_cut: None,
            after_cut: None,
        }
    }

    pub fn inject(&self, fault: Fault, lasts: Option<DurationNs>) -> Value {
        self.session.commander().order(Order::Inject { fault, lasts, when: Box::default() }).unwrap()
    }

    /// Cuts the power so often, and judges what is there after each.
    pub fn cuts(mut self, cuts: u32) -> Tally {
        for number in 0..cuts {
            self.cut(number);
        }
        self.server.stop();
        self.session.stop();
        self.tally
    }

    fn connect(&self) -> std::io::Result<Client> {
        Client::connect(Stream::socket_of(UnixStream::connect(&self.socket)?), "")
    }

    fn cut(&mut self, number: u32) {
        let mut client = self.connect().unwrap();
        let mut idle = self.connect().unwrap();
        let replies = self.random.below(120);
        self.load(&mut client, replies);
        if let Some(fault) = self.before_cut.clone() {
            self.inject(fault, None);
        }
        let tear = [Tear::Sector, Tear::Track, Tear::Sector, Tear::None][number as usize % 4];
        // Every other time it comes back by itself.
        let lasts = (number % 2 == 1).then_some(DurationNs(200_000_000));
        let loss = self.inject(Fault::PowerCut { tear, atom: None }, lasts)["loss"].clone();
        if lasts.is_none() {
            let refused = self.connect().expect_err("nobody is let in");
            assert!(refused.to_string().contains("power is off"), "{refused}");
        }
        // Whatever is asked now is too late: the connection ends.
        let late = self.writes.len() as u64 + 1;
        let _ = self.send_write(&mut client);
        while self.receive(&mut client).is_ok() {}
        self.power_on(lasts.is_some());
        let header = Header { flags: 0, command: command::FLUSH, cookie: 1, offset_bytes: 0, length_bytes: 0 };
        let _ = idle.send(&header, &[]);
        assert!(idle.receive(|_| &mut []).is_err(), "a connection does not outlive the power");
        let found = self.read_back();
        self.judge(&found, &loss, late);
        (self.base, self.round) = (found, self.writes.len() as u64 + 1);
        self.under_way.clear();
        self.tally.cuts += 1;
    }

    fn power_on(&mut self, by_itself: bool) {
        if by_itself {
            while self.session.commander().order(Order::Status).unwrap()["power"] != true {
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            self.inject(Fault::PowerOn, None);
        }
        if let Some(fault) = self.after_cut.clone() {
            self.inject(fault, None);
        }
    }

    /// Keeps requests under way until so many were answered.
    fn load(&mut self, client: &mut Client, replies: u64) {
        for _ in 0..replies {
            self.fill(client);
            self.receive(client).unwrap();
        }
        self.fill(client);
    }

    fn fill(&mut self, client: &mut Client) {
        while self.under_way.len() < DEPTH {
            if self.random.below(12) == 0 {
                self.send_flush(client);
            } else {
                self.send_write(client).unwrap();
            }
        }
    }

    fn offset_bytes(&self, sector: usize) -> u64 {
        let half = SECTORS / 2;
        let base_bytes = if sector < half { 0 } else { self.middle_bytes };
        base_bytes + (sector % half) as u64 * self.block_bytes
    }

    /// A sector of this generation.
    fn sector_of(&self, generation: u64, sector: usize) -> Vec<u8> {
        let stamp = [generation.to_le_bytes(), (sector as u64).to_le_bytes()].concat();
        stamp.repeat(self.block_bytes as usize / 16)
    }

    fn send_write(&mut self, client: &mut Client) -> std::io::Result<()> {
        let half = SECTORS as u64 / 2;
        let (side, at) = (self.random.below(2), self.random.below(half));
        let sectors = (1 + self.random.below(SECTORS_MAX)).min(half - at) as usize;
        let (first, forced) = ((side * half + at) as usize, self.random.below(8) == 0);
        self.moment += 1;
        self.writes.push(Stamped { first, sectors, forced, sent: self.moment, acknowledged: None, durable: false });
        let generation = self.writes.len() as u64;
        let data: Vec<u8> = (first..first + sectors).flat_map(|sector| self.sector_of(generation, sector)).collect();
        let flags = if forced { command::FLAG_FUA } else { 0 };
        let (offset_bytes, length_bytes) = (self.offset_bytes(first), data.len() as u64);
        self.under_way.insert(generation, self.moment);
        client.send(&Header { flags, command: command::WRITE, cookie: generation, offset_bytes, length_bytes }, &data)
    }

    fn send_flush(&mut self, client: &mut Client) {
        self.moment += 1;
        let cookie = FLUSHES + self.moment;
        self.under_way.insert(cookie, self.moment);
        let header = Header { flags: 0, command: command::FLUSH, cookie, offset_bytes: 0, length_bytes: 0 };
        client.send(&header, &[]).unwrap();
    }

    fn receive(&mut self, client: &mut Client) -> std::io::Result<()> {
        let (cookie, error) = client.receive(|_| &mut [])?;
        assert_eq!(error, 0);
        self.moment += 1;
        let sent = self.under_way.remove(&cookie).expect("it was under way");
        if cookie > FLUSHES {
            let covered = |write: &&mut Stamped| write.acknowledged.is_some_and(|at| at < sent);
            self.writes.iter_mut().filter(covered).for_each(|write| write.durable = true);
        } else {
            let write = &mut self.writes[cookie as usize - 1];
            write.acknowledged = Some(self.moment);
            write.durable |= write.forced;
        }
        Ok(())
    }

    /// The generation of each sector.
    fn read_back(&mut self) -> Vec<u64> {
        let mut client = self.connect().unwrap();
        let half = SECTORS / 2;
        let mut found = Vec::with_capacity(SECTORS);
        for first in [0, half] {
            let mut data = vec![0; half * self.block_bytes as usize];
            let (offset_bytes, length_bytes) = (self.offset_bytes(first), data.len() as u64);
            client
                .send(&Header { flags: 0, command: command::READ, cookie: 0, offset_bytes, length_bytes }, &[])
                .unwrap();
            assert_eq!(client.receive(|_| &mut data[..]).unwrap(), (0, 0));
            for (sector, bytes) in (first..).zip(data.chunks(self.block_bytes as usize)) {
                let generation = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                let expected = if generation == 0 { vec![0; bytes.len()] } else { self.sector_of(generation, sector) };
                assert!(bytes == expected, "sector {sector} is not a whole stamp");
                found.push(generation);
            }
        }
        found
    }

    /// Its number, counted from 1 in the order of sending.
    fn generation_of(&self, write: &Stamped) -> u64 {
        self.writes.iter().position(|other| std::ptr::eq(other, write)).expect("one of them") as u64 + 1
    }

    /// The rule: a stamp that was acknowledged before a durable one was sent is gone for good; what was on the media when
    /// power came back is older than everything since.
    fn judge(&mut self, found: &[u64], loss: &Value, late: u64) {
        let lost: Vec<(u64, u64)> = loss["lost"]
            .as_array()
            .unwrap()
            .iter()
            .map(|extent| {
                let at_bytes = extent["at_bytes"].as_u64().unwrap();
                (at_bytes, at_bytes + extent["length_bytes"].as_u64().unwrap())
            })
            .collect();
        for (sector, &generation) in found.iter().enumerate() {
            let covers = |write: &&Stamped| (write.first..write.first + write.sectors).contains(&sector);
            let newer: Vec<&Stamped> = self.writes[self.round as usize - 1..].iter().filter(covers).collect();
            let acknowledged = if generation < self.round {
                if generation != self.base[sector] {
                    self.tally.violations.push(format!("sector {sector}: {generation} is of no write of this round"));
                }
                Some(0)
            } else {
                let write = &self.writes[generation as usize - 1];
                assert!(covers(&write) && generation != late, "sector {sector}: {generation}");
                write.acknowledged
            };
            let superseded = |write: &&&Stamped| acknowledged.is_some_and(|at| at < write.sent);
            if let Some(write) = newer.iter().filter(superseded).find(|write| write.durable) {
                let sent = write.sent;
                self.tally.violations.push(format!("sector {sector}: {generation} there, but durable since {sent}"));
            }
            let is_lost = newer.iter().filter(superseded).any(|write| write.acknowledged.is_some());
            self.tally.lost_sectors += u64::from(is_lost);
            let at_bytes = self.offset_bytes(sector);
            let is_told = lost.iter().any(|&(from, to)| from <= at_bytes && at_bytes < to);
            assert!(is_told || !is_lost, "sector {sector} is lost without a word: {loss}");
            // What is told is not there: something else is, that was sent before what was acknowledged last.
            let is_older = |write: &&Stamped| write.acknowledged.is_some() && generation < self.generation_of(write);
            assert!(
                !is_told || newer.iter().copied().any(|write| is_older(&write)),
                "sector {sector} is there: {loss}"
            );
        }
        let count = |key: &str| loss[key].as_u64().unwrap();
        self.tally.under_way += count("under_way");
        self.tally.absent += count("absent");
        self.tally.whole += count("whole");
        self.tally.torn +=
            loss["torn"].as_array().unwrap().iter().filter(|torn| torn["acknowledged"] == false).count() as u64;
    }
}
