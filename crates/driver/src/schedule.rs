//! [`Schedule`]: arrivals of an open loop, with one common rate or a separate rate for each kind of request.

use headstack_workload::{ArrivalClock, ArrivalProcess, Kind, WorkloadError};

/// Arrivals still to come.
pub struct Schedule {
    clocks: Vec<KindClock>,
    /// Index of the clock with the next arrival.
    next: usize,
}

#[derive(Clone)]
struct KindClock {
    /// Kind of the clock's requests; `None` if all kinds share the clock.
    kind: Option<Kind>,
    clock: ArrivalClock,
    next_ns: u64,
}

impl Schedule {
    /// Creates a schedule with arrivals at `rate_per_s`, or at separate rates for reads, writes and trims. A kind with
    /// rate 0 never arrives.
    ///
    /// # Errors
    /// Returns an error if the clock cannot represent a rate.
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
            // Each kind arrives independently of the others.
            let seed = seed.wrapping_add(kind.map_or(0, |kind| kind as u64 + 1));
            let mut clock = ArrivalClock::new(rate_per_s, process, seed)?;
            let next_ns = clock.next_ns();
            Ok(KindClock { kind, clock, next_ns })
        });
        let mut schedule = Schedule { clocks: clocks.collect::<Result<_, WorkloadError>>()?, next: 0 };
        schedule.choose();
        Ok(schedule)
    }

    /// Returns the time of the next arrival.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.clocks[self.next].next_ns
    }

    /// Returns the kind of the next request, if the schedule determines it.
    #[inline]
    pub fn next_kind(&self) -> Option<Kind> {
        self.clocks[self.next].kind
    }

    /// Advances to the next arrival.
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
        let earliest = clocks.min_by_key(|(_, one)| one.next_ns).expect("at least one rate is above 0");
        self.next = earliest.0;
    }
}

impl Clone for Schedule {
    fn clone(&self) -> Self {
        Schedule { clocks: self.clocks.clone(), next: self.next }
    }

    /// Copies in place and reuses allocated memory, because loops copy schedules at each arrival.
    #[inline]
    fn clone_from(&mut self, source: &Self) {
        self.clocks.clone_from(&source.clocks);
        self.next = source.next;
    }
}
