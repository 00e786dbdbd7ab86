//! Faults of live sessions: over NBD, and recorded, read back from their own log and replayed in virtual time.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::*;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Errno, Header, command};
use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Order, Session, SessionOptions};
use headstack_sim::Observed;
use headstack_sim::faults::{Fault, RequestKind, Schedule, Stretch};
use headstack_sim::timeline::{Listener, Timeline};
use headstack_sim::{Model, Outcome};
use headstack_workload::{DurationNs, Request, Span};

/// Model time runs so much faster than the tests.
const SPEED: f64 = 50.0;

fn seconds(s: i64) -> Option<DurationNs> {
    Some(DurationNs(s * 1_000_000_000))
}

/// A session that is served over NBD.
struct Served {
    session: Session,
    server: Server,
    socket: PathBuf,
}

impl Served {
    fn new(name: &str, model: &Model, text: &str) -> Served {
        let schedule = schedule(model, text);
        let options = SessionOptions { speed: SPEED, realtime: false, schedule, ..SessionOptions::default() };
        let session = Session::start(model, options, None).unwrap();
        let Model::System(system) = model else { panic!("not a system") };
        let span = Span { start_bytes: 0, length_bytes: system.capacity_bytes() };
        let (description, block_bytes) = (String::new(), system.block_bytes());
        let export = Export { name: "lun".to_owned(), description, span, block_bytes, is_rotational: true };
        let contents = Contents::in_memory(span.length_bytes).unwrap();
        let device = Arc::new(Device { exports: vec![export], contents, submitter: session.submitter() });
        let socket = std::env::temp_dir().join(format!("headstack-{name}-{}", std::process::id()));
        let server = Server::start(&device, &[Endpoint::Unix(socket.clone())], Security::None).unwrap();
        Served { session, server, socket }
    }

    fn client(&self) -> Client {
        Client::connect(Stream::socket_of(UnixStream::connect(&self.socket).unwrap()), "").unwrap()
    }

    fn order(&self, order: Order) -> serde_json::Value {
        self.session.commander().order(order).unwrap()
    }

    fn end(self) {
        self.server.stop();
        self.session.stop();
    }
}

/// A read of 4 KiB over NBD: its error, and how long it took in model time.
fn nbd_read(client: &mut Client, offset_bytes: u64) -> std::io::Result<(u32, Duration)> {
    let begun = Instant::now();
    let header = Header { flags: 0, command: command::READ, cookie: 1, offset_bytes, length_bytes: 4096 };
    client.send(&header, &[])?;
    let mut data = vec![0; 4096];
    let (_, error) = client.receive(|_| &mut data)?;
    Ok((error, begun.elapsed().mul_f64(SPEED)))
}

#[test]
fn a_client_gets_an_input_output_error_after_the_drives_own_time() {
    let text = "[[fault]]\nat = \"0s\"\nwhat = \"media-error\"\nrecovery = \"limited\"\n\
                ranges = [{ offset = \"1GiB\", length = \"64KiB\" }]\n";
    let served = Served::new("eio", &model("wd1200bb"), text);
    let mut client = served.client();
    assert_eq!(nbd_read(&mut client, 0).unwrap().0, 0);
    let (error, took) = nbd_read(&mut client, GIB).unwrap();
    assert_eq!(error, Errno::Io as u32);
    assert!(took >= Duration::from_secs(7), "{took:?}");
    // A write heals; forced, or it would wait in the drive's cache while the read finds it there.
    let header =
        Header { flags: command::FLAG_FUA, command: command::WRITE, cookie: 2, offset_bytes: GIB, length_bytes: 4096 };
    client.send(&header, &[0x5A; 4096]).unwrap();
    assert_eq!(client.receive(|_| &mut []).unwrap(), (2, 0));
    assert_eq!(nbd_read(&mut client, GIB).unwrap().0, 0);
    let smart = served.order(Order::Smart);
    let rows = smart["devices"][0]["ata_smart_attributes"]["table"].as_array().unwrap();
    let raw = |id: u64| rows.iter().find(|row| row["id"] == id).map(|row| row["raw"]["value"].as_u64().unwrap());
    assert_eq!((raw(5), raw(187), raw(197)), (Some(8), Some(1), Some(0)));
    let log = served.order(Order::Injections);
    assert_eq!(log["injections"][0]["failed"], 1);
    assert_eq!(log["injections"][0]["first"]["offset_bytes"], GIB);
    assert_eq!(served.order(Order::Status)["gauges"]["devices"].as_array().unwrap().len(), 1);
    served.end();
}

#[test]
fn a_dropped_drive_disconnects_its_clients_and_returns() {
    let served = Served::new("drop", &model("wd1200bb"), "");
    let mut client = served.client();
    assert_eq!(nbd_read(&mut client, 0).unwrap().0, 0);
    served.order(Order::Inject { fault: Fault::DropOut, lasts: None, when: Box::default() });
    assert!(nbd_read(&mut client, GIB).is_err(), "the connection is cut");
    assert_eq!(served.order(Order::Clear { number: Some(0) })["ended"], 1);
    assert_eq!(nbd_read(&mut served.client(), GIB).unwrap().0, 0);
    served.end();
}

#[test]
fn a_hang_lasts_until_it_is_released() {
    let served = Served::new("hang", &model("wd1200bb"), "");
    let mut client = served.client();
    served.order(Order::Inject {
        fault: Fault::Hang { ranges: vec![], kinds: vec![] },
        lasts: None,
        when: Box::default(),
    });
    let (sent, heard) = mpsc::channel();
    let waiting = thread::spawn(move || sent.send(nbd_read(&mut client, GIB).unwrap()).unwrap());
    // Ten seconds of the model, in which a read of ten milliseconds is not answered.
    assert!(heard.recv_timeout(Duration::from_millis(200)).is_err());
    assert_eq!(served.order(Order::Release)["ended"], 1);
    assert_eq!(heard.recv().unwrap().0, 0);
    waiting.join().unwrap();
    served.end();
}

/// Everything that a session observed.
fn listener() -> (Listener, Arc<Mutex<Vec<Observed>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ours = Arc::clone(&heard);
    (Box::new(move |observed: &Observed| ours.lock().unwrap().push(*observed)), heard)
}

/// Requests of a closed loop at depth 8, by several threads, while `meddle` gives orders.
fn load(session: &Session, requests: u64, meddle: impl FnOnce()) {
    thread::scope(|scope| {
        for worker in 0..8 {
            let submitter = session.submitter();
            scope.spawn(move || {
                for number in 0..requests {
                    let place = (worker * 7919 + number * 104_729) % 27_000 * 4 * 1024 * KIB;
                    let request = if number % 3 == 0 { write(place) } else { read(place) };
                    let request = Request { length_bytes: 8192, ..request };
                    let (answer, heard) = mpsc::channel();
                    submitter.submit(Instant::now(), request, Box::new(answer));
                    let _: Outcome = heard.recv().unwrap();
                }
            });
        }
        meddle();
    });
}

#[test]
fn a_session_with_live_injections_is_replayed_from_its_log() {
    let model = model("wd1200bb");
    let text = "seed = 11\n\
        [[fault]]\nat = \"100ms\"\nwhat = \"latency-spike\"\ntime = \"30ms\"\npercent = 20\ndistribution = \"exponential\"\n\
        [[fault]]\nat = \"2s\"\nfor = \"1s\"\nwhat = \"link-errors\"\npercent = 5\ntime-out = \"200ms\"\n";
    let (ours, heard) = listener();
    let schedule = schedule(&model, text);
    let options = SessionOptions { speed: 20.0, realtime: false, schedule, seed: 3, ..SessionOptions::default() };
    let session = Session::start(&model, options, Some(ours)).unwrap();
    let commander = session.commander();
    let inject = |fault: Fault, lasts| commander.order(Order::Inject { fault, lasts, when: Box::default() }).unwrap();
    load(&session, 120, || {
        let weak = Fault::WeakSectors {
            member: None,
            ranges: vec![Stretch::of_bytes(0, 20 * GIB)],
            map: None,
            turns: 3,
            percent: Some(40.0),
            kinds: vec![],
        };
        inject(weak, None);
        thread::sleep(Duration::from_millis(20));
        inject(Fault::Hang { ranges: vec![], kinds: vec![RequestKind::Write] }, seconds(1));
        inject(Fault::DropOut, Some(DurationNs(50_000_000)));
        thread::sleep(Duration::from_millis(30));
        inject(Fault::Hang { ranges: vec![], kinds: vec![] }, None);
        thread::sleep(Duration::from_millis(20));
        commander.order(Order::Release).unwrap();
        inject(Fault::LyingCache, None);
        commander.order(Order::Clear { number: Some(0) }).unwrap();
    });
    let log = commander.order(Order::Injections).unwrap();
    session.stop();
    let live = heard.lock().unwrap().clone();
    assert_eq!(live.len(), 8 * 120);
    assert!(live.iter().any(|observed| observed.recorded.completion_ns.is_some()));
    let written = log["schedule"].as_str().unwrap();
    assert_eq!(log["injections"].as_array().unwrap().len(), written.matches("[[fault]]").count());
    let again = headstack_catalogue::parse_faults("log.toml", written, Path::new(""), &model).unwrap();
    assert_eq!(again.seed, 11);

    let replay = |schedule: &Schedule| {
        let (ours, heard) = listener();
        let mut timeline = Timeline::new(&model, 3, Some(ours)).unwrap();
        timeline.follow(schedule).unwrap();
        let mut finished = Vec::new();
        for observed in &live {
            timeline.arrive(observed.recorded.arrival_ns, observed.recorded.request, None, ());
            timeline.advance(observed.recorded.arrival_ns, &mut finished);
        }
        timeline.advance(live.iter().filter_map(|one| one.recorded.completion_ns).max().unwrap(), &mut finished);
        timeline.finish();
        heard.lock().unwrap().clone()
    };
    let replayed = replay(&again);
    let differs = live.iter().zip(&replayed).position(|(live, replayed)| live != replayed);
    assert_eq!(differs, None, "{:?} {:?}", live[differs.unwrap_or(0)], replayed[differs.unwrap_or(0)]);
    assert_eq!(live.len(), replayed.len());
    assert!(replay(&Schedule { seed: 12, ..again }) != live, "another seed draws otherwise");
}
