//! One budget of memory: who takes of it, who waits, and that all are served in turn.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::common::*;
use headstack_live::budget::{BUDGET_BYTES_MIN, Budget};
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Framing, Header, command};
use headstack_live::nbd::{Endpoint, Limits, SOCKET_MODE, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Session, SessionOptions};
use headstack_sim::{Constant, Model};
use headstack_workload::Span;

const MIB: u64 = 1 << 20;
const CAPACITY_BYTES: u64 = 512 * MIB;
/// So long that nothing in a test can come of it.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// A system that is served within the least budget that there is.
struct Served {
    session: Session,
    server: Server,
    socket: PathBuf,
    budget: Budget,
}

impl Served {
    fn new(name: &str, model: &Model, speed: f64, stall: Duration) -> Served {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let options = SessionOptions { speed, realtime: false, budget: budget.clone(), ..SessionOptions::default() };
        let session = Session::start(model, options, None).unwrap();
        let span = Span { start_bytes: 0, length_bytes: CAPACITY_BYTES };
        let (description, name) = (String::new(), name.to_owned());
        let export = Export { name: name.clone(), description, span, block_bytes: 512, is_rotational: true };
        let device = Device::of(&session, vec![export], Contents::in_memory(CAPACITY_BYTES).unwrap());
        let socket = std::env::temp_dir().join(format!("headstack-memory-{name}-{}", std::process::id()));
        let (endpoints, limits) = ([Endpoint::Unix(socket.clone())], Limits { stall, ..Limits::default() });
        let server = Server::start_with(&device, &endpoints, Security::None, limits, SOCKET_MODE).unwrap();
        Served { session, server, socket, budget }
    }

    fn client(&self) -> Client {
        Client::connect(Stream::socket_of(UnixStream::connect(&self.socket).unwrap()), "").unwrap()
    }

    /// What everybody took is given back in the end, and never was too much.
    fn end(self) {
        self.server.stop();
        self.session.stop();
        let gauge = self.budget.gauge();
        assert_eq!((gauge.used_bytes, gauge.waiting), (0, 0), "{gauge:?}");
        assert!(gauge.peak_bytes <= gauge.limit_bytes, "{gauge:?}");
    }
}

fn constant_of(latency_ns: u64) -> Model {
    Model::Constant(Constant { latency_ns, capacity_bytes: CAPACITY_BYTES })
}

fn write_of(cookie: u64, offset_bytes: u64, length_bytes: u64) -> Header {
    Header { flags: 0, command: command::WRITE, cookie, offset_bytes, length_bytes }
}

fn read_of(cookie: u64, length_bytes: u64) -> Header {
    Header { flags: 0, command: command::READ, cookie, offset_bytes: 0, length_bytes }
}

#[test]
fn a_header_takes_no_memory_and_a_payload_only_received_bytes() {
    for latency_ns in [0, 100_000] {
        let served = Served::new(&format!("headers-{latency_ns}"), &constant_of(latency_ns), 1.0, NEVER);
        let mut clients: Vec<Client> = (0..200).map(|_| served.client()).collect();
        for client in &mut clients {
            client.send(&write_of(1, 0, 32 * MIB), &[]).unwrap();
        }
        // 6.4 GB are announced; somebody else is served.
        let mut data = vec![0; 65536];
        let mut other = served.client();
        other.send(&read_of(7, 65536), &[]).unwrap();
        assert_eq!(other.receive(|_| &mut data).unwrap(), (7, 0));
        assert!(served.budget.gauge().peak_bytes < MIB, "{:?}", served.budget.gauge());
        // Of each, a little comes.
        for client in &clients {
            client.stream().write_all(&vec![1; 10_000]).unwrap();
        }
        other.send(&read_of(8, 65536), &[]).unwrap();
        assert_eq!(other.receive(|_| &mut data).unwrap(), (8, 0));
        assert!(served.budget.gauge().used_bytes <= 200 * (64 << 10) + MIB, "{:?}", served.budget.gauge());
        served.end();
    }
}

#[test]
fn a_partly_served_request_gets_the_rest_first() {
    let served = Served::new("halves", &constant_of(100_000), 1.0, NEVER);
    let (clients, length) = (24, 16 * MIB);
    let half = std::sync::Barrier::new(clients);
    thread::scope(|scope| {
        for number in 0..clients as u64 {
            let (served, half) = (&served, &half);
            scope.spawn(move || {
                let mut client = served.client();
                let payload = vec![number as u8 + 1; length as usize];
                client.send(&write_of(number, number * length, length), &payload[..1 << 19]).unwrap();
                half.wait();
                client.stream().write_all(&payload[1 << 19..]).unwrap();
                assert_eq!(client.receive(|_| &mut []).unwrap(), (number, 0));
            });
        }
    });
    assert!(served.budget.gauge().waited > 0, "no request had to wait: {:?}", served.budget.gauge());
    served.end();
}

#[test]
fn an_idle_memory_holder_is_dropped_for_a_waiter() {
    let served = Served::new("stalled", &constant_of(100_000), 1.0, Duration::from_millis(200));
    // One has sent half a payload, another reads none of its replies.
    let mut idle = served.client();
    idle.send(&write_of(1, 0, 32 * MIB), &vec![1; 20 << 20]).unwrap();
    let mut deaf = served.client();
    deaf.send(&read_of(1, 16 * MIB), &[]).unwrap();
    thread::scope(|scope| {
        for number in 0..6u64 {
            let served = &served;
            scope.spawn(move || {
                let mut client = served.client();
                client.send(&write_of(number, number * 32 * MIB, 32 * MIB), &vec![2; 32 << 20]).unwrap();
                assert_eq!(client.receive(|_| &mut []).unwrap(), (number, 0));
            });
        }
    });
    // It was hung up on for the others' sake: its request was not carried out, and it hears of nothing else.
    assert!(idle.receive(|_| &mut []).is_err());
    served.end();
}

#[test]
fn overlapping_writes_are_kept_within_the_budget() {
    // A drive with a write cache: what each write replaces is kept until it cannot come back.
    let served = Served::new("overlapping", &model("wd1200bb"), 1000.0, NEVER);
    let mut client = served.client();
    let (writes, length) = (24u64, 32 * MIB);
    let payload = vec![9; length as usize];
    let sender = client.stream().clone();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..writes {
                let header = write_of(number, number * 4096, length).to_bytes(Framing::Simple);
                sender.write_all(&header).and_then(|()| sender.write_all(&payload)).unwrap();
            }
        });
        for _ in 0..writes {
            assert_eq!(client.receive(|_| &mut []).unwrap().1, 0);
        }
    });
    assert!(served.budget.gauge().waited > 0, "no request had to wait: {:?}", served.budget.gauge());
    drop(client);
    let gauge = served.budget.gauge();
    assert!(gauge.peak_bytes <= gauge.limit_bytes, "{gauge:?}");
    served.server.stop();
    served.session.stop();
}
