//! What a live export is worth: how late it is, whether a queue reaches the model, and a drive over NBD against the same
//! drive simulated.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headstack_catalogue::{load_drive, load_workload};
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{Header, command};
use headstack_live::stream::Stream;
use headstack_live::{Fidelity, Keeping, Service, ServiceOptions};
use headstack_result::{LatencyHistogram, demerit_of_histograms_ms};
use headstack_sim::{Constant, Model};
use headstack_sim::{Demand, RunSpec, SystemDescription, run};
use headstack_workload::{Arrivals, Generator, Kind, Request, RunLength, Span, Think, WarmUp, Workload};
use serde_json::Value;

use crate::measuring::fio_lacks;
use crate::report::{Bar, Figure, Missing, Report};
use crate::size::Size;

const CAPACITY_BYTES: u64 = 1 << 30;
/// Length of the run that lateness is measured in.
const LATE_FOR: Duration = Duration::from_secs(5);
/// The drive that is live, and what it is under.
const DRIVE: &str = "cheetah-x15-36lp";
const WORKLOAD: &str = "file-server";
/// Length of the live run at each depth, and the requests that warm it up.
const LIVE_FOR: Duration = Duration::from_secs(60);
const WARM_UP: u64 = 500;
/// The simulated run is long enough to have no noise of its own.
const SIMULATED: u64 = 400_000;
/// What the constant device of the queue takes.
const QUEUED_MS: u64 = 10;
const QUEUED_DEPTH: u64 = 32;

/// Answers of a server on a machine that does nothing else, SCHED_FIFO where it may.
pub fn lateness(report: &mut Report) {
    let length = report.size().time(LATE_FOR);
    for latency_ms in [1, 10] {
        let measured = with_service(&constant(latency_ms), |socket| {
            closed_loop(socket, 1, length, 0, &mut |number| Request {
                kind: Kind::Read,
                offset_bytes: number % 1024 * 4096,
                length_bytes: 4096,
                force_unit_access: false,
                ordered: false,
            })
        });
        match measured {
            Err(reason) => report.miss(&format!("live, {latency_ms} ms: lateness"), Missing::Broken(reason)),
            Ok((_, fidelity)) => {
                let name = |share: &str| format!("live, {latency_ms} ms: lateness {share}");
                report.add(figure(name("p50"), fidelity.path.lateness_p50_ns as f64 / 1e3, "us", Bar::AtMost(30.0)));
                report.add(figure(name("p99"), fidelity.path.lateness_p99_ns as f64 / 1e3, "us", Bar::AtMost(150.0)));
            }
        }
    }
}

/// A queue reaches the model, by either path: fio at depth 32 on a device of constant latency.
pub fn queue(report: &mut Report) {
    let ideal_per_s = (QUEUED_DEPTH * 1000 / QUEUED_MS) as f64;
    let row = |path: &str| format!("live over {path}, {QUEUED_MS} ms at depth {QUEUED_DEPTH}, of {ideal_per_s} IOPS");
    let (size, nbd) = (report.size(), fio_lacks("nbd"));
    let over_nbd = || {
        with_service(&constant(QUEUED_MS), |socket| {
            fio(size, &["--ioengine=nbd", &format!("--uri=nbd+unix:///?socket={}", socket.display())])
        })
    };
    let no_loop = fio_lacks("libaio").or_else(loop_lacks);
    let over_loop = || {
        with_loop(&constant(QUEUED_MS), |device| {
            fio(size, &["--ioengine=libaio", "--direct=1", &format!("--filename={}", device.display())])
        })
    };
    let mut add = |path: &str, lacks: Option<String>, measure: &dyn Fn() -> Result<(f64, Fidelity), String>, bar| {
        let measured = lacks.map_or_else(|| measure().map_err(Missing::Broken), |lacks| Err(Missing::Lacking(lacks)));
        match measured {
            Err(missing) => report.miss(&row(path), missing),
            Ok((per_s, _)) => report.add(figure(row(path), per_s / ideal_per_s * 100.0, "%", Bar::AtLeast(bar))),
        }
    };
    add("NBD", nbd, &over_nbd, 95.0);
    add("FUSE and loop", no_loop, &over_loop, 90.0);
}

/// A drive live over NBD against the same drive and workload simulated, depth by depth.
pub fn conformance(report: &mut Report) {
    let drive = SystemDescription::from(load_drive(DRIVE).expect("the catalogue is valid").description);
    let workload = load_workload(WORKLOAD).expect("the catalogue is valid");
    for depth in [1, 4, 16] {
        let row = |what: &str| format!("{DRIVE} live, {WORKLOAD}, depth {depth}: {what}");
        match live_against_simulated(report.size(), &drive, &workload, depth) {
            Err(reason) => report.miss(&row("against simulated"), Missing::Broken(reason)),
            Ok([mean, p99, demerit]) => {
                report.add(figure(row("mean response, off by"), mean, "%", Bar::AtMost(2.0)));
                report.add(figure(row("p99, off by"), p99, "%", Bar::AtMost(5.0)));
                report.add(figure(row("demerit"), demerit, "% of mean", Bar::AtMost(3.0)));
            }
        }
    }
}

/// How far the mean, p99 and the distribution of a live run are from those of a simulated one, in percent.
fn live_against_simulated(
    size: Size,
    drive: &SystemDescription,
    workload: &Workload,
    depth: u32,
) -> Result<[f64; 3], String> {
    let [warmed_up, simulated] = [WARM_UP, SIMULATED].map(|requests| size.count(requests));
    let arrivals = Arrivals::Closed { queue_depth: depth, think: Think::None };
    let warm_up = WarmUp { requests: warmed_up, ..WarmUp::default() };
    let workload = Workload { arrivals, warm_up, run_length: RunLength::Requests(simulated), ..workload.clone() };
    let span = Span { start_bytes: 0, length_bytes: drive.capacity_bytes() };
    let seed = 1;
    let mut generator = Generator::new(&workload, span, drive.block_bytes(), seed).map_err(|e| e.to_string())?;
    let model = Model::System(drive.clone());
    let (live, _) = with_service(&model, |socket| {
        closed_loop(socket, depth, size.time(LIVE_FOR), warmed_up, &mut |_| generator.next())
    })?;
    let spec = RunSpec {
        system_name: DRIVE.to_owned(),
        system: drive.clone(),
        demand: Demand::Workload(workload),
        span: None,
        seed,
        interval_ns: None,
        preload: 0,
        faults: None,
    };
    let simulated = run(&spec, &|_| true).map_err(|error| error.to_string())?;
    let model = simulated.latency();
    let off = |live: f64, model: f64| (live / model - 1.0).abs() * 100.0;
    let p99 = |histogram: &LatencyHistogram| histogram.quantile_ns(0.99).unwrap_or(0) as f64;
    let demerit_ms = demerit_of_histograms_ms(&live, &model).ok_or("a distribution with an overflow")?;
    let demerit = demerit_ms / (model.mean_ns() / 1e6) * 100.0;
    Ok([off(live.mean_ns(), model.mean_ns()), off(p99(&live), p99(&model)), demerit])
}

fn constant(latency_ms: u64) -> Model {
    Model::Constant(Constant { latency_ns: latency_ms * 1_000_000, capacity_bytes: CAPACITY_BYTES })
}

/// Exports a model while `work` uses its socket; what that gives, and how true the session was.
fn with_service<T>(model: &Model, work: impl FnOnce(&Path) -> Result<T, String>) -> Result<(T, Fidelity), String> {
    let socket = place();
    let options = ServiceOptions { unix: vec![socket.clone()], ..ServiceOptions::new(Keeping::Discard(Vec::new())) };
    served(model, &options, |_| work(&socket))
}

/// The same by a loop device, which takes root.
fn with_loop<T>(model: &Model, work: impl FnOnce(&Path) -> Result<T, String>) -> Result<(T, Fidelity), String> {
    let options =
        ServiceOptions { fuse: Some(place()), loops: true, ..ServiceOptions::new(Keeping::Discard(Vec::new())) };
    served(model, &options, |service| work(&service.files()[0]))
}

fn place() -> PathBuf {
    std::env::temp_dir().join(format!("headstack-bench-{}", std::process::id()))
}

fn served<T>(
    model: &Model,
    options: &ServiceOptions,
    work: impl FnOnce(&Service) -> Result<T, String>,
) -> Result<(T, Fidelity), String> {
    let service = Service::start("bench", model, options, None).map_err(|error| error.to_string())?;
    let worked = work(&service);
    let fidelity = service.stop().map_err(|error| error.to_string())?;
    Ok((worked?, fidelity))
}

/// Keeps `depth` requests under way for so long; the response times of those after the first `warm_up`.
fn closed_loop(
    socket: &Path,
    depth: u32,
    length: Duration,
    warm_up: u64,
    next: &mut dyn FnMut(u64) -> Request,
) -> Result<LatencyHistogram, String> {
    let mut worked = || -> io::Result<LatencyHistogram> {
        let mut client = Client::connect(Stream::socket_of(UnixStream::connect(socket)?), "")?;
        let mut responses = LatencyHistogram::new();
        let mut issued = vec![(Instant::now(), 0usize); depth as usize];
        let (mut data, zeros) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        let mut number = 0;
        let mut issue = |client: &mut Client, slot: usize, issued: &mut Vec<(Instant, usize)>| {
            let request = next(number);
            number += 1;
            let is_read = request.kind == Kind::Read;
            let header = Header {
                flags: 0,
                command: if is_read { command::READ } else { command::WRITE },
                cookie: slot as u64,
                offset_bytes: request.offset_bytes,
                length_bytes: u64::from(request.length_bytes),
            };
            let length = request.length_bytes as usize;
            issued[slot] = (Instant::now(), if is_read { length } else { 0 });
            client.send(&header, if is_read { &[] } else { &zeros[..length] })
        };
        for slot in 0..depth as usize {
            issue(&mut client, slot, &mut issued)?;
        }
        let (begun, mut complete) = (Instant::now(), 0);
        while begun.elapsed() < length {
            let (cookie, _) = client.receive(|slot| &mut data[..issued[slot as usize].1])?;
            complete += 1;
            if complete > warm_up {
                responses.record(issued[cookie as usize].0.elapsed().as_nanos() as u64);
            }
            issue(&mut client, cookie as usize, &mut issued)?;
        }
        Ok(responses)
    };
    worked().map_err(|error| format!("the client of the export: {error}"))
}

/// Reads of fio a second, at the depth of the queue.
fn fio(size: Size, engine: &[&str]) -> Result<f64, String> {
    let depth = format!("--iodepth={QUEUED_DEPTH}");
    let fixed = ["--name=live", "--rw=randread", "--bs=4k", "--time_based", "--output-format=json", "--size=1g"];
    let [ramp, run] = [1, 5].map(|seconds| size.time(Duration::from_secs(seconds)).as_millis());
    let timed = [&format!("--ramp_time={ramp}ms"), &format!("--runtime={run}ms"), &depth];
    let output = Command::new("fio").args(fixed).args(timed).args(engine).output();
    let output = output.map_err(|error| format!("fio: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Option<Value> = text.find('{').and_then(|start| serde_json::from_str(&text[start..]).ok());
    let per_s = told.and_then(|told| told["jobs"][0]["read"]["iops"].as_f64());
    per_s.ok_or_else(|| format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Why a loop device over FUSE cannot be had here.
fn loop_lacks() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("loop devices need root".to_owned());
    }
    let missing = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|device| !Path::new(device).exists());
    missing.map(|device| format!("no {device}"))
}

fn figure(name: String, value: f64, unit: &'static str, bar: Bar) -> Figure {
    Figure { name, value, best: None, unit, peer: None, bar: Some(bar), answer: None }
}
