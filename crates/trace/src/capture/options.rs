//! [`CaptureOptions`] and [`Progress`] of a capture.

use std::time::Duration;

use crate::formats::Stage;

/// Capture method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The block tracepoints in our own instance: several concurrent users, the name of every request's process, and at
    /// most 33 % of the tracer's cost.
    Tracepoints,
    /// The block tracer: blktrace's records, one user per system.
    Tracer,
}

impl Method {
    /// All methods, the preferred one first.
    pub const ALL: [Method; 2] = [Method::Tracepoints, Method::Tracer];

    /// Name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Method::Tracer => "tracer",
            Method::Tracepoints => "tracepoints",
        }
    }

    /// Returns the method with that name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// Options of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The block device or partition: `/dev/NAME`, `NAME` or `MAJOR:MINOR`.
    pub device: String,
    /// The method; the first that works if absent.
    pub method: Option<Method>,
    /// Stage at which requests are counted: when programs queue them, or when the device receives them, which costs
    /// less.
    pub stage: Stage,
    /// Time limit.
    pub duration: Option<Duration>,
    /// Limit of the number of requests.
    pub requests: Option<u64>,
    /// Size of the kernel's buffer per processor.
    pub buffer_bytes: u64,
}

impl CaptureOptions {
    /// Requests to that device as they are queued, until stopped, with 16 MiB of buffer per processor: at 60,000
    /// requests a second on one of them, about 0.8 s.
    pub fn new(device: impl Into<String>) -> CaptureOptions {
        CaptureOptions {
            device: device.into(),
            method: None,
            stage: Stage::Queue,
            duration: None,
            requests: None,
            buffer_bytes: 16 << 20,
        }
    }
}

/// Progress of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Number of returned requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of their events.
    pub events: u64,
    /// Number of events lost because buffers were full.
    pub lost: u64,
    /// Requests per second, over about the last second.
    pub rate_per_s: f64,
    /// Bytes per second, over about the last second.
    pub bytes_per_s: f64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Whether it is over.
    pub is_over: bool,
}
