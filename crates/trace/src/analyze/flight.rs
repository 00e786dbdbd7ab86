//! [`DepthTracker`]: requests in flight, with their number, duration and overlaps.

use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::histogram::{Summary, Values};
use super::rate::Series;
use crate::record::{NOT_RECORDED, Operation, Record};

/// Largest number of requests that are followed in flight; further ones count as if their response were not recorded.
const FLIGHTS_MAX: usize = 1 << 20;
/// Depth above which overlaps are not checked.
const OVERLAP_DEPTH_MAX: usize = 1_024;
/// Number of separate depths; the last one includes all higher depths.
const DEPTH_MAX: usize = 1_024;

/// Response times of a class of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Lower limit of the class; the next begins at twice that.
    pub from: u64,
    /// Number of requests.
    pub requests: u64,
    /// Their mean response time.
    pub mean_ns: f64,
}

/// Response times of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResponseReport {
    /// Requests with a recorded response time.
    pub recorded: u64,
    /// From arrival to completion, all operations; null if none is recorded.
    pub all_ns: Option<Summary>,
    /// Response times by operation.
    pub by_operation_ns: BTreeMap<&'static str, Summary>,
    /// Response times by length in bytes.
    pub by_size_bytes: Vec<ClassReport>,
    /// Response times by the number of other requests in flight on arrival.
    pub by_depth: Vec<ClassReport>,
    /// From arrival until the device received the request; null if none is recorded.
    pub wait_ns: Option<Summary>,
}

/// Queue depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthReport {
    /// Mean over time, from the first arrival to the last completion.
    pub mean: f64,
    /// Mean depth seen by an arriving request.
    pub mean_at_arrival: f64,
    /// Largest depth.
    pub max: u64,
    /// Share of the time at each depth from 0 on; the last of 1,025 includes all higher depths.
    pub time_shares: Vec<f64>,
    /// Share of requests that on arrival overlap the range of another request in flight on the same device.
    pub overlap_share: Option<f64>,
    /// Requests that were not checked for overlaps, since more than 1,024 were in flight.
    pub overlap_not_checked: u64,
    /// Requests that were not followed, since 2^20 others were in flight.
    pub not_followed: u64,
}

/// A request in flight; the first to complete compares as the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct InFlight {
    completion_ns: std::cmp::Reverse<u64>,
    offset_bytes: u64,
    end_bytes: u64,
    device: u32,
}

impl InFlight {
    fn until(completion_ns: u64, record: &Record) -> InFlight {
        InFlight {
            completion_ns: std::cmp::Reverse(completion_ns),
            offset_bytes: record.offset_bytes,
            end_bytes: record.end_bytes(),
            device: record.device,
        }
    }
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Class {
    requests: u64,
    response_ns: u128,
}

/// Follows requests to their completion. Sums are whole numbers, so their order does not matter.
#[derive(Serialize, Deserialize)]
pub(crate) struct DepthTracker {
    in_flight: BinaryHeap<InFlight>,
    /// The first arrival, and the requests of an earlier part in flight at that time.
    begun: Option<(u64, usize)>,
    now_ns: u64,
    depth_ns: Vec<u128>,
    max: usize,
    arrivals: u64,
    depth_at_arrival: u64,
    checked: u64,
    overlapping: u64,
    not_checked: u64,
    not_followed: u64,
    all: Values,
    operations: [Option<Box<Values>>; Operation::ALL.len()],
    wait: Values,
    by_size: Vec<Class>,
    by_depth: Vec<Class>,
}

impl DepthTracker {
    pub(crate) fn new() -> DepthTracker {
        DepthTracker {
            in_flight: BinaryHeap::new(),
            begun: None,
            now_ns: 0,
            depth_ns: Vec::new(),
            max: 0,
            arrivals: 0,
            depth_at_arrival: 0,
            checked: 0,
            overlapping: 0,
            not_checked: 0,
            not_followed: 0,
            all: Values::new(),
            operations: [const { None }; Operation::ALL.len()],
            wait: Values::new(),
            by_size: vec![Class::default(); 33],
            by_depth: vec![Class::default(); 33],
        }
    }

    /// Adds a request of an earlier part of the trace, relative to the start of the whole.
    pub(crate) fn add_earlier(&mut self, start_ns: u64, record: &Record) {
        if let Some(completion_ns) = record.completion_ns() {
            self.in_flight.push(InFlight::until(completion_ns.saturating_sub(start_ns), record));
        }
    }

    /// Adds a request; `series` receives the depth up to now.
    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, record: &Record, series: &mut Series) {
        if record.wait_ns != NOT_RECORDED {
            self.wait.add(record.wait_ns);
        }
        if self.begun.is_none() {
            self.begin(since_start_ns);
        }
        self.complete_until(since_start_ns, Some(series));
        let depth = self.in_flight.len();
        self.arrivals += 1;
        self.depth_at_arrival += depth as u64;
        self.look_for_overlap(record);
        if record.response_ns == NOT_RECORDED {
            return;
        }
        self.time(record, depth);
        if depth >= FLIGHTS_MAX {
            self.not_followed += 1;
            return;
        }
        self.in_flight.push(InFlight::until(since_start_ns.saturating_add(record.response_ns), record));
        self.max = self.max.max(depth + 1);
    }

    /// Excludes the time before, which belongs to earlier parts of the trace.
    fn begin(&mut self, since_start_ns: u64) {
        self.now_ns = since_start_ns;
        while self.in_flight.peek().is_some_and(|first| first.completion_ns.0 <= since_start_ns) {
            self.in_flight.pop();
        }
        self.begun = Some((since_start_ns, self.in_flight.len()));
    }

    /// Appends a later part; `series` as for [`DepthTracker::add`]. Returns whether that part knew the requests in flight
    /// here.
    pub(crate) fn merge(&mut self, later: DepthTracker, series: &mut Series) -> bool {
        let Some((begun_ns, found)) = later.begun else { return true };
        if self.begun.is_none() {
            self.begin(begun_ns);
        }
        self.complete_until(begun_ns, Some(series));
        if self.in_flight.len() != found {
            return false;
        }
        self.in_flight = later.in_flight;
        self.now_ns = later.now_ns;
        self.depth_ns.resize(self.depth_ns.len().max(later.depth_ns.len()), 0);
        self.depth_ns.iter_mut().zip(&later.depth_ns).for_each(|(ns, later)| *ns += later);
        self.max = self.max.max(later.max);
        self.arrivals += later.arrivals;
        self.depth_at_arrival += later.depth_at_arrival;
        self.checked += later.checked;
        self.overlapping += later.overlapping;
        self.not_checked += later.not_checked;
        self.not_followed += later.not_followed;
        self.all.merge(&later.all);
        self.wait.merge(&later.wait);
        for (values, later) in self.operations.iter_mut().zip(later.operations) {
            match (values, later) {
                (Some(values), Some(later)) => values.merge(&later),
                (values @ None, Some(later)) => *values = Some(later),
                (_, None) => {}
            }
        }
        let classes = self.by_size.iter_mut().chain(&mut self.by_depth);
        for (class, later) in classes.zip(later.by_size.iter().chain(&later.by_depth)) {
            class.requests += later.requests;
            class.response_ns += later.response_ns;
        }
        true
    }

    fn look_for_overlap(&mut self, record: &Record) {
        if record.length_bytes == 0 {
            return;
        }
        if self.in_flight.len() > OVERLAP_DEPTH_MAX {
            self.not_checked += 1;
            return;
        }
        let overlaps = |other: &InFlight| {
            other.offset_bytes < record.end_bytes()
                && record.offset_bytes < other.end_bytes
                && other.device == record.device
        };
        self.checked += 1;
        self.overlapping += u64::from(self.in_flight.iter().any(overlaps));
    }

    fn time(&mut self, record: &Record, depth: usize) {
        self.all.add(record.response_ns);
        let of_operation = &mut self.operations[record.operation as usize];
        of_operation.get_or_insert_with(|| Box::new(Values::new())).add(record.response_ns);
        let class = |value: u32| (u32::BITS - value.leading_zeros()) as usize;
        let classes = [&mut self.by_size[class(record.length_bytes)], &mut self.by_depth[class(depth as u32)]];
        for class in classes {
            class.requests += 1;
            class.response_ns += u128::from(record.response_ns);
        }
    }

    fn complete_until(&mut self, until_ns: u64, mut series: Option<&mut Series>) {
        while let Some(first) = self.in_flight.peek().filter(|first| first.completion_ns.0 <= until_ns) {
            self.pass(first.completion_ns.0, series.as_deref_mut());
            self.in_flight.pop();
        }
        self.pass(until_ns, series);
    }

    /// Accounts for the time at the current depth.
    fn pass(&mut self, until_ns: u64, series: Option<&mut Series>) {
        let depth = self.in_flight.len();
        let place = depth.min(DEPTH_MAX);
        if place >= self.depth_ns.len() {
            self.depth_ns.resize(place + 1, 0);
        }
        self.depth_ns[place] += u128::from(until_ns.saturating_sub(self.now_ns));
        if let Some(series) = series.filter(|_| depth > 0) {
            series.add_depth(self.now_ns, until_ns, depth);
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Waits for all requests in flight.
    pub(crate) fn finish(mut self) -> (ResponseReport, Option<DepthReport>) {
        while let Some(first) = self.in_flight.peek() {
            let at_ns = first.completion_ns.0;
            self.complete_until(at_ns, None);
        }
        let classes = |classes: &[Class]| {
            let report = |(index, class): (usize, &Class)| ClassReport {
                from: if index == 0 { 0 } else { 1 << (index - 1) },
                requests: class.requests,
                mean_ns: class.response_ns as f64 / class.requests as f64,
            };
            classes.iter().enumerate().filter(|(_, class)| class.requests > 0).map(report).collect()
        };
        let of = |operation: Operation| {
            let values = self.operations[operation as usize].as_ref()?;
            Some((operation.name(), values.summary()?))
        };
        let all_ns = self.all.summary();
        let response = ResponseReport {
            recorded: all_ns.map_or(0, |all| all.count),
            all_ns,
            by_operation_ns: Operation::ALL.into_iter().filter_map(of).collect(),
            by_size_bytes: classes(&self.by_size),
            by_depth: classes(&self.by_depth),
            wait_ns: self.wait.summary(),
        };
        let depth = all_ns.map(|all| self.depth(all));
        (response, depth)
    }

    fn depth(&self, response: Summary) -> DepthReport {
        let length_ns = self.depth_ns.iter().sum::<u128>() as f64;
        let share = |ns: f64| if length_ns > 0.0 { ns / length_ns } else { 0.0 };
        DepthReport {
            // Little's law: the sum of the times in flight divided by the time.
            mean: share(response.mean * response.count as f64),
            mean_at_arrival: self.depth_at_arrival as f64 / self.arrivals as f64,
            max: self.max as u64,
            time_shares: self.depth_ns.iter().map(|&ns| share(ns as f64)).collect(),
            overlap_share: (self.checked > 0).then(|| self.overlapping as f64 / self.checked as f64),
            overlap_not_checked: self.not_checked,
            not_followed: self.not_followed,
        }
    }
}
