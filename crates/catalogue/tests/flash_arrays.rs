//! Arrays with SSDs as members, and as a cache for other drives.

use headstack_catalogue::{Changes, array, arrays, load_array};
use headstack_result::RunResult;
use headstack_sim::array::description::{ArrayDescription, CacheWrites};
use headstack_sim::{RunSpec, SystemDescription, run};
use headstack_workload::{Document, RunLength, Span, Workload};

fn description(name: &str) -> ArrayDescription {
    load_array(name, &Changes::default()).unwrap_or_else(|error| panic!("{error}")).description
}

/// Returns a workload of random 8 KiB requests with `read_percent` reads.
fn mixed(read_percent: u32, requests: u64, warm_up: u64) -> Workload {
    let text = format!(
        "name = \"mixed\"\nsource = \"test\"\nwarm_up = {{ requests = {warm_up} }}\n\
         run_length = {{ requests = {requests} }}\narrivals = {{ closed = {{ queue_depth = 16 }} }}\n\
         [[lines]]\nsize = \"8KiB\"\nshare_percent = 100\nread_percent = {read_percent}\nrandom_percent = 100\n"
    );
    let mut workload = Workload::from_toml("mixed.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    workload.run_length = RunLength::Requests(requests);
    workload
}

fn result(array: ArrayDescription, workload: Workload, span: Option<Span>) -> RunResult {
    let spec = RunSpec {
        system_name: array.name.clone(),
        system: SystemDescription::Array(array),
        demand: workload.into(),
        span,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    };
    run(&spec, &|_| true).unwrap()
}

#[test]
fn every_array_serves_a_mixed_workload() {
    for entry in arrays() {
        let result = result(description(entry.id), mixed(67, 2_000, 0), None);
        assert_eq!((result.count(), result.errors()), (2_000, 0), "{}", entry.id);
    }
}

#[test]
fn a_cache_of_flash_serves_a_hot_set_faster() {
    let hot = Span { start_bytes: 0, length_bytes: 1 << 30 };
    for (plain, read_percent) in [("nearline-12-raid6", 67), ("nearline-24-raid10", 67), ("nearline-24-raid6", 100)] {
        let pace = |array: ArrayDescription, warm_up: u64| {
            result(array, mixed(read_percent, 20_000, warm_up), Some(hot)).throughput_per_s()
        };
        let mut without = description(plain);
        without.controller.cache = None;
        let disks = pace(without, 0);
        // Each block is read three times on average.
        let cached = pace(description(&format!("{plain}-nvme-cache")), 400_000);
        println!("{plain:20} {disks:10.0} a second, {cached:10.0} with its cache of flash");
        assert!(cached > 2.0 * disks, "{plain}: {disks} a second, {cached} with a cache of flash");
    }
}

#[test]
fn caches_hold_half_of_their_flash() {
    let cached = description("nearline-12-raid6-nvme-cache");
    let cache = cached.controller.cache.clone().unwrap();
    assert_eq!(cache.flash_members, [12, 13]);
    assert_eq!(cache.data_bytes / 1_000_000_000, 999);
    assert_eq!(cached.capacity_bytes(), description("nearline-12-raid6").capacity_bytes());
    let reads = description("nearline-24-raid6-nvme-cache").controller.cache.unwrap();
    assert_eq!((reads.writes, cache.writes), (CacheWrites::Around, CacheWrites::Back));
}

const ARRAY: &str = r#"name = "Test"
[[drives]]
drive = "ultrastar-hc560-20tb"
count = 4
[[drives]]
id = "ssd"
drive = "dc-p4500-1tb"
count = 2
queue_depth = 8
[[groups]]
level = "raid5"
[controller.cache]
memory = "1GiB"
data = "1GiB"
flash_drives = ["ssd0..ssd1"]
"#;

#[track_caller]
fn refused(from: &str, to: &str, place: &str, words: &str) {
    assert!(ARRAY.contains(from), "{from}");
    let document = Document::parse("bad.toml", &ARRAY.replacen(from, to, 1)).unwrap();
    let error = array::resolve(&document, &Changes::default()).unwrap_err().to_string();
    assert!(error.starts_with(place) && error.contains(words) && !error.contains('\n'), "{error}");
}

#[test]
fn ranges_that_do_not_fit_are_refused_in_one_line() {
    array::resolve(&Document::parse("good.toml", ARRAY).unwrap(), &Changes::default()).unwrap();
    let depth = "queue_depth = 8";
    refused(depth, "policy = \"fcfs\"", "bad.toml:9: drives[1].policy: only disks", "solid-state");
    refused(depth, "write_cache = \"protected\"", "bad.toml:9: drives[1].write_cache: only disks", "on or off");
    refused(depth, "reordering = 0.5", "bad.toml:9: drives[1].reordering: only disks", "solid-state");
    refused("count = 4", "preconditioned = true", "bad.toml:4: drives[0].preconditioned: only solid-state", "disk");
    let data = "data = \"1GiB\"";
    // Decimal sizes are rounded down to whole pages.
    refused(data, "data = \"1TB\"", "bad.toml:14: controller.cache.data: ", "999999995904 bytes of data are too many");
    array::resolve(&Document::parse("good.toml", &ARRAY.replace(data, "data = \"1GB\"")).unwrap(), &Changes::default())
        .unwrap();
    refused(data, "data = \"932GiB\"", "bad.toml:14: controller.cache.data: ", "space on the flash drives");
    refused("[\"ssd0..ssd1\"]", "[\"ssd0..ssd2\"]", "bad.toml:15: controller.cache.flash_drives: ", "no drive");
}
