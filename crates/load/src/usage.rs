//! [`Usage`]: processor use of a thread.

use std::mem::MaybeUninit;

use headstack_result::{Counter, Fact};

/// Processor time and context switches.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Time in user code, in ns.
    pub user_ns: u64,
    /// Time in the kernel, in ns.
    pub system_ns: u64,
    /// Context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Context switches because another thread got the processor.
    pub involuntary_switches: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults served from disk.
    pub major_faults: u64,
}

impl Usage {
    /// Returns the use of the calling thread since it began.
    pub fn of_this_thread() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the structure, which is valid if all zeros.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }

    fn zip(&mut self, other: &Usage, join: impl Fn(u64, u64) -> u64) {
        self.user_ns = join(self.user_ns, other.user_ns);
        self.system_ns = join(self.system_ns, other.system_ns);
        self.voluntary_switches = join(self.voluntary_switches, other.voluntary_switches);
        self.involuntary_switches = join(self.involuntary_switches, other.involuntary_switches);
        self.minor_faults = join(self.minor_faults, other.minor_faults);
        self.major_faults = join(self.major_faults, other.major_faults);
    }

    /// Returns the use since `before`.
    pub fn since(mut self, before: &Usage) -> Usage {
        self.zip(before, |after, before| after - before);
        self
    }

    /// Adds the use of another thread.
    pub fn add(&mut self, other: &Usage) {
        self.zip(other, |a, b| a + b);
    }

    /// Returns the use as counters of a result.
    pub fn counters(&self) -> Vec<Counter> {
        let named = [
            ("cpu_user_ns", self.user_ns),
            ("cpu_system_ns", self.system_ns),
            ("voluntary_switches", self.voluntary_switches),
            ("involuntary_switches", self.involuntary_switches),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
        ];
        named.map(|(name, value)| Counter { name: name.to_owned(), value }).to_vec()
    }

    /// Returns the use as facts of a stream.
    pub fn facts(&self) -> Vec<Fact> {
        self.counters().into_iter().map(|counter| Fact { name: counter.name, value: counter.value as f64 }).collect()
    }
}
