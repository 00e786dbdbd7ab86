//! What to record and how, and how far it is.

use std::time::Duration;

use crate::formats::Stage;

/// How the kernel is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The block tracepoints in an instance of our own: several users, every request's process by name, and a third of the
    /// tracer's cost or less.
    Tracepoints,
    /// The block tracer: blktrace's records, one user in the system.
    Tracer,
}

impl Method {
    /// Every method, the preferred one first.
    pub const ALL: [Method; 2] = [Method::Tracepoints, Method::Tracer];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Method::Tracer => "tracer",
            Method::Tracepoints => "tracepoints",
        }
    }

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// What to record.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The block device or partition: `/dev/NAME`, `NAME` or `MAJOR:MINOR`.
    pub device: String,
    /// The method, where the first that works is not good enough.
    pub method: Option<Method>,
    /// Where requests are counted: as programs queue them, or as the device is given them, which costs less.
    pub stage: Stage,
    /// Ends by itself after that time.
    pub duration: Option<Duration>,
    /// Ends by itself after that many requests.
    pub requests: Option<u64>,
    /// What the kernel holds for each processor until it is read.
    pub buffer_bytes: u64,
}

impl CaptureOptions {
    /// Requests to that device as they are queued, until stopped, with 16 MiB of buffer for each processor: at 60,000
    /// requests a second on one of them, some 0.8 s.
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

/// How far a capture is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Requests that were handed out.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events that they were told from.
    pub events: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Requests a second, in the last second or so.
    pub rate_per_s: f64,
    /// Bytes a second, likewise.
    pub bytes_per_s: f64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Nothing more follows.
    pub is_over: bool,
}
