//! [`Volumes`]: the places of a trace's volumes on one system, and the results of their requests.

use std::collections::HashMap;

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Recorded};
use serde::{Deserialize, Serialize};

use crate::mode::{Outside, ReplayError};

/// The place of a volume on the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// The volume's name in the trace.
    pub volume: String,
    /// Its first byte on the system.
    pub start_bytes: u64,
    /// Its size there, in bytes.
    pub length_bytes: u64,
}

/// The result of one volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeResult {
    /// Its name in the trace.
    pub volume: String,
    /// Its first byte on the system.
    pub start_bytes: u64,
    /// Its size there, in bytes.
    pub length_bytes: u64,
    /// Replayed requests, without flushes, which concern the whole system.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// IOPS, from the first request of the replay to the last completion.
    pub iops: Option<f64>,
    /// Mean latency, in ns.
    pub mean_ns: Option<f64>,
    /// 99th percentile of the latency, in ns.
    pub p99_ns: Option<u64>,
    /// Requests after the volume's end on the system that were moved into it.
    pub folded: u64,
    /// Requests after its end that were left out.
    pub dropped: u64,
}

#[derive(Default)]
struct VolumeCounts {
    bytes: u64,
    responses: LatencyHistogram,
    folded: u64,
    dropped: u64,
}

/// Places requests, and counts the results of each volume, identified by the requests' addresses.
pub struct Volumes {
    /// Extents in the order of their places.
    extents: Vec<Extent>,
    books: Vec<VolumeCounts>,
    by_name: HashMap<String, usize>,
    outside: Outside,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Volumes {
    /// Creates volumes from extents, which must not overlap.
    ///
    /// # Errors
    /// [`ReplayError::Settings`].
    pub fn new(mut extents: Vec<Extent>, outside: Outside) -> Result<Volumes, ReplayError> {
        extents.sort_by_key(|extent| extent.start_bytes);
        for pair in extents.windows(2) {
            if pair[0].start_bytes.saturating_add(pair[0].length_bytes) > pair[1].start_bytes {
                let message = format!(
                    "map: `{}` and `{}` overlap: {} bytes from {}, and an area from {}",
                    pair[0].volume, pair[1].volume, pair[0].length_bytes, pair[0].start_bytes, pair[1].start_bytes
                );
                return Err(ReplayError::Settings(message));
            }
        }
        let books = extents.iter().map(|_| VolumeCounts::default()).collect();
        let by_name = extents.iter().map(|extent| extent.volume.clone()).zip(0..).collect();
        Ok(Volumes { extents, books, by_name, outside, first_ns: None, last_ns: 0 })
    }

    /// Returns the index of the volume of this name.
    pub fn find(&self, volume: &str) -> Option<usize> {
        self.by_name.get(volume).copied()
    }

    /// Returns the request at its volume's place; `None` if it is left out.
    ///
    /// # Errors
    /// A request outside the volume, if these are errors.
    pub fn place(&mut self, index: usize, mut recorded: Recorded) -> Result<Option<Recorded>, String> {
        let request = &mut recorded.request;
        if request.kind == Kind::Flush {
            return Ok(Some(recorded));
        }
        let (extent, books) = (&self.extents[index], &mut self.books[index]);
        let length = u64::from(request.length_bytes);
        if request.offset_bytes.saturating_add(length) > extent.length_bytes {
            match self.outside {
                Outside::Fold if length <= extent.length_bytes => {
                    books.folded += 1;
                    let within = request.offset_bytes % extent.length_bytes;
                    request.offset_bytes = within.min(extent.length_bytes - length);
                }
                Outside::Drop => {
                    books.dropped += 1;
                    return Ok(None);
                }
                Outside::Fold | Outside::Refuse => {
                    return Err(format!(
                        "{length} bytes at {} of `{}`, which has {} bytes on the system; outside: use fold to move such requests \
                         into it, drop to omit them",
                        request.offset_bytes, extent.volume, extent.length_bytes
                    ));
                }
            }
        }
        request.offset_bytes += extent.start_bytes;
        Ok(Some(recorded))
    }

    /// Records a request as it was replayed.
    pub fn replayed(&mut self, recorded: &Recorded) {
        self.first_ns.get_or_insert(recorded.arrival_ns);
        let Some(done_ns) = recorded.completion_ns else { return };
        self.last_ns = self.last_ns.max(done_ns);
        if recorded.request.kind == Kind::Flush {
            return;
        }
        let at = recorded.request.offset_bytes;
        let index = self.extents.partition_point(|extent| extent.start_bytes <= at);
        // Widened to a block of the system, it may begin before its volume.
        let index = match index.checked_sub(1).filter(|&index| at < self.end_bytes(index)) {
            Some(index) => index,
            None => index.min(self.extents.len() - 1),
        };
        self.books[index].bytes += u64::from(recorded.request.length_bytes);
        self.books[index].responses.record(done_ns - recorded.arrival_ns);
    }

    fn end_bytes(&self, index: usize) -> u64 {
        self.extents[index].start_bytes.saturating_add(self.extents[index].length_bytes)
    }

    /// Returns the result of each volume, in the order of their places.
    pub fn results(&self) -> Vec<VolumeResult> {
        let span_s = self.last_ns.saturating_sub(self.first_ns.unwrap_or(self.last_ns)) as f64 / 1e9;
        let result = |(extent, books): (&Extent, &VolumeCounts)| {
            let requests = books.responses.count();
            VolumeResult {
                volume: extent.volume.clone(),
                start_bytes: extent.start_bytes,
                length_bytes: extent.length_bytes,
                requests,
                bytes: books.bytes,
                iops: (span_s > 0.0).then(|| requests as f64 / span_s),
                mean_ns: (requests > 0).then(|| books.responses.mean_ns()),
                p99_ns: books.responses.quantile_ns(0.99),
                folded: books.folded,
                dropped: books.dropped,
            }
        };
        self.extents.iter().zip(&self.books).map(result).collect()
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Request;

    use super::*;

    fn volumes(outside: Outside) -> Volumes {
        let extent =
            |volume: &str, start_bytes, length_bytes| Extent { volume: volume.to_owned(), start_bytes, length_bytes };
        Volumes::new(vec![extent("b", 10_000, 5_000), extent("a", 0, 10_000)], outside).unwrap()
    }

    fn read(offset_bytes: u64, length_bytes: u32, completion_ns: u64) -> Recorded {
        let request =
            Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        Recorded { arrival_ns: 1_000, completion_ns: Some(completion_ns), request, pre_flush: false }
    }

    #[test]
    fn requests_map_to_their_volume_and_count_there() {
        let mut all = volumes(Outside::Refuse);
        let (a, b) = (all.find("a").unwrap(), all.find("b").unwrap());
        assert_eq!(all.find("c"), None);
        let placed = all.place(b, read(512, 512, 2_000)).unwrap().unwrap();
        assert_eq!(placed.request.offset_bytes, 10_512);
        all.replayed(&placed);
        let placed = all.place(a, read(9_488, 512, 4_000)).unwrap().unwrap();
        all.replayed(&placed);
        let counted: Vec<_> = all.results().iter().map(|r| (r.volume.clone(), r.requests, r.mean_ns)).collect();
        assert_eq!(counted, [("a".to_owned(), 1, Some(3_000.0)), ("b".to_owned(), 1, Some(1_000.0))]);
        // Three microseconds from the first arrival to the last completion.
        assert!((all.results()[0].iops.unwrap() - 1e9 / 3_000.0).abs() < 1.0);
    }

    #[test]
    fn requests_after_the_end_of_a_volume_are_refused_folded_or_dropped() {
        let behind = read(4_800, 512, 2_000);
        let refused = volumes(Outside::Refuse).place(1, behind).unwrap_err();
        assert!(refused.contains("512 bytes at 4800 of `b`, which has 5000"), "{refused}");
        let mut folding = volumes(Outside::Fold);
        assert_eq!(folding.place(1, behind).unwrap().unwrap().request.offset_bytes, 10_000 + 5_000 - 512);
        assert_eq!(folding.place(1, read(5_100, 512, 2_000)).unwrap().unwrap().request.offset_bytes, 10_100);
        assert_eq!(folding.results()[1].folded, 2);
        let mut dropping = volumes(Outside::Drop);
        assert_eq!(dropping.place(1, behind).unwrap(), None);
        assert_eq!(dropping.results()[1].dropped, 1);
    }

    #[test]
    fn volumes_that_overlap_are_refused() {
        let extent = |start_bytes| Extent { volume: format!("v{start_bytes}"), start_bytes, length_bytes: 100 };
        let error = Volumes::new(vec![extent(50), extent(0)], Outside::Refuse).err().unwrap();
        assert!(error.to_string().contains("`v0` and `v50` overlap"), "{error}");
        assert!(Volumes::new(vec![extent(100), extent(0)], Outside::Refuse).is_ok());
    }
}
