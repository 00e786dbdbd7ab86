//! Scenarios of the catalogue, and a scenario with every kind of stream.

use std::path::{Path, PathBuf};

use headstack_workload::Scenario;

pub const EVERYTHING: &str = r#"
cpus = 2
network = "100MB/s"
pool = { closed = { queue_depth = 5, think = { exponential = "1ms" } } }
run_length = { time = "20s" }

[[streams]]
name = "processes"
lun = "data"
range = ["0%", "10%"]
[streams.access]
arrivals = { closed = { queue_depth = 7, think = { fixed = "3ms" } } }
lines = [{ size = "4KiB", read_percent = 60, random_percent = 80 }]

[[streams]]
name = "rate"
lun = "data"
range = ["10%", "20%"]
[streams.access]
arrivals = { open = { rate_per_s = 300, process = "poisson" } }
addresses = { zipf = { theta = 0.9 } }
lines = [{ size = "8KiB", read_percent = 100, random_percent = 100 }]

[[streams]]
name = "share 1"
lun = "log"
[streams.access]
share_percent = 25
lines = [{ size = "1KiB", read_percent = 0, random_percent = 0 }]

[[streams]]
name = "share 2"
lun = "data"
range = ["20%", "30%"]
[streams.access]
share_percent = 75
addresses = { vdbench_hotband = { from_percent = 10, to_percent = 18 } }
lines = [{ size = "8KiB", read_percent = 70, random_percent = 100 }]

[[streams]]
name = "pages"
lun = "data"
range = ["30%", "50%"]
[streams.web]
users = 3
files = 1000
smallest_file = "15KiB"
mean_file = "2MiB"
largest_file = "4MiB"
hot_files_percent = 18
hot_pages_percent = 80
layout = { scattered = { extent = "1MiB" } }
request = "256KiB"
read_ahead = 4

[[streams]]
name = "guests"
lun = "data"
range = ["50%", "60%"]
[streams.boot]
guests = 4
interval = "500ms"
golden_image = { size_percent = 20, reads_percent = 50 }
phases = [
    { requests = 100, cpu = "1ms", lines = [{ size = "4KiB", read_percent = 90, random_percent = 50 }] },
    { requests = 200, queue_depth = 3, think = { exponential = "1ms" }, lines = [{ size = "8KiB", read_percent = 50, random_percent = 50 }] },
]

[[streams]]
name = "video"
lun = "data"
range = ["60%", "70%"]
[streams.video]
reads = 2
writes = 1
cpu = "2ms"
frame = "300000B"
frames_per_s = 25
buffer_frames = 3
request = "64KiB"
queue_depth = 2

[[streams]]
name = "transactions"
lun = "data"
range = ["70%", "80%"]
[streams.transactions]
clients = 6
think = { exponential = "20ms" }
cpu = "1ms"
requests = 3
lines = [{ size = "2KiB", read_percent = 67, random_percent = 100 }]

[[streams]]
name = "sequential"
lun = "data"
range = ["80%", "90%"]
[streams.sequential]
streams = 4
direction = "read"
block = "64KiB"
queue_depth = 2

[[streams]]
name = "prefill"
lun = "data"
range = ["99%", "100%"]
[streams.prefill]
order = "serial"
block = "1MiB"
queue_depth = 2
"#;

pub fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/scenarios");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns a scenario of the catalogue.
pub fn catalogue(name: &str) -> Scenario {
    let path = files().into_iter().find(|path| path.ends_with(format!("{name}.toml"))).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    Scenario::from_toml(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"))
}
