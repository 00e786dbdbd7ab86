//! [`Boot`]: a boot storm, in which guests start one after another and pass through phases until they have booted.

use serde::{Deserialize, Serialize};

use super::access::{generator, workload};
use super::range::parts;
use super::step::{Facts, GuestBoot, Step, StreamSetup, Turn, check_count, check_not_zero, io};
use crate::access::{AccessLine, Complaint, check_percent};
use crate::addresses::Addresses;
use crate::arrivals::{Arrivals, Think};
use crate::generator::Generator;
use crate::quantity::duration_u64;
use crate::random::{Purpose, Random, seed_of};
use crate::request::Kind;
use crate::span::Span;

/// Guests that boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Number of guests; each guest has an equal part of the range to itself.
    pub guests: u32,
    /// Time between the starts of two guests, in ns.
    #[serde(rename = "interval", with = "duration_u64")]
    pub interval_ns: u64,
    /// Image shared by linked clones; `None` if each guest has a full copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_image: Option<GoldenImage>,
    /// Phases of a guest's boot, in order.
    pub phases: Vec<Phase>,
}

/// The image that all guests read from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenImage {
    /// Size of the image in percent of the range. The image is at the start of the range.
    pub size_percent: f64,
    /// Share of a guest's reads that go to the image, in percent. All guests read the same parts in the same order.
    pub reads_percent: f64,
}

/// A phase of a boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name of the phase, for display.
    #[serde(default)]
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Queue depth.
    #[serde(default = "default_one")]
    pub queue_depth: u32,
    /// Think time before each request.
    #[serde(default)]
    pub think: Think,
    /// Processor time before each request, in ns.
    #[serde(default, rename = "cpu", with = "duration_u64")]
    pub cpu_ns: u64,
    /// Sizes, kinds and randomness of the requests.
    pub lines: Vec<AccessLine>,
    /// Distribution of random addresses.
    #[serde(default)]
    pub addresses: Addresses,
}

fn default_one() -> u32 {
    1
}

impl Boot {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("guests", self.guests)?;
        if let Some(image) = self.golden_image {
            check_percent("golden_image.reads_percent", image.reads_percent)?;
            if !(image.size_percent > 0.0 && image.size_percent < 100.0) {
                let message = format!("{} is out of range; must be above 0 and below 100", image.size_percent);
                return Err(("golden_image.size_percent".to_owned(), message));
            }
        }
        if self.phases.is_empty() {
            return Err(("phases".to_owned(), "no phases; at least one is required".to_owned()));
        }
        for (index, phase) in self.phases.iter().enumerate() {
            phase.validate().map_err(|(key, message)| (format!("phases[{index}].{key}"), message))?;
        }
        Ok(())
    }
}

impl Phase {
    fn validate(&self) -> Result<(), Complaint> {
        check_not_zero("requests", self.requests, "a phase has at least one request")?;
        check_count("queue_depth", self.queue_depth)?;
        let checked = workload(&self.lines, &self.addresses, Arrivals::default()).validate();
        checked.map_err(|error| (error.key, error.message))
    }

    /// Returns the lines of the phase with reads only.
    fn reads(&self) -> Vec<AccessLine> {
        let share = |line: &AccessLine| line.share_percent * line.read_percent / 100.0;
        let sum: f64 = self.lines.iter().map(share).sum();
        let reads = self.lines.iter().filter(|line| line.read_percent > 0.0);
        reads
            .map(|line| AccessLine { share_percent: share(line) / sum * 100.0, read_percent: 100.0, ..line.clone() })
            .collect()
    }
}

pub(crate) struct BootRun {
    stream: u32,
    phases: Vec<Phase>,
    /// Threshold for a 32-bit random number, below which a read goes to the golden image.
    golden_below: u64,
    guests: Vec<Guest>,
}

struct Guest {
    boot: GuestBoot,
    runs: Vec<PhaseRun>,
    random: Random,
    phase: usize,
    issued: u64,
    stage: Stage,
}

/// Requests of a phase to the guest's own part and, if the phase reads it, to the golden image.
struct PhaseRun {
    own: Generator,
    golden: Option<Generator>,
}

#[derive(Clone, Copy)]
enum Stage {
    Off,
    Think,
    Cpu,
    Issue,
}

impl BootRun {
    pub(crate) fn new(boot: &Boot, setup: &StreamSetup) -> Result<BootRun, Complaint> {
        let span = setup.span;
        let sector = u64::from(setup.sector_bytes);
        let image_bytes = boot
            .golden_image
            .map_or(0, |image| (span.length_bytes as f64 * image.size_percent / 100.0) as u64 / sector * sector);
        let image = Span { length_bytes: image_bytes, ..span };
        let rest = Span { start_bytes: span.start_bytes + image_bytes, length_bytes: span.length_bytes - image_bytes };
        let phase_run = |index: usize, phase: &Phase, own: Span, guest: u32| {
            // Each phase has its own random numbers. Those for the image are the same for all guests.
            let seed = seed_of(setup.seed, "phase", index as u32);
            let arrivals = Arrivals::Closed { queue_depth: 1, think: phase.think };
            let draw = |lines: &[AccessLine], span: Span, seed: u64| {
                generator(lines, &phase.addresses, arrivals, span, setup.sector_bytes, seed)
                    .map_err(|(key, message)| (format!("phases[{index}].{key}"), message))
            };
            let reads = phase.reads();
            let has_golden = image_bytes > 0 && !reads.is_empty();
            Ok(PhaseRun {
                own: draw(&phase.lines, own, seed_of(seed, "guest", guest))?,
                golden: has_golden.then(|| draw(&reads, image, seed)).transpose()?,
            })
        };
        let mut guests = Vec::with_capacity(boot.guests as usize);
        for (own, guest) in parts(rest, boot.guests, setup.sector_bytes).into_iter().zip(0..) {
            let runs = boot.phases.iter().enumerate().map(|(index, phase)| phase_run(index, phase, own, guest));
            guests.push(Guest {
                boot: GuestBoot { started_ns: boot.interval_ns.saturating_mul(u64::from(guest)), booted_ns: None },
                runs: runs.collect::<Result<_, Complaint>>()?,
                random: Random::new(seed_of(setup.seed, "guest", guest), Purpose::Choices),
                phase: 0,
                issued: 0,
                stage: Stage::Off,
            });
        }
        let golden_percent = boot.golden_image.map_or(0.0, |image| image.reads_percent);
        Ok(BootRun {
            stream: setup.stream,
            phases: boot.phases.clone(),
            golden_below: (golden_percent / 100.0 * (1u64 << 32) as f64).round() as u64,
            guests,
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.guests.len() as u32
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let guest = &mut self.guests[turn.client as usize];
        loop {
            let Some(phase) = self.phases.get(guest.phase) else {
                guest.boot.booted_ns.get_or_insert(turn.now_ns);
                return Step::Done;
            };
            if guest.issued == phase.requests {
                if turn.in_flight > 0 {
                    return Step::Await;
                }
                guest.phase += 1;
                guest.issued = 0;
                continue;
            }
            if turn.in_flight == phase.queue_depth {
                return Step::Await;
            }
            let run = &mut guest.runs[guest.phase];
            match guest.stage {
                Stage::Off => {
                    guest.stage = Stage::Think;
                    return Step::Think { until_ns: guest.boot.started_ns };
                }
                Stage::Think => {
                    guest.stage = Stage::Cpu;
                    let think_ns = run.own.think_ns();
                    if think_ns > 0 {
                        return Step::Think { until_ns: turn.now_ns + think_ns };
                    }
                }
                Stage::Cpu => {
                    guest.stage = Stage::Issue;
                    if phase.cpu_ns > 0 {
                        return Step::Cpu { busy_ns: phase.cpu_ns };
                    }
                }
                Stage::Issue => {
                    guest.stage = Stage::Think;
                    guest.issued += 1;
                    let own = run.own.next();
                    let request = match &mut run.golden {
                        Some(golden) if own.kind == Kind::Read && guest.random.bits() >> 32 < self.golden_below => {
                            golden.next()
                        }
                        _ => own,
                    };
                    return io(self.stream, request);
                }
            }
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts::Boot { guests: self.guests.iter().map(|guest| guest.boot).collect() }
    }
}
