//! [`Transactions`]: clients that think, compute and issue a few requests, like those of ServerBench.

use serde::{Deserialize, Serialize};

use super::access::{generator, workload};
use super::step::{Facts, Step, StreamSetup, Turn, check_count, io, mean_ns, per_second};
use crate::access::{AccessLine, Complaint};
use crate::addresses::Addresses;
use crate::arrivals::{Arrivals, Think};
use crate::generator::Generator;
use crate::quantity::duration_u64;
use crate::random::{Purpose, Random, seed_of};

/// Clients that run transactions in a closed loop: think time, processor time, then requests one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Number of clients.
    pub clients: u32,
    /// Think time before each transaction.
    #[serde(default)]
    pub think: Think,
    /// Processor time of each transaction, in ns.
    #[serde(default, rename = "cpu", with = "duration_u64")]
    pub cpu_ns: u64,
    /// Number of requests in a transaction.
    #[serde(default = "default_one")]
    pub requests: u32,
    /// Sizes, kinds and randomness of the requests.
    pub lines: Vec<AccessLine>,
    /// Distribution of random addresses.
    #[serde(default)]
    pub addresses: Addresses,
}

fn default_one() -> u32 {
    1
}

impl Transactions {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("clients", self.clients)?;
        check_count("requests", self.requests)?;
        let checked = workload(&self.lines, &self.addresses, Arrivals::default()).validate();
        checked.map_err(|error| (error.key, error.message))
    }
}

pub(crate) struct TransactionsRun {
    stream: u32,
    think: Think,
    cpu_ns: u64,
    requests: u32,
    generator: Generator,
    clients: Vec<Client>,
    transactions: u64,
    response_sum_ns: u128,
}

struct Client {
    random: Random,
    begun_ns: u64,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Think,
    Cpu,
    Requests(u32),
}

impl TransactionsRun {
    pub(crate) fn new(transactions: &Transactions, setup: &StreamSetup) -> Result<TransactionsRun, Complaint> {
        let Transactions { lines, addresses, .. } = transactions;
        let client = |index| Client {
            random: Random::new(seed_of(setup.seed, "client", index), Purpose::Think),
            begun_ns: 0,
            stage: Stage::Think,
        };
        Ok(TransactionsRun {
            stream: setup.stream,
            think: transactions.think,
            cpu_ns: transactions.cpu_ns,
            requests: transactions.requests,
            generator: generator(lines, addresses, Arrivals::default(), setup.span, setup.sector_bytes, setup.seed)?,
            clients: (0..transactions.clients).map(client).collect(),
            transactions: 0,
            response_sum_ns: 0,
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let client = &mut self.clients[turn.client as usize];
        loop {
            match client.stage {
                Stage::Think => {
                    client.stage = Stage::Cpu;
                    let think_ns = self.think.draw_ns(&mut client.random);
                    if think_ns > 0 {
                        return Step::Think { until_ns: turn.now_ns + think_ns };
                    }
                }
                Stage::Cpu => {
                    client.begun_ns = turn.now_ns;
                    client.stage = Stage::Requests(0);
                    if self.cpu_ns > 0 {
                        return Step::Cpu { busy_ns: self.cpu_ns };
                    }
                }
                Stage::Requests(_) if turn.in_flight > 0 => return Step::Await,
                Stage::Requests(issued) if issued < self.requests => {
                    client.stage = Stage::Requests(issued + 1);
                    return io(self.stream, self.generator.next());
                }
                Stage::Requests(_) => {
                    self.transactions += 1;
                    self.response_sum_ns += u128::from(turn.now_ns - client.begun_ns);
                    client.stage = Stage::Think;
                }
            }
        }
    }

    pub(crate) fn start_measuring(&mut self) {
        (self.transactions, self.response_sum_ns) = (0, 0);
    }

    pub(crate) fn facts(&self, seconds: f64) -> Facts {
        Facts::Transactions {
            transactions: self.transactions,
            transactions_per_s: per_second(self.transactions, seconds),
            mean_latency_ns: mean_ns(self.response_sum_ns, self.transactions),
        }
    }
}
