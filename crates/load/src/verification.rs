//! [`Verification`]: the expected data of targets whose writes carry stamps. The threads and runs that use these
//! targets share it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstack_jobfiles::Verify;
use headstack_result::RunResult;

use crate::LoadError;
use crate::integrity::{Layout, Ledger, Stamper};
use crate::job::{Job, common_divisor};
use crate::recognise::recognise;
use crate::target::{Target, TargetKind};

/// Location of a target's ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LedgerPlace {
    /// In memory; it is lost when the process ends.
    #[default]
    Memory,
    /// In a file that must not exist yet. With several targets, the second one's file has `.1` appended, and so on.
    New(PathBuf),
    /// In the file of an earlier run, whose data are still on the target.
    Existing(PathBuf),
}

/// The allowed contents of each verified target.
pub struct Verification {
    opened: Vec<OpenedBasis>,
}

struct OpenedBasis {
    /// The target, kept open so that its address is not reused.
    target: Arc<Target>,
    basis: Basis,
}

/// Basis for checking the reads of a target.
#[derive(Debug)]
pub(crate) enum Basis {
    /// A ledger, which also records writes.
    Ledger(Stamper),
    /// Only the stamps that an earlier run left.
    Stamps {
        /// Layout of that run.
        layout: Layout,
        /// Number of that run.
        run: u64,
    },
}

impl Basis {
    /// Returns the layout of the target.
    pub(crate) fn layout(&self) -> Layout {
        match self {
            Basis::Ledger(stamper) => stamper.ledger().layout(),
            Basis::Stamps { layout, .. } => *layout,
        }
    }
}

impl Verification {
    /// Creates the verification for `jobs` of one run, or of several consecutive runs; `None` if no job verifies.
    ///
    /// A target's unit is the greatest common divisor of all lengths and alignments of the jobs that verify it. Jobs
    /// that only check use the existing ledger, or the stamps on the target if there is no ledger.
    ///
    /// # Errors
    /// Returns an error if a ledger cannot be created or opened, or does not match the target and lengths; if a target
    /// stores nothing; if jobs write without stamps while others verify; if jobs both check and write; or if there are
    /// no stamps to check.
    pub fn of_jobs(jobs: &[&Job], place: &LedgerPlace) -> Result<Option<Verification>, LoadError> {
        if jobs.iter().all(|job| job.verify == Verify::No) {
            return Ok(None);
        }
        // Checked first, so that an impossible run leaves no ledger behind.
        jobs.iter().try_for_each(|job| job.check())?;
        let mut requirements: Vec<Requirements> = Vec::new();
        for job in jobs.iter().filter(|job| job.verify != Verify::No) {
            for target in &job.targets {
                let stamps = job.verify != Verify::Check;
                match requirements.iter_mut().find(|one| Arc::ptr_eq(&one.target, target)) {
                    Some(one) => {
                        one.unit_bytes = common_divisor(one.unit_bytes, job.unit_bytes()?);
                        one.stamps |= stamps;
                    }
                    None => requirements.push(Requirements {
                        target: Arc::clone(target),
                        unit_bytes: job.unit_bytes()?,
                        stamps,
                    }),
                }
            }
        }
        for job in jobs.iter().filter(|job| job.writes()) {
            let is_asked = |target: &&Arc<Target>| requirements.iter().any(|one| Arc::ptr_eq(&one.target, target));
            let refused = |message| Err(LoadError::Job { job: job.name.clone(), message });
            match (job.verify, job.targets.iter().find(is_asked)) {
                (Verify::Check, _) => {
                    return refused("verifies existing data and writes; use only reads".into());
                }
                (Verify::No, Some(target)) => {
                    let name = target.name();
                    return refused(format!(
                        "writes without stamps to {name}, which other jobs verify; all jobs must verify"
                    ));
                }
                _ => {}
            }
        }
        Verification::new(requirements, place)
    }

    /// Creates the verification for a trace or scenario, whose requests may have any number of blocks.
    ///
    /// # Errors
    /// Returns the errors of [`of_jobs`](Self::of_jobs).
    pub fn of_blocks(targets: &[Arc<Target>], place: &LedgerPlace) -> Result<Verification, LoadError> {
        let block_bytes = Target::common_block_bytes(targets);
        let requirements = targets.iter().map(|target| Requirements {
            target: Arc::clone(target),
            unit_bytes: block_bytes,
            stamps: true,
        });
        Ok(Verification::new(requirements.collect(), place)?.unwrap_or(Verification { opened: Vec::new() }))
    }

    fn new(requirements: Vec<Requirements>, place: &LedgerPlace) -> Result<Option<Verification>, LoadError> {
        let opened = requirements.into_iter().enumerate().map(|(index, one)| one.open(&place.of(index)));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        Ok(if opened.is_empty() { None } else { Some(Verification { opened }) })
    }

    /// Returns what the reads of a target are checked against; `None` if the target is not verified.
    pub(crate) fn basis(&self, target: &Arc<Target>) -> Option<&Basis> {
        self.opened.iter().find(|opened| Arc::ptr_eq(&opened.target, target)).map(|opened| &opened.basis)
    }

    /// Returns the targets that have a ledger, with their ledgers.
    pub(crate) fn ledgers(&self) -> impl Iterator<Item = (&Arc<Target>, &Ledger)> {
        self.opened.iter().filter_map(|opened| match &opened.basis {
            Basis::Ledger(stamper) => Some((&opened.target, stamper.ledger())),
            Basis::Stamps { .. } => None,
        })
    }
}

/// Starts a run, with or without verification.
///
/// # Errors
/// Returns an error if there is no room for a ledger's first page.
pub(crate) fn begin(opened: Option<&Verification>) -> Result<(), LoadError> {
    opened.map_or(Ok(()), |opened| opened.ledgers().try_for_each(|(_, ledger)| ledger.begin()))
}

/// Ends a run. If requests are still in flight, its ledgers are only as valid as after a power loss.
pub(crate) fn end(opened: Option<&Verification>, result: &mut RunResult) {
    let is_at_rest = result.checks.iter().all(|check| check.passed);
    for (target, ledger) in opened.into_iter().filter(|_| is_at_rest).flat_map(Verification::ledgers) {
        if let Err(error) = ledger.end() {
            result.notes.push(format!("{}: its ledger is not on stable storage: {error}", target.name()));
        }
    }
}

/// Requirements of the verifying jobs on a target.
struct Requirements {
    target: Arc<Target>,
    unit_bytes: u32,
    stamps: bool,
}

impl Requirements {
    fn open(self, place: &LedgerPlace) -> Result<OpenedBasis, LoadError> {
        if self.target.kind() == TargetKind::Null {
            return Err(refused(&self.target, "stores no data to verify"));
        }
        let sector_bytes = Target::common_block_bytes(std::slice::from_ref(&self.target));
        let basis = match place {
            LedgerPlace::Existing(path) => Basis::Ledger(Stamper::resume(open_ledger(path, &self.target)?)?),
            LedgerPlace::Memory if !self.stamps => {
                let Some((layout, run)) = recognise(&self.target)? else {
                    return Err(refused(&self.target, "has no stamps at its start or at 1024 offsets spread over it"));
                };
                Basis::Stamps { layout, run }
            }
            LedgerPlace::Memory | LedgerPlace::New(_) => {
                let layout = Layout::new(self.target.whole_bytes(sector_bytes), self.unit_bytes, sector_bytes)
                    .map_err(|error| refused(&self.target, &error.to_string()))?;
                let path = if let LedgerPlace::New(path) = place { Some(path.as_path()) } else { None };
                Basis::Ledger(Stamper::new(layout, path)?)
            }
        };
        let unit_bytes = basis.layout().unit_bytes();
        if !self.unit_bytes.is_multiple_of(unit_bytes) {
            let message = format!(
                "has stamps in units of {unit_bytes} bytes; lengths and offsets are multiples of {}, not of whole units",
                self.unit_bytes
            );
            return Err(refused(&self.target, &message));
        }
        Ok(OpenedBasis { target: self.target, basis })
    }
}

/// Opens the ledger that an earlier run on this target left.
///
/// # Errors
/// Returns the errors of [`Ledger::open`], and an error if the ledger has another size.
pub(crate) fn open_ledger(path: &Path, target: &Target) -> Result<Ledger, LoadError> {
    let ledger = Ledger::open(path)?;
    let (span_bytes, capacity_bytes) = (ledger.layout().span_bytes(), target.capacity_bytes());
    if span_bytes > capacity_bytes || capacity_bytes - span_bytes >= u64::from(ledger.layout().sector_bytes()) {
        let message = format!("is for a target of {span_bytes} bytes, but {} has {capacity_bytes}", target.name());
        return Err(LoadError::Target { target: path.display().to_string(), message });
    }
    Ok(ledger)
}

impl LedgerPlace {
    /// Returns the place of the ledger of one of several targets.
    fn of(&self, index: usize) -> LedgerPlace {
        let numbered = |path: &Path| match index {
            0 => path.to_owned(),
            _ => {
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".{index}"));
                PathBuf::from(name)
            }
        };
        match self {
            LedgerPlace::Memory => LedgerPlace::Memory,
            LedgerPlace::New(path) => LedgerPlace::New(numbered(path)),
            LedgerPlace::Existing(path) => LedgerPlace::Existing(numbered(path)),
        }
    }
}

fn refused(target: &Target, message: &str) -> LoadError {
    LoadError::Target { target: target.name().to_owned(), message: message.to_owned() }
}
