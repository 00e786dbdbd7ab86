//! Errors of invalid drive files have one line with file, line, key and the allowed values.

use headstack_catalogue::resolve;
use headstack_workload::Document;

/// A valid data sheet; tests replace or add lines.
const SHEET: &str = r#"name = "Test"
year = 2001
[capacity]
logical_blocks = 71687369
[geometry]
heads = 8
cylinders = 18479
[media]
sustained_outer_rate = "69MB/s"
sustained_inner_rate = "51MB/s"
[spindle]
speed = "15000rpm"
[seek]
read_average = "3.6ms"
read_full_stroke = "7ms"
[queue]
depth = 64
[buffer]
size = "8MiB"
[interface]
kind = "scsi"
rate = "160MB/s"
"#;

/// A valid file with two zones of 10 cylinders, 2 heads, and 100 and 80 sectors per track: 3,600 blocks.
const ZONES: &str = r#"name = "Test"
year = 2001
[capacity]
logical_blocks = 3600
[geometry]
heads = 2
cylinders = 20
[[geometry.zones]]
first_cylinder = 0
last_cylinder = 9
sectors_per_track = 100
[[geometry.zones]]
first_cylinder = 10
last_cylinder = 19
sectors_per_track = 80
[spindle]
speed = "15000rpm"
[seek]
constant = "3.6ms"
[buffer]
size = "8MiB"
[interface]
kind = "scsi"
rate = "160MB/s"
"#;

fn error(text: &str) -> String {
    match Document::parse("bad.toml", text).and_then(|document| resolve(&document)) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Replaces `from`, which `text` must contain, and expects an error that starts with `place` and contains `words`.
#[track_caller]
fn refused(text: &str, from: &str, to: &str, place: &str, words: &str) {
    assert!(text.contains(from), "{from}");
    let found = error(&text.replacen(from, to, 1));
    assert!(found.starts_with(place) && found.contains(words) && !found.contains('\n'), "{found}");
}

#[test]
fn the_good_files_are_good() {
    for text in [SHEET, ZONES] {
        resolve(&Document::parse("good.toml", text).unwrap()).unwrap();
    }
}

#[test]
fn zones() {
    let zone = |from: &str, to: &str, place: &str, words: &str| refused(ZONES, from, to, place, words);
    zone("first_cylinder = 10", "first_cylinder = 9", "bad.toml:13: geometry.zones[1].first_cylinder: ", "10 or more");
    zone("last_cylinder = 19", "last_cylinder = 20", "bad.toml:14: geometry.zones[1].last_cylinder: ", "10 to 19");
    zone("last_cylinder = 19", "last_cylinder = 9", "bad.toml:14: geometry.zones[1].last_cylinder: ", "10 to 19");
    zone("= 80", "= 0", "bad.toml:15: geometry.zones[1].sectors_per_track: ", "1 to");
    zone(
        "blocks = 3600",
        "blocks = 3601",
        "bad.toml:4: capacity.logical_blocks",
        "must be 1 to 3600, the number that the zones hold",
    );
    let spared = ZONES.replacen("cylinders = 20", "cylinders = 20\nsparing = \"zone-end\"", 1);
    refused(&spared, "= 80", "= 80\nspares = 1600", "bad.toml:17: geometry.zones[1].spares: 1600 spares", "1600");
}

#[test]
fn counts() {
    let sheet = |from: &str, to: &str, place: &str| refused(SHEET, from, to, place, "allowed");
    sheet("heads = 8", "heads = 0", "bad.toml:6: geometry.heads: 0 is not allowed;");
    sheet("cylinders = 18479", "cylinders = 0", "bad.toml:7: geometry.cylinders: 0 is not allowed;");
    sheet(
        "cylinders = 18479",
        "cylinders = 18479\nzone_count = 0",
        "bad.toml:8: geometry.zone_count: 0 is not allowed;",
    );
    sheet("blocks = 71687369", "blocks = 0", "bad.toml:4: capacity.logical_blocks: 0 is not allowed;");
    refused(
        SHEET,
        "blocks = 71687369",
        "blocks = 71687369\nphysical_sector = \"520B\"",
        "bad.toml:5: capacity.physical_sector: ",
        "must be",
    );
    refused(SHEET, "depth = 64", "depth = 0", "bad.toml:17: queue.depth: 0;", "must be 1");
    let strength = "bad.toml:17: queue.reordering_strength: 1.5;";
    refused(SHEET, "depth = 64", "reordering_strength = 1.5", strength, "must be 0");
    for share in ["1.5", "-0.5"] {
        let place = format!("bad.toml:20: buffer.read_watermark: {share};");
        refused(SHEET, "\"8MiB\"", &format!("\"8MiB\"\nread_watermark = {share}"), &place, "must be 0 to 1");
    }
    let order = "heads = 8\norder = { surface-serpentine = { band_cylinders = 0 } }";
    refused(SHEET, "heads = 8", order, "bad.toml:7: geometry.order: ", "1 cylinder or more");
    refused(SHEET, "= 18479", "= 9000000", "bad.toml:7: geometry.cylinders: ", "more tracks than");
}

#[test]
fn times_and_rates() {
    let sheet = |from: &str, to: &str, place: &str, words: &str| refused(SHEET, from, to, place, words);
    sheet("15000rpm", "0rpm", "bad.toml:12: spindle.speed: ", "positive");
    sheet("15000rpm", "15000", "bad.toml:12: spindle.speed: ", "15000rpm");
    sheet("15000rpm", "9rpm", "bad.toml:12: spindle.speed: ", "must be 300");
    sheet(
        "\"51MB/s\"",
        "\"70MB/s\"",
        "bad.toml:10: media.sustained_inner_rate: ",
        "must not exceed media.sustained_outer",
    );
    sheet("\"51MB/s\"", "\"0MB/s\"", "bad.toml:10: media.sustained_inner_rate: 0", "allowed");
    sheet("\"3.6ms\"", "\"-3.6ms\"", "bad.toml:14: seek.read_average: -3.6ms", "0ms or more");
    sheet("\"3.6ms\"", "\"8ms\"", "bad.toml:14: seek.read_average: 8ms", "must not exceed seek.read_full_stroke, 7ms");
    sheet(
        "\"7ms\"",
        "\"7ms\"\nread_track_to_track = \"4ms\"",
        "bad.toml:16: seek.read_track",
        "must not exceed seek.read_av",
    );
    sheet("\"7ms\"", "\"400ms\"", "bad.toml:14: seek.read_average: ", "no usual curve");
    sheet(
        "\"7ms\"",
        "\"7ms\"\nconstant = \"1ms\"\npoints = [[1, \"1ms\"]]",
        "bad.toml:16: seek.constant: ",
        "one curve",
    );
    sheet("\"7ms\"", "\"7ms\"\npoints = [[1, \"1ms\"], [2, \"-1ms\"]]", "bad.toml:16: seek.points[1]: ", "0ms or more");
    sheet("\"7ms\"", "\"7ms\"\npoints = [[2, \"1ms\"], [1, \"2ms\"]]", "bad.toml:13: seek: ", "ascend");
    sheet(
        "\"160MB/s\"",
        "\"160MB/s\"\nread_ns_per_byte = 1.0",
        "bad.toml:23: interface.read_ns_per_byte: ",
        "not allowed with interface.rate",
    );
    let hit = "\"8MiB\"\n[overheads]\nread_hit = { after_read = \"1ms\", after_write = \"-1ms\" }";
    sheet("\"8MiB\"", hit, "bad.toml:21: overheads.read_hit.after_write: ", "0ms or more");
}

#[test]
fn caches_and_actuators() {
    let with =
        |table: &str, place: &str, words: &str| refused(SHEET, "[queue]", &format!("{table}\n[queue]"), place, words);
    let flash = |line: &str| format!("[flash_cache]\nsize = \"1GB\"\n{line}");
    with("[flash_cache]", "bad.toml:16: flash_cache.size: this key is missing", "16GB");
    with("[flash_cache]\nsize = \"1TB\"", "bad.toml:17: flash_cache.size: ", "at most the size of the drive");
    with(&flash("block = \"1000B\""), "bad.toml:18: flash_cache.block: ", "multiple of the sector size");
    with(&flash("block = \"0B\""), "bad.toml:18: flash_cache.block: ", "multiple of the sector size");
    with(&flash("latency = \"-1ms\""), "bad.toml:18: flash_cache.latency: ", "0ms or more");
    with(&flash("rate = \"1MB/s\"\nns_per_byte = 2.0"), "bad.toml:19: flash_cache.ns_per_byte: ", "not allowed with");
    let cache = |line: &str| format!("[media_cache]\nsize = \"1GiB\"\n{line}");
    with("[media_cache]", "bad.toml:16: media_cache.size: this key is missing", "4GiB");
    with("[media_cache]\nsize = \"700B\"", "bad.toml:17: media_cache.size: ", "at least 64 sectors");
    with("[media_cache]\nsize = \"1000000TB\"", "bad.toml:17: media_cache.size: ", "size of the drive");
    with(&cache("busy_share = 0.0"), "bad.toml:18: media_cache.busy_share: ", "above 0");
    with(&cache("idle = \"-1s\""), "bad.toml:18: media_cache.idle: ", "0ms or more");
    with(&cache("sweep = \"2GiB\""), "bad.toml:18: media_cache.sweep: ", "at most the size of the cache");
    with("[shingles]", "bad.toml:16: shingles.band", "missing");
    let sheet = |to: &str, words: &str| refused(SHEET, "year = 2001", to, "bad.toml:3: actuators: ", words);
    sheet("year = 2001\nactuators = 0", "1 to 8");
    sheet("year = 2001\nactuators = 3", "cannot divide 8 heads evenly");
}

#[test]
fn missing_required_keys_are_reported_at_once() {
    let sheet = |from: &str, to: &str, place: &str, words: &str| refused(SHEET, from, to, place, words);
    let cut = "kind = \"scsi\"\nrate = \"160MB/s\"\n";
    sheet(cut, "", "bad.toml:20: interface.kind: this key is missing", "; also missing: interface.rate");
}

#[test]
fn keys() {
    let sheet = |from: &str, to: &str, place: &str, words: &str| refused(SHEET, from, to, place, words);
    sheet(
        "read_average",
        "read_avarage",
        "bad.toml:14: seek.read_avarage: unknown key",
        "did you mean `read_average`?",
    );
    sheet("\"scsi\"", "\"scsy\"", "bad.toml:21: interface.kind: unknown value `scsy`", "scsi");
    sheet("year = 2001\n", "", "bad.toml: year: this key is missing", "defaults depend on it");
    sheet("read_average = \"3.6ms\"\n", "", "bad.toml:13: seek.read_average: this key is missing", "or a curve");
    sheet("heads = 8\n", "", "bad.toml:5: geometry.heads: this key is missing", "platters");
    sheet(
        "logical_blocks = 71687369\n",
        "",
        "bad.toml:3: capacity.logical_blocks: this key is missing",
        "capacity.size",
    );
    sheet("size = \"8MiB\"\n", "", "bad.toml:18: buffer.size: this key is missing", "8MiB");
    sheet("speed = \"15000rpm\"\n", "", "bad.toml:11: spindle.speed: this key is missing", "7200rpm");
    sheet("kind = \"scsi\"\n", "", "bad.toml:20: interface.kind: this key is missing", "sata");
    sheet("rate = \"160MB/s\"\n", "", "bad.toml:20: interface.rate: this key is missing", "ns_per_byte");
    sheet(
        "heads = 8",
        "heads = 8\nsparing = \"zone-end\"",
        "bad.toml:5: geometry.zones: this key is missing",
        "sparing",
    );
    let sources = |line: &str| format!("{SHEET}[sources]\n{line}\n");
    let found = error(&sources("default = \"X a book\""));
    assert!(
        found.starts_with("bad.toml:24: sources.default: \"X a book\" is not a source;") && found.contains("A, S, B"),
        "{found}"
    );
    assert!(error(&sources("default = \"A\"")).starts_with("bad.toml:24: sources.default"));
}

#[test]
fn prices_have_a_figure_and_a_date() {
    let price = |table: &str| SHEET.replacen("[queue]", &format!("[price]\n{table}\n[queue]"), 1);
    for date in ["2019", "2019-06", "2019-06-04"] {
        let text = price(&format!("usd = 610\ndate = \"{date}\""));
        let resolved = resolve(&Document::parse("good.toml", &text).unwrap()).unwrap();
        assert_eq!(resolved.file.price.unwrap().date, date);
    }
    let refused = |table: &str, place: &str, words: &str| {
        let message = error(&price(table));
        assert!(message.starts_with(place) && message.contains(words), "{message}");
    };
    refused("usd = 0.0\ndate = \"2019\"", "bad.toml:17: price.usd: 0 is not allowed;", "above 0");
    for date in ["19", "2019-13", "2019-6", "2019-06-32", "2019-06-04-1", "June 2019", ""] {
        refused(&format!("usd = 1.0\ndate = \"{date}\""), "bad.toml:18: price.date: ", "for example \"2019-06\"");
    }
    refused("usd = 1.0", "bad.toml:16: price", "missing");
}
