//! Divides a load among several threads.

use headstack_jobfiles::Limits;
use headstack_workload::{Arrivals, RunLength, Span, Workload, WorkloadError};

use crate::LoadError;
use crate::job::Job;

/// Difference between the seeds of successive threads. The first thread has the seed of a simulation of the same job.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Job {
    /// Divides the job among `threads` threads, which share queue depth, rate and length. With sequential requests,
    /// each thread gets its own part of the range, so that threads do not read each other's data.
    ///
    /// # Errors
    /// Returns an error if there are no threads, or if the queue depth is below the number of threads.
    ///
    /// # Panics
    /// Panics if its targets are beyond the end of the address space.
    pub fn shared(self, threads: u32) -> Result<Vec<Job>, LoadError> {
        let refused = |message: String| WorkloadError { key: "threads".to_owned(), message };
        if threads == 0 {
            return Err(refused("0 is not allowed; use 1 or more".to_owned()).into());
        }
        if let Arrivals::Closed { queue_depth, .. } = self.workload.arrivals
            && queue_depth < threads
            && queue_depth > 0
        {
            let message =
                format!("{threads} threads for queue depth {queue_depth}; use at most one thread per request");
            return Err(refused(message).into());
        }
        if threads == 1 {
            return Ok(vec![self]);
        }
        let is_sequential = self.workload.specification.lines.iter().any(|line| line.random_percent < 100.0);
        let part_of = |thread: u32| if is_sequential { Some(self.part(threads, thread)) } else { self.span };
        let job = |thread: u32| Job {
            span: part_of(thread),
            workload: share_of_workload(&self.workload, threads, thread),
            limits: share_of_limits(&self.limits, threads, thread),
            slots: (self.slots / threads).max(1),
            seed: self.seed.wrapping_add(u64::from(thread).wrapping_mul(SEED_STEP)),
            ..self.clone()
        };
        Ok((0..threads).map(job).collect())
    }

    /// Returns a thread's part of the range, in whole blocks.
    fn part(&self, threads: u32, thread: u32) -> Span {
        let capacity_bytes = self.targets.iter().map(|target| target.capacity_bytes()).sum();
        let whole = self.span.unwrap_or(Span { start_bytes: 0, length_bytes: capacity_bytes });
        let block_bytes = self.targets.iter().map(|target| u64::from(target.block_bytes())).max().unwrap_or(1).max(1);
        let length_bytes = whole.length_bytes / u64::from(threads) / block_bytes * block_bytes;
        Span { start_bytes: whole.start_bytes + u64::from(thread) * length_bytes, length_bytes }
    }
}

/// Returns a thread's share of a number. The first threads take the remainder.
fn share(whole: u64, threads: u32, thread: u32) -> u64 {
    let (threads, thread) = (u64::from(threads), u64::from(thread));
    debug_assert!(thread < threads, "thread {thread} of {threads}");
    whole / threads + u64::from(thread < whole % threads)
}

fn share_of_workload(whole: &Workload, threads: u32, thread: u32) -> Workload {
    let mut workload = whole.clone();
    match &mut workload.arrivals {
        Arrivals::Closed { queue_depth, .. } => {
            *queue_depth = u32::try_from(share(u64::from(*queue_depth), threads, thread)).expect("a share is smaller");
        }
        Arrivals::Open { rate_per_s, .. } => *rate_per_s /= f64::from(threads),
    }
    workload.warm_up.requests = share(workload.warm_up.requests, threads, thread);
    match &mut workload.run_length {
        RunLength::Requests(requests) => *requests = share(*requests, threads, thread),
        RunLength::TimeNs(_) | RunLength::Confidence { .. } => {}
    }
    workload
}

/// Returns a thread's share of the limits. The time is the same for all threads, and every limit that is set remains
/// set.
fn share_of_limits(whole: &Limits, threads: u32, thread: u32) -> Limits {
    let of = |limit: Option<u64>| limit.map(|limit| share(limit, threads, thread).max(1));
    Limits { requests: of(whole.requests), transfers: of(whole.transfers), bytes: of(whole.bytes), ..*whole }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headstack_jobfiles::{Bounds, Content, Errors, Verify};

    use super::*;
    use crate::engine::EngineKind;
    use crate::target::Target;

    fn job(keys: &str) -> Job {
        let text = format!("name = \"w\"\n{keys}\n");
        Job {
            name: "w".to_owned(),
            targets: vec![Arc::new(Target::null(1 << 20))],
            span: None,
            workload: Workload::from_toml("w.toml", &text).unwrap_or_else(|error| panic!("{error}")),
            limits: Limits { requests: Some(10), bytes: Some(2), time_ns: Some(7), ..Limits::default() },
            engine: EngineKind::Auto,
            slots: 8,
            start_delay_ns: 0,
            seed: 5,
            verify: Verify::No,
            invalidates_every_bytes: None,
            target_bytes_max: u64::MAX,
            rates_per_s: None,
            flow: None,
            errors: Errors::default(),
            content: Content::default(),
            bounds: Bounds::default(),
            flushes_at_end: false,
            times_handing_over: false,
            zones: None,
        }
    }

    const RANDOM: &str = "arrivals.closed.queue_depth = 8\nwarm_up.requests = 4\nrun_length.requests = 11\n\
                          [[lines]]\nsize = \"4KiB\"\nread_percent = 100\nrandom_percent = 100";

    fn queue_depth(job: &Job) -> u32 {
        match job.workload.arrivals {
            Arrivals::Closed { queue_depth, .. } => queue_depth,
            Arrivals::Open { .. } => 0,
        }
    }

    #[test]
    fn nothing_of_a_load_is_lost_among_threads() {
        let shares = job(RANDOM).shared(3).unwrap();
        assert_eq!(shares.iter().map(queue_depth).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(shares.iter().map(|one| one.workload.warm_up.requests).collect::<Vec<_>>(), [2, 1, 1]);
        let lengths: Vec<_> = shares.iter().map(|one| one.workload.run_length).collect();
        assert_eq!(lengths, [RunLength::Requests(4), RunLength::Requests(4), RunLength::Requests(3)]);
        assert_eq!(shares.iter().map(|one| one.limits.requests).collect::<Vec<_>>(), [Some(4), Some(3), Some(3)]);
        // A limit below the number of threads is still 1 for each thread.
        assert_eq!(shares.iter().map(|one| one.limits.bytes).collect::<Vec<_>>(), [Some(1); 3]);
        assert!(shares.iter().all(|one| one.limits.time_ns == Some(7) && one.slots == 2 && one.span.is_none()));
        assert_eq!(shares[0].seed, 5);
        assert!(shares[1].seed != shares[2].seed && shares[1].seed != 5);
    }

    #[test]
    fn threads_with_sequential_requests_have_a_part_each() {
        let mut whole = job(&RANDOM.replace("random_percent = 100", "random_percent = 50"));
        whole.span = Some(Span { start_bytes: 4096, length_bytes: 10_000 });
        let spans: Vec<_> = whole.shared(3).unwrap().into_iter().map(|one| one.span.unwrap()).collect();
        let block_bytes = u64::from(Target::null(1 << 20).block_bytes()).max(1);
        let length_bytes = 10_000 / 3 / block_bytes * block_bytes;
        for (thread, span) in spans.into_iter().enumerate() {
            assert_eq!(span, Span { start_bytes: 4096 + thread as u64 * length_bytes, length_bytes });
        }
    }

    #[test]
    fn a_rate_is_divided_and_one_thread_has_all() {
        let open = RANDOM.replace("closed.queue_depth = 8", "open = { rate_per_s = 90, process = \"poisson\" }");
        for one in job(&open).shared(3).unwrap() {
            assert!(matches!(one.workload.arrivals, Arrivals::Open { rate_per_s, .. } if rate_per_s == 30.0));
        }
        let [alone] = <[Job; 1]>::try_from(job(RANDOM).shared(1).unwrap()).ok().unwrap();
        assert_eq!((alone.workload.clone(), alone.slots), (job(RANDOM).workload, 8));
    }

    #[test]
    fn threads_without_a_request_are_refused() {
        let error_of = |threads| job(RANDOM).shared(threads).err().unwrap().to_string();
        assert_eq!(error_of(9), "threads: 9 threads for queue depth 8; use at most one thread per request");
        assert_eq!(error_of(0), "threads: 0 is not allowed; use 1 or more");
    }
}
