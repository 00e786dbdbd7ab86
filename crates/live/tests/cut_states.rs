//! What a live power cut leaves is one of the states that the explorer has of the journal until then: of the same cache, as seen
//! by somebody who writes at random, waits for some answers, and reads everything when power is back.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headstack_crash::states::{From, Rules, Search, SearchOptions, Tear};
use headstack_crash::{Base, Event, Overlay, Recording};
use headstack_live::journal::JournalPlan;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Order, Session, SessionOptions};
use headstack_sim::faults::Fault;
use headstack_sim::{Model, SystemDescription, power_cut};
use headstack_workload::{Purpose, Random, Span};

use crate::power::{array_without_battery, ide, scsi_without_cache, unprotected_ssd};

/// Blocks that are written, so few that writes lie over each other.
const BLOCKS: u64 = 12;
/// Of one write.
const WRITE_BLOCKS_MAX: u64 = 3;
/// Blocks of writes that no flush has covered: the explorer goes through all subsets of so many.
const OPEN_BLOCKS_MAX: u64 = 10;
const DEPTH: usize = 6;
const CUTS: u32 = 40;

/// A system that is served, and a client that writes at random.
struct Bench {
    parts: Option<(Session, Server)>,
    device: Arc<Device>,
    socket: PathBuf,
    block_bytes: u64,
    /// From one group of blocks to the next.
    stride_bytes: u64,
    random: Random,
    /// Requests that were sent, by which each block of a write is known.
    sent: u64,
    /// Under way: the blocks of writes.
    under_way: HashMap<u64, u64>,
    open_blocks: u64,
}

impl Bench {
    fn new(name: &str, system: SystemDescription, speed: f64, journal: JournalPlan) -> Bench {
        let (capacity_bytes, block_bytes) = (system.capacity_bytes(), system.block_bytes());
        let journal = Some(journal);
        let options = SessionOptions { speed, realtime: false, journal, ..SessionOptions::default() };
        let session = Session::start(&Model::System(system), options, None).unwrap();
        let span = Span { start_bytes: 0, length_bytes: capacity_bytes };
        let (description, is_rotational) = (String::new(), true);
        let export = Export { name: "disk".to_owned(), description, span, block_bytes, is_rotational };
        let device = Device::of(&session, vec![export], Contents::in_memory(capacity_bytes).unwrap());
        let socket = std::env::temp_dir().join(format!("headstack-states-{name}-{}", std::process::id()));
        let server = Server::start(&device, &[Endpoint::Unix(socket.clone())], Security::None).unwrap();
        Bench {
            parts: Some((session, server)),
            device,
            socket,
            block_bytes: u64::from(block_bytes),
            stride_bytes: capacity_bytes / 16 / u64::from(block_bytes) * u64::from(block_bytes),
            random: Random::new(11, Purpose::Addresses),
            sent: 0,
            under_way: HashMap::new(),
            open_blocks: 0,
        }
    }

    fn connect(&self) -> Client {
        Client::connect(Stream::socket_of(UnixStream::connect(&self.socket).unwrap()), "").unwrap()
    }

    fn order(&self, order: Order) {
        self.parts.as_ref().unwrap().0.commander().order(order).unwrap();
    }

    fn inject(&self, fault: Fault) {
        self.order(Order::Inject { fault, lasts: None, when: Box::default() });
    }

    /// Groups of four blocks far from each other.
    fn place(&self, block: u64) -> u64 {
        block / 4 * self.stride_bytes + block % 4 * self.block_bytes
    }

    fn send(&mut self, client: &mut Client, command: u16, flags: u16, block: u64, blocks: u64) {
        self.sent += 1;
        let (cookie, length_bytes) = (self.sent, blocks * self.block_bytes);
        // No two blocks are alike.
        let data: Vec<u8> = (0..blocks).flat_map(|part| self.block_of(cookie * 8 + part)).collect();
        let payload = if command == command::WRITE { &data[..] } else { &[] };
        let header = Header { flags, command, cookie, offset_bytes: self.place(block), length_bytes };
        self.under_way.insert(cookie, blocks);
        self.open_blocks += blocks;
        client.send(&header, payload).unwrap();
    }

    fn block_of(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes().repeat(self.block_bytes as usize / 8)
    }

    fn receive(&mut self, client: &mut Client) {
        let (cookie, error) = client.receive(|_| &mut []).unwrap();
        assert_eq!(error, 0);
        self.under_way.remove(&cookie).expect("it was under way");
    }

    /// Has everything answered and on the media.
    fn settle(&mut self, client: &mut Client) {
        while !self.under_way.is_empty() {
            self.receive(client);
        }
        self.send(client, command::FLUSH, 0, 0, 0);
        self.receive(client);
        self.open_blocks = 0;
    }

    /// One request at random.
    fn ask(&mut self, client: &mut Client) {
        let block = self.random.below(BLOCKS);
        let blocks = (1 + self.random.below(WRITE_BLOCKS_MAX)).min(4 - block % 4);
        if self.open_blocks + blocks > OPEN_BLOCKS_MAX {
            self.settle(client);
        }
        match self.random.below(12) {
            0 => self.send(client, command::FLUSH, 0, 0, 0),
            1 => self.send(client, command::TRIM, 0, block, blocks),
            2 => self.send(client, command::WRITE_ZEROES, command::FLAG_NO_HOLE, block, blocks),
            3 => self.send(client, command::WRITE, command::FLAG_FUA, block, blocks),
            _ => self.send(client, command::WRITE, 0, block, blocks),
        }
    }

    /// Cuts the power at a moment that nobody chose; what is there when it is back.
    fn cut(&mut self, tear: power_cut::Tear) -> Vec<u8> {
        let mut client = self.connect();
        for _ in 0..self.random.below(24) {
            while self.under_way.len() >= DEPTH {
                self.receive(&mut client);
            }
            self.ask(&mut client);
            if self.random.below(3) == 0 && !self.under_way.is_empty() {
                self.receive(&mut client);
            }
        }
        // Now and then at once, while the last ones are under way.
        let sleeps = self.random.below(2) == 0;
        let after_us = self.random.below(4_000);
        if sleeps {
            std::thread::sleep(Duration::from_micros(after_us));
        }
        self.inject(Fault::PowerCut { tear, atom: None });
        self.inject(Fault::PowerOn);
        self.under_way.clear();
        self.open_blocks = 0;
        self.read()
    }

    fn read(&self) -> Vec<u8> {
        let mut client = self.connect();
        let mut found = vec![0; (BLOCKS * self.block_bytes) as usize];
        for (block, data) in (0..).zip(found.chunks_mut(self.block_bytes as usize)) {
            let (offset_bytes, length_bytes) = (self.place(block), data.len() as u64);
            let header = Header { flags: 0, command: command::READ, cookie: block, offset_bytes, length_bytes };
            client.send(&header, &[]).unwrap();
            assert_eq!(client.receive(|_| data).unwrap(), (block, 0));
        }
        found
    }

    fn end(&mut self) {
        let (session, server) = self.parts.take().unwrap();
        server.stop();
        session.stop();
        self.device.submitter.gate().finish_journal().unwrap();
    }
}

/// Whether the explorer has a state of these contents at a cut, and of how many.
fn has_state(bench: &Bench, journal: &Path, number: u32, found: &[u8], rules: &Rules) -> (bool, u64) {
    const HERE: &str = "power fails";
    let mut recording = Recording::open(journal).unwrap();
    let mut cuts = (0..).zip(&recording.events).filter(|(_, event)| **event == Event::PowerOff);
    let (cut, _) = cuts.nth(number as usize).unwrap();
    // The explorer knows nothing of what came of it, and looks at this one moment.
    recording.events.truncate(cut);
    recording.times_ns.truncate(cut);
    recording.events.push(Event::Mark(recording.marks.len() as u32));
    recording.times_ns.push(0);
    recording.marks.push(HERE.to_owned());
    let recording = Arc::new(recording);
    let asked = SearchOptions { rules: rules.clone(), from: From::Mark(HERE.to_owned()), seed: 0 };
    let mut search = Search::new(Arc::clone(&recording), &Base::zeros(), asked).unwrap();
    let mut overlay = Overlay::new(recording, &Base::zeros(), rules).unwrap();
    let mut is_there = false;
    while let Some(state) = search.next_state().unwrap() {
        overlay.take(&state).unwrap();
        let mut held = vec![0; found.len()];
        for (block, data) in (0..).zip(held.chunks_mut(bench.block_bytes as usize)) {
            overlay.read(bench.place(block), data).unwrap();
        }
        is_there |= held == found;
    }
    let coverage = search.coverage();
    assert_eq!((coverage.windows, coverage.whole_windows), (1, 1), "all states are gone through");
    (is_there, coverage.states)
}

/// Cuts, of which each has left a state of the explorer's; how many of them could have left another.
fn each_is_a_state(name: &str, system: SystemDescription, speed: f64) -> u32 {
    let path = std::env::temp_dir().join(format!("headstack-states-{name}-{}.journal", std::process::id()));
    let mut bench = Bench::new(name, system, speed, JournalPlan { path: path.clone(), image: None });
    let tears = [power_cut::Tear::Sector, power_cut::Tear::None];
    let cuts: Vec<_> = (0..CUTS).map(|number| bench.cut(tears[number as usize % 2])).collect();
    bench.end();
    let (mut states, mut choices) = (0, 0);
    // Where no write is torn on its way to the media, a cache still has parts of some: it holds blocks, not writes.
    let rules = Rules { tear: Tear::Any, ..Rules::default() };
    for (number, found) in (0..).zip(&cuts) {
        let (is_there, of) = has_state(&bench, &path, number, found, &rules);
        assert!(is_there, "{name}: what cut {number} has left is none of {of} states");
        states += of;
        choices += u32::from(of > 1);
    }
    println!("{name}: {CUTS} cuts, {choices} of them with a choice, of {states} states");
    std::fs::remove_file(path).unwrap();
    choices
}

#[test]
fn what_a_cut_of_a_drive_with_a_cache_leaves_is_a_state_of_the_explorer() {
    assert!(each_is_a_state("ide", ide(), 100.0) > CUTS / 2);
}

#[test]
fn what_a_cut_of_a_drive_without_a_cache_leaves_is_a_state_of_the_explorer() {
    assert!(each_is_a_state("scsi", scsi_without_cache(), 100.0) > 0);
}

#[test]
fn what_a_cut_of_a_solid_state_drive_leaves_is_a_state_of_the_explorer() {
    assert!(each_is_a_state("ssd", unprotected_ssd(), 1.0) > CUTS / 2);
}

#[test]
fn what_a_cut_of_an_array_leaves_is_a_state_of_the_explorer() {
    assert!(each_is_a_state("array", array_without_battery(), 100.0) > CUTS / 2);
}
