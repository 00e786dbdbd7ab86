//! Compares the verdict of a session with what its clients measure: it may be "not valid", but any bound that it states
//! must hold.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::stream::Stream;
use headstack_live::{Fidelity, Keeping, Service, ServiceOptions};
use headstack_result::LatencyHistogram;
use headstack_sim::timeline::Listener;
use headstack_sim::{Constant, Model};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const PLACE: &str = "HEADSTACK_TEST_SOCKET";
const BLOCK_BYTES: u32 = 4096;

/// Returns a path for a socket that no other test uses.
fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("headstack-verdict-{}-{name}", std::process::id()))
}

fn constant(latency_ms: u64) -> Model {
    Model::Constant(Constant { latency_ns: latency_ms * common::MS, capacity_bytes: 256 << 20 })
}

fn served(model: &Model, place: &Path, listener: Option<Listener>) -> Service {
    let options = ServiceOptions { unix: vec![place.to_owned()], ..ServiceOptions::new(Keeping::Discard(Vec::new())) };
    Service::start("test", model, &options, listener).expect("the service starts")
}

/// A process that is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Killing fails if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: the client process of the next test, which reads until the server ends.
#[test]
#[ignore = "the client of a test"]
fn reads_in_a_process_of_its_own() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let socket = std::os::unix::net::UnixStream::connect(place).expect("the server listens");
    let mut client = Client::connect(Stream::socket_of(socket), "").expect("the server has an export");
    let mut data = vec![0; BLOCK_BYTES as usize];
    for cookie in 0.. {
        let header =
            Header { flags: 0, command: command::READ, cookie, offset_bytes: 0, length_bytes: BLOCK_BYTES.into() };
        if client.send(&header, &[]).and_then(|()| client.receive(|_| &mut data)).is_err() {
            return;
        }
    }
}

#[test]
fn a_client_that_is_kept_from_running_makes_the_session_not_valid() {
    const STOPPED: Duration = Duration::from_millis(60);
    const RUNS: Duration = Duration::from_millis(30);
    let place = socket("stopped");
    let service = served(&constant(1), &place, None);
    let program = std::env::current_exe().expect("the path of this program is known");
    let client = Command::new(program)
        .args(["--exact", "reads_in_a_process_of_its_own", "--ignored"])
        .env(PLACE, &place)
        .stdout(Stdio::null())
        .spawn();
    let client = Program(client.expect("the process starts"));
    let pid = Pid::from_child(&client.0);
    let answered = || {
        service.commander().order(headstack_live::Order::Status).expect("the status is available")["fidelity"].clone()
    };
    while answered()["requests"].as_u64() < Some(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // No process competes for a processor meanwhile, so the scheduler's statistics show no waits, and the server is on
    // time.
    for _ in 0..20 {
        kill_process(pid, Signal::STOP).expect("it is still running");
        std::thread::sleep(STOPPED);
        kill_process(pid, Signal::CONT).expect("the process exists");
        std::thread::sleep(RUNS);
    }
    let fidelity = service.stop().expect("the service stops");
    drop(client);
    let told = serde_json::to_string(&fidelity.seen).expect("figures");
    assert_eq!(fidelity.valid_above_ns, None, "{}: {told}", fidelity.verdict);
    assert!(fidelity.verdict.starts_with("not valid: "), "{}", fidelity.verdict);
    let seen = &fidelity.seen.clients[0];
    assert_eq!(seen.pid, Some(client_id(&pid)));
    assert!(seen.turns.lying >= 10, "most replies were left unread: {told}");
    assert!(seen.turns.error.max_ns >= STOPPED.as_nanos() as u64 / 2, "{told}");
}

fn client_id(pid: &Pid) -> u32 {
    pid.as_raw_nonzero().get() as u32
}

/// Returns the latencies that fio measured at the given queue depth. The last `depth` requests are omitted, since fio
/// waits for all of them together and reports the latency of the last one for each.
fn fio(place: &Path, depth: u32, seconds: u32) -> Vec<u64> {
    let log = socket("log");
    let output = Command::new("fio")
        .args([
            "--name=j",
            "--ioengine=nbd",
            "--rw=randread",
            "--bs=4k",
            "--size=256m",
            "--norandommap",
            "--time_based",
        ])
        .arg(format!("--uri=nbd+unix:///?socket={}", place.display()))
        .arg(format!("--write_lat_log={}", log.display()))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={seconds}"))
        .output()
        .expect("fio is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let of = |what: &str| PathBuf::from(format!("{}_{what}.1.log", log.display()));
    let text = std::fs::read_to_string(of("lat")).expect("fio wrote the log");
    ["lat", "clat", "slat"].iter().for_each(|what| std::fs::remove_file(of(what)).expect("fio wrote the log"));
    let latency_ns =
        |line: &str| line.split(", ").nth(1).and_then(|ns| ns.parse().ok()).expect("the line has a latency");
    let mut latencies_ns: Vec<u64> = text.lines().map(latency_ns).collect();
    latencies_ns.truncate(latencies_ns.len().saturating_sub(depth as usize));
    latencies_ns
}

/// A session, and whether its stated bound held.
struct Session {
    name: String,
    measured: LatencyHistogram,
    model: LatencyHistogram,
    fidelity: Fidelity,
}

impl Session {
    fn run(name: &str, model: &Model, depth: u32, seconds: u32) -> Session {
        let place = socket("fio");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        let listener: Listener = Box::new(move |observed| {
            let recorded = &observed.recorded;
            let completed = recorded.completion_ns.map(|ns| (ns, ns - recorded.arrival_ns));
            hearing.lock().expect("the lock is not poisoned").extend(completed);
        });
        let service = served(model, &place, Some(listener));
        let measured = fio(&place, depth, seconds);
        let fidelity = service.stop().expect("the service stops");
        let mut completed = heard.lock().expect("the lock is not poisoned").clone();
        completed.sort_unstable();
        let model = completed.into_iter().take(measured.len()).map(|(_, response_ns)| response_ns);
        let (measured, model) = (histogram(measured.into_iter()), histogram(model));
        Session { name: name.to_owned(), measured, model, fidelity }
    }

    /// Returns the excess of fio's measurements over the model, at p99 and in the mean, in ns.
    fn off_ns(&self) -> [f64; 2] {
        let p99_ns = |latencies: &LatencyHistogram| {
            latencies.quantile_ns(0.99).expect("the latency is less than an hour") as f64
        };
        [p99_ns(&self.measured) - p99_ns(&self.model), self.measured.mean_ns() - self.model.mean_ns()]
    }

    /// Whether the stated bound holds, to within the bins of the histogram; `None` if no bound is stated.
    fn holds(&self) -> Option<bool> {
        let stated_ns = self.fidelity.valid_above_ns? as f64 * 0.05;
        let bin_ns = self.measured.quantile_ns(0.99)? as f64 / 1000.0;
        Some(self.off_ns().iter().all(|off| off.abs() <= stated_ns + bin_ns))
    }

    fn row(&self, busy: usize, depth: u32) -> String {
        let [p99, mean] = self.off_ns().map(|ns| ns / 1e6);
        let error = self.fidelity.error_ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let state = match self.holds() {
            Some(true) => "valid, holds",
            Some(false) => "valid, BROKEN",
            None => "not valid",
        };
        format!(
            "{busy:>4} {:<20} {depth:>5} {:>8} {mean:>9.3} {p99:>9.3} {error:>9} {state:<14} {}",
            self.name,
            self.measured.count(),
            self.fidelity.verdict
        )
    }
}

fn histogram(latencies_ns: impl Iterator<Item = u64>) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    latencies_ns.for_each(|ns| histogram.record(ns));
    histogram
}

/// Starts busy loops of ordinary priority.
fn busy_loops(count: usize) -> Vec<Program> {
    let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("the shell starts");
    (0..count).map(|_| Program(busy())).collect()
}

/// Takes minutes: runs the whole grid, from a quiet machine to eight busy loops, or only the numbers of loops in
/// HEADSTACK_BUSY.
#[test]
#[ignore = "a campaign of minutes with fio: make validate"]
fn a_verdicts_bound_holds_for_fio() {
    let seconds = 2;
    let named = std::env::var("HEADSTACK_BUSY").unwrap_or("0,1,2,4,8".to_owned());
    let loops: Vec<usize> = named.split(',').map(|count| count.parse().expect("a count of busy loops")).collect();
    let devices: Vec<(&str, Model)> = vec![
        ("1 ms", constant(1)),
        ("10 ms", constant(10)),
        ("cheetah-x15-36lp", common::model("cheetah-x15-36lp")),
        ("dc-s3700-400gb", common::model("dc-s3700-400gb")),
    ];
    let (begun, mut valid, mut broken, mut sessions) = (Instant::now(), 0, Vec::new(), 0);
    println!("busy device               depth requests mean +ms   p99 +ms  bound ms state          verdict");
    for &count in &loops {
        let busy = busy_loops(count);
        for (name, model) in &devices {
            for depth in [1, 4, 16, 64] {
                let session = Session::run(name, model, depth, seconds);
                let row = session.row(busy.len(), depth);
                println!("{row}");
                sessions += 1;
                valid += usize::from(session.holds().is_some());
                if session.holds() == Some(false) {
                    broken.push(row);
                }
            }
        }
    }
    println!("{sessions} sessions, {valid} valid, {} broken, {:.0} s", broken.len(), begun.elapsed().as_secs_f64());
    tell(&[
        ("live: sessions under 0 to 8 busy loops", sessions as f64, None),
        ("live: sessions that said valid", valid as f64, None),
        ("live: sessions that said valid and were not", broken.len() as f64, Some(0.0)),
    ]);
    assert!(broken.is_empty(), "stated bounds did not hold:\n{}", broken.join("\n"));
}

/// Prints rows for `make validate`.
fn tell(rows: &[(&str, f64, Option<f64>)]) {
    for &(name, value, bar) in rows {
        let (bar_is, bar_met) = (bar.map(|_| "at most"), bar.map(|most| value <= most));
        let row = json!({
            "name": name, "value": value, "unit": "sessions", "bar": bar, "bar_is": bar_is, "bar_met": bar_met
        });
        println!("row: {row}");
    }
}
