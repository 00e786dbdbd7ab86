//! The control socket: an order a line as JSON, an answer a line; and Prometheus' text for whoever asks by HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::LiveError;
use crate::nbd::unix_listener;
use crate::orders::Order;
use crate::pacer::Commander;
use crate::telemetry::prometheus;

/// Orders are short: a line that is longer is none.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Who connects and says nothing is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a listener looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// What the socket takes: orders to the clock, and what concerns the server itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Server(ServerOrder),
    Clock(Order),
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum ServerOrder {
    /// Prometheus' text.
    Metrics,
    /// The end.
    Stop,
}

/// Listens for orders.
#[derive(Debug)]
pub struct Control {
    flags: Arc<Flags>,
    threads: Vec<JoinHandle<()>>,
    socket: Option<PathBuf>,
    /// The port of the metrics, as the system gave it.
    pub metrics: Option<SocketAddr>,
}

#[derive(Debug, Default)]
struct Flags {
    closing: AtomicBool,
    stop_was_asked: AtomicBool,
}

impl Control {
    /// Listens on a socket that only its owner may use, and on a port for metrics.
    ///
    /// # Errors
    /// One that is in use or cannot be had.
    pub fn start(
        commander: &Commander,
        socket: Option<&Path>,
        metrics: Option<SocketAddr>,
    ) -> Result<Control, LiveError> {
        let flags = Arc::new(Flags::default());
        let mut control = Control {
            flags: Arc::clone(&flags),
            threads: Vec::new(),
            socket: socket.map(Path::to_owned),
            metrics: None,
        };
        if let Some(path) = socket {
            let name = path.display().to_string();
            let listener = unix_listener(path)?;
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(LiveError::io(name.clone()))?;
            listener.set_nonblocking(true).map_err(LiveError::io(name))?;
            let (commander, flags) = (commander.clone(), Arc::clone(&flags));
            control.listen(move || hear_orders(&listener, &commander, &flags))?;
        }
        if let Some(address) = metrics {
            let name = format!("metrics on {address}");
            let listener = TcpListener::bind(address).map_err(LiveError::io(name.clone()))?;
            listener.set_nonblocking(true).map_err(LiveError::io(name.clone()))?;
            control.metrics = Some(listener.local_addr().map_err(LiveError::io(name))?);
            let commander = commander.clone();
            control.listen(move || serve_metrics(&listener, &commander, &flags))?;
        }
        Ok(control)
    }

    fn listen(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), LiveError> {
        let thread = thread::Builder::new().name("headstack-control".to_owned());
        self.threads.push(thread.spawn(work).map_err(LiveError::io("a thread of the control socket"))?);
        Ok(())
    }

    /// Somebody asked for the end.
    pub fn stop_was_asked(&self) -> bool {
        self.flags.stop_was_asked.load(Ordering::Relaxed)
    }

    /// Listens no more.
    pub fn stop(self) {
        self.flags.closing.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        if let Some(path) = self.socket {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn hear_orders(listener: &UnixListener, commander: &Commander, flags: &Arc<Flags>) {
    while !flags.closing.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((socket, _)) => {
                let (commander, flags) = (commander.clone(), Arc::clone(flags));
                // A client that goes in the middle of a line has given no order.
                thread::spawn(move || drop(obey_lines(&socket, &commander, &flags)));
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn obey_lines(socket: &UnixStream, commander: &Commander, flags: &Flags) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    let mut lines = BufReader::new(socket);
    loop {
        let mut line = String::new();
        if (&mut lines).take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match obey(&line, commander, flags) {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        let mut socket = socket;
        socket.write_all(format!("{answer}\n").as_bytes())?;
    }
}

fn obey(line: &str, commander: &Commander, flags: &Flags) -> Result<Value, LiveError> {
    let order = serde_json::from_str::<Line>(line);
    // An untagged enum says nothing of what was wrong: the orders to the clock do.
    let order = order.or_else(|_| serde_json::from_str::<Order>(line).map(Line::Clock));
    match order.map_err(|error| LiveError::Asked(format!("order: {error}")))? {
        Line::Server(ServerOrder::Metrics) => Ok(Value::String(prometheus(&commander.order(Order::Status)?))),
        Line::Server(ServerOrder::Stop) => {
            flags.stop_was_asked.store(true, Ordering::Relaxed);
            Ok(Value::Null)
        }
        Line::Clock(order) => commander.order(order),
    }
}

fn serve_metrics(listener: &TcpListener, commander: &Commander, flags: &Flags) {
    while !flags.closing.load(Ordering::Relaxed) {
        match listener.accept() {
            // A scraper that goes before its answer comes again.
            Ok((socket, _)) => drop(answer_http(&socket, commander)),
            Err(_) => thread::sleep(LOOK),
        }
    }
}

/// As much of HTTP/1.0 as a scraper needs: whatever is asked for, the metrics are the answer.
fn answer_http(mut socket: &TcpStream, commander: &Commander) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(socket).take(LINE_BYTES_MAX);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, body) = match commander.order(Order::Status) {
        Ok(report) => ("200 OK", prometheus(&report)),
        Err(error) => ("503 Service Unavailable", format!("{error}\n")),
    };
    let kind = "text/plain; version=0.0.4";
    write!(socket, "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
