//! [`Prefetch`]: reads ahead of sequential readers (dmu_zfetch.c). A file has up to 8 streams; a hit doubles the distance
//! of a stream to 4 MiB, and a reader that catches up extends it by 1/8, to 64 MiB.

/// Streams of a file (`zfetch_max_streams`).
const STREAMS: usize = 8;

/// A sequential reader.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Record after the last one that was read.
    next: u64,
    /// Record after the last one that was prefetched.
    ahead: u64,
    distance_bytes: u64,
    used: u64,
}

/// Streams of the dataset.
#[derive(Clone, Debug)]
pub(super) struct Prefetch {
    streams: Vec<Stream>,
    uses: u64,
    record_bytes: u64,
    min_bytes: u64,
    max_bytes: u64,
}

impl Prefetch {
    /// Creates a prefetcher without streams.
    pub fn new(record_bytes: u64, min_bytes: u64, max_bytes: u64) -> Prefetch {
        Prefetch { streams: Vec::with_capacity(STREAMS), uses: 0, record_bytes, min_bytes, max_bytes }
    }

    /// Takes a read of the records `first..end`; returns the records to prefetch. `waits` states whether the reader
    /// caught up, so that it has to wait for a device.
    pub fn read(&mut self, first: u64, end: u64, waits: bool) -> std::ops::Range<u64> {
        self.uses += 1;
        let uses = self.uses;
        // A read inside the last record of a stream changes nothing.
        if self.streams.iter().any(|stream| stream.next == first + 1 && end == stream.next) {
            return 0..0;
        }
        let continued = |stream: &&mut Stream| stream.next == first || (stream.next == first + 1 && end > stream.next);
        let Some(stream) = self.streams.iter_mut().find(continued) else {
            self.begin(end, uses);
            return 0..0;
        };
        let read_bytes = (end - first) * self.record_bytes;
        stream.distance_bytes = match stream.distance_bytes {
            0 => read_bytes,
            distance if distance < self.min_bytes => (2 * distance).min(self.min_bytes),
            distance if waits => distance + distance / 8,
            distance => distance,
        };
        stream.distance_bytes = stream.distance_bytes.min(self.max_bytes);
        (stream.next, stream.used) = (end, uses);
        let from = stream.ahead.max(end);
        stream.ahead = from.max(end + stream.distance_bytes.div_ceil(self.record_bytes));
        from..stream.ahead
    }

    /// Starts a stream in place of the one that was used least recently.
    fn begin(&mut self, next: u64, used: u64) {
        let stream = Stream { next, ahead: next, distance_bytes: 0, used };
        if self.streams.len() < STREAMS {
            return self.streams.push(stream);
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
        *oldest.expect("there are streams") = stream;
    }

    /// Forgets all streams.
    pub fn power_cycle(&mut self) {
        self.streams.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: u64 = 128 << 10;

    #[test]
    fn the_distance_doubles_to_4_mib_and_grows_by_an_eighth_when_the_reader_waits() {
        let mut fetch = Prefetch::new(RECORD, 4 << 20, 64 << 20);
        let mut ahead = |record: u64, waits: bool| {
            let range = fetch.read(record, record + 1, waits);
            (range.end.max(record + 1) - record - 1) * RECORD
        };
        assert_eq!(ahead(0, true), 0);
        let grown: Vec<u64> = (1..7).map(|record| ahead(record, true) >> 10).collect();
        assert_eq!(grown, [128, 256, 512, 1024, 2048, 4096]);
        assert_eq!(ahead(7, false), 4 << 20);
        assert_eq!(ahead(8, true), (4 << 20) / 8 * 9);
        let last = (9..200).map(|record| ahead(record, true)).last();
        assert_eq!(last, Some(64 << 20));
    }

    #[test]
    fn random_reads_prefetch_nothing_and_eight_readers_keep_their_streams() {
        let mut fetch = Prefetch::new(RECORD, 4 << 20, 64 << 20);
        assert!((0..100).all(|at| fetch.read(at * 7919 % 5003, at * 7919 % 5003 + 1, true).is_empty()));
        for record in 0..3 {
            for reader in 0..8 {
                let range = fetch.read(reader * 100_000 + record, reader * 100_000 + record + 1, true);
                assert_eq!(range.is_empty(), record == 0);
            }
        }
    }
}
