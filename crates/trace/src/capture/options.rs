//! [`CaptureOptions`] and [`Progress`] of a capture.

use std::time::Duration;

use crate::formats::Stage;

/// Capture method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Block tracepoints in a private tracing instance. Allows several concurrent users, records the process name of
    /// every request, and costs at most 33 % as much as the tracer.
    Tracepoints,
    /// Block tracer: produces blktrace records; one user at a time per system.
    Tracer,
}

impl Method {
    /// All methods, in order of preference.
    pub const ALL: [Method; 2] = [Method::Tracepoints, Method::Tracer];

    /// Returns the name in options and metadata.
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
    /// Block device or partition: `/dev/NAME`, `NAME` or `MAJOR:MINOR`.
    pub device: String,
    /// Method; if absent, the first that works.
    pub method: Option<Method>,
    /// Stage at which requests are recorded: when programs queue them, or when the device receives them, which costs
    /// less.
    pub stage: Stage,
    /// Time limit.
    pub duration: Option<Duration>,
    /// Maximum number of requests.
    pub requests: Option<u64>,
    /// Size of the kernel's buffer per CPU, in bytes.
    pub buffer_bytes: u64,
}

impl CaptureOptions {
    /// Records requests to the device as they are queued, until stopped, with a 16 MiB buffer per CPU. This holds about
    /// 0.8 s at 60,000 IOPS on one CPU.
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
    /// Number of requests returned.
    pub requests: u64,
    /// Total bytes of the requests.
    pub bytes: u64,
    /// Number of events read.
    pub events: u64,
    /// Number of events lost because buffers were full.
    pub lost: u64,
    /// Requests per second over about the last second.
    pub rate_per_s: f64,
    /// Bytes per second over about the last second.
    pub bytes_per_s: f64,
    /// Time since the start of the capture.
    pub elapsed: Duration,
    /// Whether the capture is over.
    pub is_over: bool,
}
