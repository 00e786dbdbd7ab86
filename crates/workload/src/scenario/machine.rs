//! [`Machine`]: the clients of any kind of stream.

use super::access::AccessRun;
use super::boot::BootRun;
use super::database::DatabaseRun;
use super::prefill::PrefillRun;
use super::sequential::SequentialRun;
use super::step::{Facts, Step, Turn};
use super::transactions::TransactionsRun;
use super::video::VideoRun;
use super::web::WebRun;

/// State of the clients of one stream, or of all streams of the pool.
#[allow(clippy::large_enum_variant)] // There are only as many machines as streams.
pub(crate) enum Machine {
    Access(AccessRun),
    Web(WebRun),
    Boot(BootRun),
    Video(VideoRun),
    Transactions(TransactionsRun),
    Sequential(SequentialRun),
    Prefill(PrefillRun),
    Database(DatabaseRun),
}

impl Machine {
    pub(crate) fn clients(&self) -> u32 {
        match self {
            Machine::Access(run) => run.clients(),
            Machine::Web(run) => run.clients(),
            Machine::Boot(run) => run.clients(),
            Machine::Video(run) => run.clients(),
            Machine::Transactions(run) => run.clients(),
            Machine::Sequential(run) => run.clients(),
            Machine::Prefill(run) => run.clients(),
            Machine::Database(run) => run.clients(),
        }
    }

    /// Whether requests arrive at set times, however many are waiting.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Machine::Access(run) => run.is_open(),
            Machine::Web(_)
            | Machine::Boot(_)
            | Machine::Video(_)
            | Machine::Transactions(_)
            | Machine::Sequential(_)
            | Machine::Prefill(_)
            | Machine::Database(_) => false,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        match self {
            Machine::Access(run) => run.next(turn),
            Machine::Web(run) => run.next(turn),
            Machine::Boot(run) => run.next(turn),
            Machine::Video(run) => run.next(turn),
            Machine::Transactions(run) => run.next(turn),
            Machine::Sequential(run) => run.next(turn),
            Machine::Prefill(run) => run.next(turn),
            Machine::Database(run) => run.next(turn),
        }
    }

    /// Returns the next client whose wait for another client is over.
    pub(crate) fn take_woken(&mut self) -> Option<u32> {
        match self {
            Machine::Database(run) => run.take_woken(),
            Machine::Access(_)
            | Machine::Web(_)
            | Machine::Boot(_)
            | Machine::Video(_)
            | Machine::Transactions(_)
            | Machine::Sequential(_)
            | Machine::Prefill(_) => None,
        }
    }

    /// Resets the counts, except for boots and prefills, which are always measured from their start.
    pub(crate) fn start_measuring(&mut self) {
        match self {
            Machine::Web(run) => run.start_measuring(),
            Machine::Video(run) => run.start_measuring(),
            Machine::Transactions(run) => run.start_measuring(),
            Machine::Database(run) => run.start_measuring(),
            Machine::Access(_) | Machine::Boot(_) | Machine::Sequential(_) | Machine::Prefill(_) => {}
        }
    }

    /// Returns the facts for the measured part, which took `seconds` and ends at `now_ns`.
    pub(crate) fn facts(&self, seconds: f64, now_ns: u64) -> Facts {
        match self {
            Machine::Access(_) | Machine::Sequential(_) => Facts::Requests,
            Machine::Web(run) => run.facts(seconds),
            Machine::Boot(run) => run.facts(),
            Machine::Video(run) => run.facts(seconds, now_ns),
            Machine::Transactions(run) => run.facts(seconds),
            Machine::Prefill(run) => run.facts(),
            Machine::Database(run) => run.facts(seconds),
        }
    }
}
