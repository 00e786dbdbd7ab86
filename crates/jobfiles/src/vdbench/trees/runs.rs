//! Converts runs on trees to phases: which loads run on which trees, how often and at which rate.

use headstack_workload::InputError;
use headstack_workload::quantity::format_bytes;

use super::Definitions;
use super::definitions::{Folder, FolderRun, Load, Override};
use crate::Verify;
use crate::trees::{Tree, TreeLoad, TreePhase};
use crate::vdbench::runs::{PHASES_MAX, combinations, matches, names};
use crate::vdbench::scan::Parameter;

/// Returns all runs of a file, in order.
pub(super) fn phases(definitions: &Definitions) -> Result<Vec<TreePhase>, InputError> {
    let mut phases = Vec::new();
    for run in &definitions.runs.all {
        let Some(place) = &run.place else { continue };
        if run.rates.is_empty() && !run.formats_alone {
            return Err(place.error("has no fwdrate; add fwdrate=max or a number"));
        }
        if run.interval_ns == 0 || run.elapsed_ns < run.interval_ns {
            return Err(place.error("elapsed must be at least the interval, and the interval must not be 0"));
        }
        for overrides in combinations(&run.loops, place)? {
            for rate in if run.rates.is_empty() { &[None][..] } else { &run.rates } {
                if phases.len() >= PHASES_MAX {
                    return Err(place.error(format!("the file expands to more than {PHASES_MAX} runs; split the file")));
                }
                phases.push(phase(definitions, run, place, &overrides, *rate)?);
            }
        }
    }
    Ok(phases)
}

fn phase(
    definitions: &Definitions,
    run: &FolderRun,
    place: &Parameter,
    overrides: &[Override],
    rate_per_s: Option<f64>,
) -> Result<TreePhase, InputError> {
    let (mut trees, mut loads): (Vec<Tree>, Vec<TreeLoad>) = (Vec::new(), Vec::new());
    for wanted in &run.loads {
        let found = loads.len();
        for load in definitions.loads.all.iter().filter(|load| matches(wanted, &load.name)) {
            add(definitions, run, load, overrides, &mut trees, &mut loads)?;
        }
        if loads.len() == found {
            return Err(place.error(format!(
                "there is no fwd={wanted}; allowed: {}",
                names(&definitions.loads.all, |load| &load.name)
            )));
        }
    }
    if loads.is_empty() {
        return Err(place.error("has no load; add fwd=NAME"));
    }
    for tree in &trees {
        if tree.members().is_none() {
            return Err(place.error(format!("the tree {} has more than 2^64 files", tree.name)));
        }
    }
    share(&mut loads, place)?;
    if run.formats_alone {
        loads.clear();
    }
    Ok(TreePhase {
        name: name(run, overrides, rate_per_s),
        trees,
        loads,
        format: run.format,
        rate_per_s,
        process: run.process,
        time_ns: run.elapsed_ns,
        warm_up_ns: run.warm_up_ns,
        interval_ns: run.interval_ns,
        verify: definitions.general.verify != Verify::No,
    })
}

/// Adds the loads of a definition, one for each of its trees.
fn add(
    definitions: &Definitions,
    run: &FolderRun,
    load: &Load,
    overrides: &[Override],
    trees: &mut Vec<Tree>,
    loads: &mut Vec<TreeLoad>,
) -> Result<(), InputError> {
    let place = load.place.as_ref().or(run.place.as_ref());
    let error = |message: String| match place {
        Some(place) => place.error(message),
        None => InputError { file: String::new(), line: None, key: "fwd".to_owned(), message },
    };
    let known = || names(&definitions.folders.all, |folder| &folder.tree.name);
    let find = |name: &String| -> Vec<&Folder> {
        definitions.folders.all.iter().filter(|folder| matches(name, &folder.tree.name)).collect()
    };
    let place_of =
        |trees: &mut Vec<Tree>, folder: &Folder| match trees.iter().position(|tree| tree.name == folder.tree.name) {
            Some(index) => index,
            None => {
                trees.push(changed_tree(&folder.tree, overrides));
                trees.len() - 1
            }
        };
    let to_tree = match &load.to_folder {
        Some(name) => match find(name).first() {
            Some(folder) => Some(place_of(trees, folder)),
            None => return Err(error(format!("there is no fsd={name}; allowed: {}", known()))),
        },
        None => None,
    };
    if load.folders.is_empty() {
        return Err(error("has no tree; add fsd=NAME".to_owned()));
    }
    for wanted in &load.folders {
        let folders = find(wanted);
        if folders.is_empty() {
            return Err(error(format!("there is no fsd={wanted}; allowed: {}", known())));
        }
        for folder in folders {
            let tree = place_of(trees, folder);
            let open = run.open.or(load.open).unwrap_or(folder.open);
            let mut one = TreeLoad {
                name: if load.folders.len() > 1 || wanted.ends_with('*') {
                    format!("{} {}", load.name, folder.tree.name)
                } else {
                    load.name.clone()
                },
                tree,
                to_tree,
                operation: load.operation,
                read_percent: load.read_percent,
                files: load.files,
                requests: load.requests,
                sizes: load.sizes.clone(),
                threads: load.threads,
                share_percent: load.skew_percent,
                requests_per_file: load.stop_after,
                direct: open.direct,
                sync: open.sync,
                flushes_at_close: open.fsync,
            };
            overrides.iter().for_each(|value| change(&mut one, value));
            one.check().map_err(error)?;
            loads.push(one);
        }
    }
    Ok(())
}

fn changed_tree(tree: &Tree, overrides: &[Override]) -> Tree {
    let mut tree = tree.clone();
    for value in overrides {
        match *value {
            Override::Depth(depth) => tree.depth = depth,
            Override::Width(width) => tree.width = width,
            Override::Files(files) => tree.files = files,
            Override::Size(bytes) => tree.sizes = vec![(bytes, 100.0)],
            Override::Total(bytes) => tree.total_bytes = Some(bytes),
            Override::Used(bytes) => tree.used_bytes = Some(bytes),
            Override::Operation(_) | Override::Threads(_) | Override::Transfer(_) | Override::ReadPercent(_) => {}
        }
    }
    tree
}

fn change(load: &mut TreeLoad, value: &Override) {
    match *value {
        Override::Operation(operation) => load.operation = operation,
        Override::Threads(threads) => load.threads = threads,
        Override::Transfer(bytes) => load.sizes = vec![(bytes, 100.0)],
        Override::ReadPercent(percent) => load.read_percent = Some(percent),
        Override::Depth(_)
        | Override::Width(_)
        | Override::Files(_)
        | Override::Size(_)
        | Override::Total(_)
        | Override::Used(_) => {}
    }
}

/// Distributes the remaining share evenly among loads without a share.
fn share(loads: &mut [TreeLoad], place: &Parameter) -> Result<(), InputError> {
    let sum: f64 = loads.iter().filter_map(|load| load.share_percent).sum();
    let without = loads.iter().filter(|load| load.share_percent.is_none()).count();
    let is_whole = (sum - 100.0).abs() < 1e-4;
    if without == loads.len() || is_whole && without == 0 {
        return Ok(());
    }
    if sum > 100.0 || without == 0 || is_whole {
        return Err(place.error(format!(
            "the skew of the loads sums to {sum}; it must sum to 100, or less if some loads have no skew"
        )));
    }
    for load in loads.iter_mut().filter(|load| load.share_percent.is_none()) {
        load.share_percent = Some((100.0 - sum) / without as f64);
    }
    Ok(())
}

/// Returns the name of a run and its loops, as in vdbench.
fn name(run: &FolderRun, overrides: &[Override], rate_per_s: Option<f64>) -> String {
    let text = |value: &Override| match value {
        Override::Operation(operation) => format!("operation={}", operation.name()),
        Override::Depth(depth) => format!("depth={depth}"),
        Override::Width(width) => format!("width={width}"),
        Override::Files(files) => format!("files={files}"),
        Override::Size(bytes) => format!("size={}", format_bytes(*bytes)),
        Override::Total(bytes) => format!("totalsize={}", format_bytes(*bytes)),
        Override::Used(bytes) => format!("wss={}", format_bytes(*bytes)),
        Override::Threads(threads) => format!("threads={threads}"),
        Override::Transfer(bytes) => format!("xfersize={}", format_bytes(u64::from(*bytes))),
        Override::ReadPercent(percent) => format!("rdpct={percent}"),
    };
    let mut name = run.name.clone();
    for ((_, values), value) in run.loops.iter().zip(overrides) {
        if values.len() > 1 {
            name += &format!(" {}", text(value));
        }
    }
    if run.rates.len() > 1 {
        name += &rate_per_s.map_or(" fwdrate=max".to_owned(), |rate| format!(" fwdrate={rate}"));
    }
    name
}
