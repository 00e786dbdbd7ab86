//! Arrival times of an open loop: one clock for all kinds, or one for each.

use headstack_workload::{ArrivalClock, ArrivalProcess, Kind, WorkloadError};

/// The arrivals to come.
pub struct Schedule {
    clocks: Vec<KindClock>,
    /// Index of the clock whose request comes next.
    next: usize,
}

#[derive(Clone)]
struct KindClock {
    /// Kind of the next request, if known.
    kind: Option<Kind>,
    clock: ArrivalClock,
    next_ns: u64,
}

impl Schedule {
    /// Arrivals at `rate_per_s`, or of reads, writes and trims at a rate of their own each; a kind without one has none.
    ///
    /// # Errors
    /// A rate that no clock can have.
    pub fn new(
        rate_per_s: f64,
        rates_per_s: Option<[f64; 3]>,
        process: ArrivalProcess,
        seed: u64,
    ) -> Result<Schedule, WorkloadError> {
        let rates: Vec<(Option<Kind>, f64)> = match rates_per_s {
            None => vec![(None, rate_per_s)],
            Some(rates) => Kind::ALL.into_iter().map(Some).zip(rates).filter(|(_, rate)| *rate > 0.0).collect(),
        };
        let clocks = rates.into_iter().map(|(kind, rate_per_s)| {
            // Kinds come independently of each other.
            let seed = seed.wrapping_add(kind.map_or(0, |kind| kind as u64 + 1));
            let mut clock = ArrivalClock::new(rate_per_s, process, seed)?;
            let next_ns = clock.next_ns();
            Ok(KindClock { kind, clock, next_ns })
        });
        let mut schedule = Schedule { clocks: clocks.collect::<Result<_, WorkloadError>>()?, next: 0 };
        schedule.choose();
        Ok(schedule)
    }

    /// When the next arrives.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.clocks[self.next].next_ns
    }

    /// Kind of the next request, if known.
    #[inline]
    pub fn next_kind(&self) -> Option<Kind> {
        self.clocks[self.next].kind
    }

    /// Advances past the next arrival.
    #[inline]
    pub fn advance(&mut self) {
        let arrived = &mut self.clocks[self.next];
        arrived.next_ns = arrived.clock.next_ns();
        if self.clocks.len() > 1 {
            self.choose();
        }
    }

    fn choose(&mut self) {
        let clocks = self.clocks.iter().enumerate();
        let earliest = clocks.min_by_key(|(_, one)| one.next_ns).expect("a rate is above 0");
        self.next = earliest.0;
    }
}

impl Clone for Schedule {
    fn clone(&self) -> Self {
        Schedule { clocks: self.clocks.clone(), next: self.next }
    }

    /// Into the memory that is there: loops copy schedules at arrivals.
    #[inline]
    fn clone_from(&mut self, source: &Self) {
        self.clocks.clone_from(&source.clocks);
        self.next = source.next;
    }
}
