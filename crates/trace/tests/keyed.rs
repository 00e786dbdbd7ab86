//! Traces of keys, and of blocks of tokens: each key has an address of its own, by which re-use is found.

use std::collections::HashMap;

use crate::reading::read;
use headstack_trace::analyze::{Analysis, Granularity, Options, ReuseOptions};
use headstack_trace::{Format, Input, Operation, Place, ReadOptions, Record, TraceReader};

/// Misses over references of an LRU cache of so many objects, done by hand.
fn lru_misses(keys: &[String], capacity: usize) -> f64 {
    let (mut cache, mut misses): (Vec<&String>, usize) = (Vec::new(), 0);
    for key in keys {
        match cache.iter().position(|cached| *cached == key) {
            Some(place) => drop(cache.remove(place)),
            None => misses += 1,
        }
        cache.push(key);
        if cache.len() > capacity {
            cache.remove(0);
        }
    }
    misses as f64 / keys.len() as f64
}

#[test]
fn the_miss_ratios_of_keys_are_those_of_their_names() {
    // A few keys often, many rarely.
    let keys: Vec<String> = (0..4_000u64).map(|i| format!("user:{}:{}", i * i % 97 % 31, i % 7 / 3)).collect();
    let text: String = keys.iter().map(|key| format!("{key}\n")).collect();
    let (records, meta) = read(text.as_bytes(), None, false).unwrap();
    assert_eq!((meta.origin[0].format.as_str(), records.len()), ("keys", 4_000));
    let capacity = 16;
    let reuse =
        ReuseOptions { granularity: Granularity::Request, cache_sizes: vec![capacity], ..ReuseOptions::default() };
    let mut analysis = Analysis::new(Options { reuse: Some(reuse), ..Options::default() }).unwrap();
    analysis.add(&records);
    let reuse = analysis.finish(&meta).reuse.unwrap();
    let distinct: HashMap<&String, ()> = keys.iter().map(|key| (key, ())).collect();
    assert_eq!((reuse.references, reuse.distinct), (4_000, distinct.len() as f64));
    let point = serde_json::to_value(&reuse.lru_curve).unwrap();
    let point = point.as_array().unwrap().iter().find(|point| point["cache"] == capacity).unwrap().clone();
    assert_eq!(point["miss_ratio"].as_f64().unwrap(), lru_misses(&keys, capacity as usize), "{point}");
}

#[test]
fn mooncake_reads_blocks_of_tokens() {
    let text = "{\"timestamp\": 27, \"input_length\": 1300, \"output_length\": 5, \"hash_ids\": [0, 1, 46]}\n\
                {\"timestamp\": 28.5, \"hash_ids\": [0, \"ab12\"], \"session_id\": \"x\"}\n";
    let (records, meta) = read(text.as_bytes(), None, false).unwrap();
    assert_eq!((meta.origin[0].format.as_str(), meta.resolution_ns), ("mooncake", 1_000_000));
    let read_at = |ns, block: u64| Record::new(ns, Operation::Read, block * 512, 512);
    let expected = [read_at(27_000_000, 0), read_at(27_000_000, 1), read_at(27_000_000, 46), read_at(28_500_000, 0)];
    assert_eq!((&records[..4], records.len()), (&expected[..], 5));
    let large = ReadOptions { sector_bytes: Some(1 << 20), ..ReadOptions::default() };
    let input = Input::from_bytes("t", text.as_bytes().to_vec()).unwrap();
    let records = TraceReader::from_inputs(vec![input], &large).unwrap().read_all().unwrap();
    assert_eq!((records[2].offset_bytes, records[2].length_bytes), (46 << 20, 1 << 20));
    for line in
        ["{\"timestamp\": 5}", "{\"timestamp\": -5, \"hash_ids\": []}", "{\"timestamp\": 1, \"hash_ids\": [1.5]}", "{"]
    {
        let error = read(format!("{text}{line}\n").as_bytes(), Some(Format::Mooncake), false).expect_err(line);
        assert_eq!((error.place, error.to_string().lines().count()), (Place::Line(3), 1), "{line}: {error}");
    }
}

#[test]
fn a_file_of_columns_may_be_anybodys() {
    let table = headstack_trace::CsvColumns::from_toml(
        "separator = \"|\"\ntime = \"2:ms\"\nkey = \"1\"\nblock = 65536\nop = \"3\"\nread = [\"hit\", \"miss\"]\n",
    )
    .unwrap();
    let options = ReadOptions { csv: Some(table), ..ReadOptions::default() };
    let input = Input::from_bytes("t", b"a|5|hit\nb|6|miss\na|7|hit\n".to_vec()).unwrap();
    let records = TraceReader::from_inputs(vec![input], &options).unwrap().read_all().unwrap();
    assert_eq!(
        (records[2].arrival_ns, records[0].length_bytes, records[0].operation),
        (7_000_000, 65_536, Operation::Read)
    );
    assert_eq!(records[0].offset_bytes, records[2].offset_bytes);
    for (text, part) in [
        ("time = \"1:us\"\nwhen = \"2\"", "`when` must be time, offset"),
        ("time = 1.5", "`time` must be a text"),
        ("time = \"1:us\"\noffset = \"2\"", "`length` must be declared"),
        ("offset = \"1\"\nlength = \"2\"\ncolumns = \"0-\"", "columns: must be a number"),
        ("offset = \"1\"\nlength = \"2\"\norder = \"none\"", "order: must be arrival or any"),
        ("offset = \"1\"\nlength = \"2\"\nspan = \"x\"", "span: must be queue-to-completion"),
        ("offset = \"1\"\nlength = \"2\"\ndevice = \"1+2+3\"", "device: must be one column"),
        ("x = = 1", "line 1:"),
    ] {
        let why = headstack_trace::CsvColumns::from_toml(text).expect_err(text);
        assert!(why.contains(part) && why.lines().count() == 1, "{text}: {why}");
    }
}
