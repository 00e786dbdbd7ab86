//! Runs a phase of loads on trees, from formatting to the result.

use std::path::Path;
use std::sync::{Arc, Mutex};

use headstack_jobfiles::trees::{Format, Operation, Tree, TreePhase};
use headstack_result::RunResult;

use super::format::{self, ProgressCallback};
use super::pace::Paces;
use super::phase_result::{judged_alone, phase_result};
use super::pick::Picker;
use super::place::Place;
use super::shape::{SECTOR_BYTES, Shape};
use super::spec::TreeSpec;
use super::states::States;
use super::worker::{Common, Grown, ThreadResults, Worker};
use crate::clock::Time;
use crate::synchronized_start::Start;
use crate::threads::{WorkerContext, run_workers};
use crate::{LoadError, Progress};

/// Creates or inspects the trees, runs the loads on them, and checks their data if requested. `progress` receives the
/// state of all steps and returns whether to continue.
///
/// # Errors
/// Returns an error if headstack did not create a directory, if a tree differs from what an earlier run left, or if
/// something cannot be created. Failures under load are only counted.
pub fn play_trees(spec: &TreeSpec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    let TreeSpec { phase, seed, .. } = spec;
    spec.check()?;
    let (mut notes, mut method_notes) = (Vec::new(), Vec::new());
    let began = std::time::Instant::now();
    let trees = with_progress(progress, |goes| {
        let places = accepted(spec)?;
        let trees = phase.trees.iter().zip(places);
        trees
            .map(|(tree, place)| grown(spec, tree, place, (&mut notes, &mut method_notes), goes))
            .collect::<Result<Vec<_>, _>>()
    })?;
    if phase.format != Format::No {
        let files: u64 = trees.iter().map(|tree| tree.shape.files()).sum();
        method_notes.push(format!("the trees, {files} files, were prepared in {:.2} s", began.elapsed().as_secs_f64()));
    }
    let paces = Paces::new(phase, *seed)?;
    let (dones, ran) = load(spec, &trees, &paces, progress)?;
    let mut result = phase_result(spec, &paces, dones, &ran, notes);
    result.method_notes = method_notes;
    if phase.verify && !phase.loads.is_empty() {
        let checked = with_progress(progress, |goes| {
            trees.iter().map(|tree| format::check(tree, false, goes)).collect::<Result<Vec<_>, _>>()
        });
        let integrity = result.integrity.get_or_insert_default();
        match checked {
            Ok(all) => {
                let mut judged = super::contents::Judged { report: std::mem::take(integrity) };
                all.into_iter().for_each(|one| judged.merge(one));
                *integrity = judged.report;
            }
            Err(LoadError::Stopped) => integrity.cannot_tell.push("the check at the end was stopped".to_owned()),
            Err(error) => return Err(error),
        }
    }
    Ok(result)
}

/// Runs `work` so that it can report to `progress`, which must run on the calling thread.
fn with_progress<T: Send>(
    progress: &mut dyn FnMut(&Progress) -> bool,
    work: impl FnOnce(ProgressCallback) -> Result<T, LoadError> + Send,
) -> Result<T, LoadError> {
    let state = Mutex::new((0.0, true));
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        let seen = &state;
        let worker = scope.spawn(move || {
            work(&|share| {
                let mut seen = seen.lock().expect("the lock is not poisoned");
                seen.0 = share;
                seen.1
            })
        });
        while !worker.is_finished() {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            let share = state.lock().expect("the lock is not poisoned").0;
            let now = Progress { elapsed_ns: began.elapsed().as_nanos() as u64, share, ..Progress::default() };
            let goes_on = progress(&now);
            state.lock().expect("the lock is not poisoned").1 &= goes_on;
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Verifies the data that a run left on the tree in `anchor`, using its ledger.
///
/// # Errors
/// Returns an error if the directory has no tree, if the ledger belongs to another tree, or if something cannot be
/// read.
pub fn verify_tree(
    anchor: &str,
    ledger: &Path,
    power_was_lost: bool,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, LoadError> {
    let place = Place::of(anchor)?;
    let shape = place.shape().ok_or_else(|| place.refused("has more than 2^64 files"))?;
    if !place.is_stamped() {
        return Err(place.refused("has files without stamps; use validate=yes to write them"));
    }
    if !ledger.exists() {
        return Err(LoadError::Target {
            target: ledger.display().to_string(),
            message: "not found; set the ledger of the run with --ledger".to_owned(),
        });
    }
    let (states, _) = States::in_file(ledger, &place, &shape)?;
    let tree = Grown { place, shape, states };
    let began = std::time::Instant::now();
    let judged = with_progress(progress, |goes| format::check(&tree, power_was_lost, goes))?;
    Ok(judged_alone(&tree, judged, began.elapsed()))
}

/// Returns whether the phase removes the tree of an earlier run.
fn removes(phase: &TreePhase) -> bool {
    matches!(phase.format, Format::Anew | Format::Folders | Format::Clean)
}

/// Opens the places of all trees, and checks each of them before any tree is created. If a place is refused, those
/// created for the other trees are removed.
fn accepted(spec: &TreeSpec) -> Result<Vec<Place>, LoadError> {
    let TreeSpec { phase, seed, .. } = spec;
    let mut places = Vec::new();
    for tree in &phase.trees {
        let refused = match Place::open(tree, *seed, phase.verify) {
            Ok(place) => {
                let fits = removes(phase) && !place.is_new() || place.is_of(tree, *seed, phase.verify);
                places.push(place);
                if fits {
                    continue;
                }
                let message =
                    "has a tree of another shape, seed or stamp; use format=yes to create it again".to_owned();
                LoadError::Target { target: tree.anchor.clone(), message }
            }
            Err(error) => error,
        };
        places.into_iter().for_each(Place::abandon);
        return Err(refused);
    }
    Ok(places)
}

/// Prepares a tree for the loads of the phase.
fn grown(
    spec: &TreeSpec,
    tree: &Tree,
    mut place: Place,
    (notes, method_notes): (&mut Vec<String>, &mut Vec<String>),
    goes: ProgressCallback,
) -> Result<Grown, LoadError> {
    let TreeSpec { phase, seed, .. } = spec;
    let (seed, stamped) = (*seed, phase.verify);
    let uncounted =
        || LoadError::Target { target: tree.anchor.clone(), message: "has more than 2^64 files".to_owned() };
    let removes = removes(phase);
    if removes && !place.is_new() {
        let old = place.shape().ok_or_else(uncounted)?;
        let removed = format::remove(&place, &old, goes)?;
        if removed.files + removed.folders > 0 {
            method_notes.push(format!(
                "{}: removed {} files, {} directories",
                place.name(),
                removed.files,
                removed.folders
            ));
        }
        place.become_of(tree, seed, stamped)?;
    }
    let shape = Shape::new(tree, seed, stamped).ok_or_else(uncounted)?;
    if stamped && tree.sizes.iter().any(|(bytes, _)| bytes % SECTOR_BYTES != 0) {
        notes.push(format!("{}: sizes are rounded up to whole sectors, each of which carries a stamp", tree.name));
    }
    let (states, is_known) = match spec.ledger_of(tree) {
        Some(path) => States::in_file(&path, &place, &shape)?,
        None => {
            let states = States::in_memory(&shape, place.generation());
            (states.map_err(|source| place.failed("reserve memory for its members", source))?, false)
        }
    };
    let grown = Grown { place, shape, states };
    match (removes, is_known) {
        (true, _) => grown.states.forget(&grown.shape, grown.place.generation()),
        (false, true) => grown.states.take_up(&grown.shape),
        (false, false) => format::look(&grown, goes)?,
    }
    match phase.format {
        Format::Anew | Format::Restart => format::make(&grown, true, stamped, goes)?,
        Format::Folders => format::make(&grown, false, stamped, goes)?,
        Format::No | Format::Clean => {}
    }
    Ok(grown)
}

fn load(
    spec: &TreeSpec,
    trees: &[Grown],
    paces: &Paces,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Vec<(usize, ThreadResults)>, crate::measured::Ran), LoadError> {
    let TreeSpec { phase, seed, .. } = spec;
    let pickers: Vec<Picker> = phase
        .loads
        .iter()
        .map(|load| {
            let shape = &trees[load.tree].shape;
            let of_folders = matches!(load.operation, Operation::Mkdir | Operation::Rmdir);
            Picker::new(load.files, if of_folders { shape.folders() } else { shape.used() })
        })
        .collect();
    let threads = phase.loads.iter().enumerate().flat_map(|(number, load)| (0..load.threads).map(move |_| number));
    let works = threads.enumerate().map(|(thread, number)| {
        let picker = &pickers[number];
        move |context: &WorkerContext| -> Result<(usize, ThreadResults), LoadError> {
            let clock = context.ready();
            paces.begin(clock.now_ns(), phase.warm_up_ns.saturating_add(phase.time_ns));
            let common = Common {
                trees,
                paces,
                warm_up_ns: phase.warm_up_ns,
                interval_ns: phase.interval_ns.max(1),
                verifies: phase.verify,
                stop: context.stop,
                clock,
            };
            let seed = seed.wrapping_add(thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let worker = Worker::new(&common, (number, &phase.loads[number]), picker, context.live(), seed);
            Ok((number, worker.work()))
        }
    });
    let targets: [Arc<crate::Target>; 0] = [];
    run_workers(works.collect(), &targets, Time::Wall, Start::Together, progress)
}
