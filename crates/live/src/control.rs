//! [`Control`]: the control socket, with one JSON order and one answer per line; and Prometheus metrics over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::LiveError;
use crate::event_loop::{ConnectionLimits, ConnectionSlot, EventLoop, Listener, Next, Protocol};
use crate::nbd::{SOCKET_MODE, allow_many_files, unix_listener};
use crate::orders::Order;
use crate::pacer::Commander;
use crate::stream::Stream;
use crate::telemetry::prometheus;

/// Longest line; orders are short.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Longest HTTP request.
const HTTP_BYTES_MAX: usize = 64 << 10;
/// Connections of the socket's owner, the only user who may give orders, including silent ones.
const COMMANDERS_MAX: usize = 64;
/// Concurrent scrapers.
const SCRAPERS_MAX: usize = 256;
/// Time limit of an HTTP request, from its first byte to the last of its answer.
pub const HTTP_DEADLINE: Duration = Duration::from_secs(10);

/// A line on the socket: an order to the clock, or a command for the server itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Server(ServerOrder),
    Clock(Order),
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum ServerOrder {
    /// Returns the Prometheus metrics.
    Metrics,
    /// Adds a line of text to the journal; answered when it is in the file.
    Mark {
        /// The text.
        text: String,
    },
    /// Ends the server.
    Stop,
}

/// Listens for orders.
#[derive(Debug)]
pub struct Control {
    stop_was_asked: Arc<AtomicBool>,
    event_loops: Vec<EventLoop>,
    socket: Option<PathBuf>,
    /// Port of the metrics, as assigned by the system.
    pub metrics: Option<SocketAddr>,
}

impl Control {
    /// Listens on a socket that only its owner may use, and on a port for metrics with a time limit per request.
    ///
    /// # Errors
    /// When one is in use or not available.
    pub fn start(
        commander: &Commander,
        socket: Option<&Path>,
        metrics: Option<SocketAddr>,
        http_deadline: Duration,
    ) -> Result<Control, LiveError> {
        allow_many_files();
        let stop_was_asked = Arc::new(AtomicBool::new(false));
        let (asked, event_loops) = (Arc::clone(&stop_was_asked), Vec::new());
        let mut control = Control { stop_was_asked, event_loops, socket: None, metrics: None };
        if let Some(path) = socket {
            let listener = Listener::Unix(unix_listener(path, SOCKET_MODE)?);
            control.socket = Some(path.to_owned());
            let limits = ConnectionLimits { connections_max: COMMANDERS_MAX, stay: None };
            let orders = Orders { commander: commander.clone(), stop_was_asked: asked };
            let opened = EventLoop::open("headstack-control", vec![listener], limits, &Arc::default(), orders);
            control.event_loops.push(opened.map_err(LiveError::io("a thread of the control socket"))?);
        }
        if let Some(address) = metrics {
            let name = format!("metrics on {address}");
            let listener = TcpListener::bind(address).map_err(LiveError::io(name.clone()))?;
            control.metrics = Some(listener.local_addr().map_err(LiveError::io(name))?);
            let limits = ConnectionLimits { connections_max: SCRAPERS_MAX, stay: Some(http_deadline) };
            let (listener, metrics) = (vec![Listener::Tcp(listener)], Metrics { commander: commander.clone() });
            let opened = EventLoop::open("headstack-metrics", listener, limits, &Arc::default(), metrics);
            control.event_loops.push(opened.map_err(LiveError::io("a thread of the metrics"))?);
        }
        Ok(control)
    }

    /// Whether an order requested the end.
    pub fn is_stop_requested(&self) -> bool {
        self.stop_was_asked.load(Ordering::Relaxed)
    }

    /// Stops listening, and closes all connections.
    pub fn stop(self) {
        self.event_loops.into_iter().for_each(EventLoop::close);
        if let Some(path) = self.socket {
            // The user may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Orders, one per line.
struct Orders {
    commander: Commander,
    stop_was_asked: Arc<AtomicBool>,
}

impl Protocol for Orders {
    type State = ();

    fn greet(&self, _: &mut Vec<u8>) {}

    fn on_bytes(&self, (): &mut (), received: &mut Vec<u8>, say: &mut Vec<u8>) -> Next {
        while let Some(end) = received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            let answer = match obey(&line, &self.commander, &self.stop_was_asked) {
                Ok(answer) => json!({ "ok": answer }),
                Err(error) => json!({ "error": error.to_string() }),
            };
            say.extend_from_slice(format!("{answer}\n").as_bytes());
        }
        // A client that leaves in the middle of a line has given no order.
        if received.len() > LINE_BYTES_MAX { Next::Over } else { Next::More }
    }

    fn hand_over(&self, (): (), _: Stream, _: Vec<u8>, _: Vec<u8>, _: ConnectionSlot) {}
}

fn obey(line: &[u8], commander: &Commander, stop_was_asked: &AtomicBool) -> Result<Value, LiveError> {
    let order = serde_json::from_slice::<Line>(line);
    // Errors of an untagged enum have no details; those of clock orders do.
    let order = order.or_else(|_| serde_json::from_slice::<Order>(line).map(Line::Clock));
    match order.map_err(|error| LiveError::Invalid(format!("order: {error}")))? {
        Line::Server(ServerOrder::Metrics) => Ok(Value::String(prometheus(&commander.figures()?))),
        Line::Server(ServerOrder::Mark { text }) => Ok(json!({ "at_ns": commander.mark(&text)? })),
        Line::Server(ServerOrder::Stop) => {
            stop_was_asked.store(true, Ordering::Relaxed);
            Ok(Value::Null)
        }
        Line::Clock(order) => commander.order(order),
    }
}

/// The part of HTTP/1.0 that a scraper needs: the metrics are the answer to any request.
struct Metrics {
    commander: Commander,
}

impl Protocol for Metrics {
    type State = ();

    fn greet(&self, _: &mut Vec<u8>) {}

    fn on_bytes(&self, (): &mut (), received: &mut Vec<u8>, say: &mut Vec<u8>) -> Next {
        let is_whole =
            [&b"\r\n\r\n"[..], b"\n\n"].iter().any(|end| received.windows(end.len()).any(|part| part == *end));
        if !is_whole {
            return if received.len() > HTTP_BYTES_MAX { Next::Over } else { Next::More };
        }
        received.clear();
        let (status, body) = match self.commander.figures() {
            Ok(figures) => ("200 OK", prometheus(&figures)),
            Err(error) => ("503 Service Unavailable", format!("{error}\n")),
        };
        let kind = "text/plain; version=0.0.4";
        let head = format!("HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        say.extend_from_slice(head.as_bytes());
        say.extend_from_slice(body.as_bytes());
        Next::Over
    }

    fn hand_over(&self, (): (), _: Stream, _: Vec<u8>, _: Vec<u8>, _: ConnectionSlot) {}
}
