//! Describes a target in results.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::machine::{Block, Machine};
use super::stacked::mount_of;
use super::{Access, Opened, TargetKind, kernel};

/// Attributes of a disk, with their names in results and in sysfs. Attributes that a disk lacks are omitted.
const DISK_TEXT: [(&str, &str); 9] = [
    ("model", "device/model"),
    ("vendor", "device/vendor"),
    ("firmware", "device/firmware_rev"),
    ("revision", "device/rev"),
    ("transport", "device/transport"),
    ("zoned", "queue/zoned"),
    ("write_cache", "queue/write_cache"),
    ("backing_file", "loop/backing_file"),
    ("mapping", "dm/name"),
];
const DISK_NUMBERS: [(&str, &str); 10] = [
    ("rotational", "queue/rotational"),
    ("removable", "removable"),
    ("nr_requests", "queue/nr_requests"),
    ("queue_depth", "device/queue_depth"),
    ("read_ahead_kib", "queue/read_ahead_kb"),
    ("max_sectors_kib", "queue/max_sectors_kb"),
    ("nomerges", "queue/nomerges"),
    ("rq_affinity", "queue/rq_affinity"),
    ("write_back_throttle_us", "queue/wbt_lat_usec"),
    ("discard_granularity_bytes", "queue/discard_granularity"),
];

pub(super) fn describe(
    path: &str,
    resolved: &Path,
    kind: TargetKind,
    access: &Access,
    write: bool,
    opened: &Opened,
) -> Value {
    let machine = Machine::this();
    let mut description = json!({
        "path": path,
        "kind": kind.name(),
        "capacity_bytes": opened.capacity_bytes,
        "block_bytes": opened.block_bytes,
        "physical_block_bytes": opened.physical_block_bytes,
        "memory_align_bytes": opened.memory_align_bytes,
        "direct": access.direct,
        "sync": access.sync,
        "written": write,
        "kernel": kernel::release(),
    });
    if resolved != Path::new(path) {
        description["resolved"] = json!(resolved.to_string_lossy());
    }
    if kind == TargetKind::File
        && let Some(mount) = mount_of(&machine, resolved)
    {
        description["file_system"] =
            json!({ "type": mount.kind, "source": mount.source, "mounted_at": mount.at, "options": mount.options });
    }
    if let Some(block) = &opened.block {
        description["device"] = describe_block(&machine, block);
    }
    if !opened.notes.is_empty() {
        description["notes"] = json!(opened.notes);
    }
    description
}

fn describe_block(machine: &Machine, block: &Block) -> Value {
    let disk = block.disk();
    let mut description = Map::from_iter([("name".to_owned(), json!(block.name))]);
    let mut add = |key: &str, value: Value| description.insert(key.to_owned(), value);
    if let Some((start_bytes, length_bytes)) = block.parent().and_then(|_| block.extent_bytes()) {
        add("disk", json!(disk.name));
        add("start_bytes", json!(start_bytes));
        add("length_bytes", json!(length_bytes));
    }
    for (key, attribute) in DISK_TEXT {
        if let Some(text) = disk.attribute(attribute) {
            add(key, json!(text));
        }
    }
    for (key, attribute) in DISK_NUMBERS {
        if let Some(number) = disk.attribute_u64(attribute) {
            add(key, json!(number));
        }
    }
    if let Some(scheduler) = disk.attribute("queue/scheduler") {
        add("scheduler", json!(chosen(&scheduler)));
    }
    if let Some(serial) = disk.serials(machine).into_iter().next() {
        add("serial", json!(serial));
    }
    let slaves = disk.slaves();
    if !slaves.is_empty() {
        add("on", slaves.iter().map(|slave| describe_block(machine, slave)).collect());
    }
    Value::Object(description)
}

/// Returns the active scheduler, which is in brackets, such as mq-deadline in `none [mq-deadline] kyber`.
fn chosen(schedulers: &str) -> &str {
    schedulers.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0)).unwrap_or(schedulers)
}
