//! [`Summary`]: a quick overview of a trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Serialize, Serializer};

use crate::record::{NOT_RECORDED, Operation, Record};

/// Request counts of one device or of the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of requests by operation, in the order of [`Operation::ALL`].
    #[serde(serialize_with = "by_operation")]
    pub requests: [u64; 6],
    /// Total bytes by operation.
    #[serde(serialize_with = "by_operation")]
    pub bytes: [u64; 6],
    /// Lowest first byte of a request; absent if no request has an address.
    pub lowest_byte: Option<u64>,
    /// Highest end of a request, in bytes.
    pub highest_end_byte: u64,
    /// First and last arrival, in ns.
    pub arrivals_ns: Option<(u64, u64)>,
    /// Number of requests with a recorded latency.
    pub responses: u64,
    /// Sum of latencies, in ns. Cannot overflow in practice, because 2^64 ns are 584 years.
    pub response_sum_ns: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, record: &Record) {
        self.requests[record.operation as usize] += 1;
        self.bytes[record.operation as usize] += u64::from(record.length_bytes);
        if record.length_bytes > 0 {
            self.lowest_byte =
                Some(self.lowest_byte.map_or(record.offset_bytes, |least| least.min(record.offset_bytes)));
            self.highest_end_byte = self.highest_end_byte.max(record.end_bytes());
        }
        let first_ns = self.arrivals_ns.map_or(record.arrival_ns, |(first_ns, _)| first_ns);
        self.arrivals_ns = Some((first_ns, record.arrival_ns));
        if record.response_ns != NOT_RECORDED {
            self.responses += 1;
            self.response_sum_ns = self.response_sum_ns.saturating_add(record.response_ns);
        }
    }
}

/// Request counts of a whole trace and of each device, collected in one pass.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Counts of all requests.
    pub total: Counts,
    /// Counts of each device, in the order of [`crate::Meta::devices`].
    pub devices: Vec<Counts>,
    /// Maximum number of requests in flight, among those with a recorded completion.
    pub most_in_flight: usize,
    /// Completion times of the requests in flight.
    #[serde(skip)]
    in_flight: BinaryHeap<Reverse<u64>>,
}

impl Summary {
    /// Adds requests, in order of arrival.
    pub fn add(&mut self, records: &[Record]) {
        for record in records {
            let device = record.device as usize;
            if device >= self.devices.len() {
                self.devices.resize_with(device + 1, Counts::default);
            }
            self.total.add(record);
            while self.in_flight.peek().is_some_and(|&Reverse(at_ns)| at_ns <= record.arrival_ns) {
                self.in_flight.pop();
            }
            if let Some(at_ns) = record.completion_ns() {
                self.in_flight.push(Reverse(at_ns));
                self.most_in_flight = self.most_in_flight.max(self.in_flight.len());
            }
            self.devices[device].add(record);
        }
    }

    /// Returns the total number of requests.
    pub fn requests(&self) -> u64 {
        self.total.requests.iter().sum()
    }
}

/// Serializes only the operations that occur, by name.
fn by_operation<S: Serializer>(numbers: &[u64; 6], serializer: S) -> Result<S::Ok, S::Error> {
    let there = Operation::ALL.into_iter().zip(numbers).filter(|(_, number)| **number > 0);
    serializer.collect_map(there.map(|(operation, number)| (operation.name(), number)))
}
