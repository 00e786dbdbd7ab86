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

/// Rows of up to nine blocks of so many tokens, the last of them full or of a single token, with what else a row has.
fn rows(tokens: u64, more: &str) -> String {
    let row = |number: u64| {
        let blocks = 1 + number % 9;
        let length = if number.is_multiple_of(2) { blocks * tokens } else { (blocks - 1) * tokens + 1 };
        let ids = (0..blocks).map(|block| (number + block).to_string()).collect::<Vec<_>>().join(", ");
        format!("{{\"timestamp\": {number}.5, \"input_length\": {length}, \"hash_ids\": [{ids}]{more}}}\n")
    };
    (0..40).map(row).collect()
}

fn open(text: &str, options: &ReadOptions) -> Result<(Vec<Record>, headstack_trace::Meta), String> {
    let input = Input::from_bytes("t", text.as_bytes().to_vec()).unwrap();
    let mut reader = TraceReader::from_inputs(vec![input], options).map_err(|error| error.to_string())?;
    Ok((reader.read_all().map_err(|error| error.to_string())?, reader.meta().clone()))
}

#[test]
fn bailian_counts_seconds_and_blocks_of_16_tokens() {
    let text = rows(16, ", \"chat_id\": 7, \"parent_chat_id\": -1, \"turn\": 1");
    let (records, meta) = open(&text, &ReadOptions::default()).unwrap();
    assert_eq!((records[0].arrival_ns, records[0].length_bytes), (500_000_000, 16));
    assert_eq!(meta.address_space, headstack_trace::AddressSpace::Object);
    assert!(meta.notes.iter().any(|note| note.contains("16 tokens")), "{:?}", meta.notes);
    // The same rows without a conversation are of those that count ms.
    let (records, _) = open(&rows(16, ""), &ReadOptions::default()).unwrap();
    assert_eq!((records[0].arrival_ns, records[0].length_bytes), (500_000, 16));
    let said = ReadOptions { time_unit: Some(headstack_trace::TimeUnit::Seconds), ..ReadOptions::default() };
    assert_eq!(open(&rows(512, ""), &said).unwrap().0[0].arrival_ns, 500_000_000);
}

#[test]
fn token_block_sizes_are_inferred_or_requested() {
    for tokens in [16, 64, 100, 512] {
        let (records, _) = open(&rows(tokens, ""), &ReadOptions::default()).unwrap();
        assert_eq!(u64::from(records[0].length_bytes), tokens);
    }
    let refused = |text: &str, part: &str| {
        let error = open(text, &ReadOptions::default()).expect_err(text);
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
        let said = ReadOptions { sector_bytes: Some(4_096), ..ReadOptions::default() };
        assert!(open(text, &said).is_ok());
    };
    refused("{\"timestamp\": 5, \"hash_ids\": [1, 2]}\n", "no row determines the number of tokens");
    refused("{\"timestamp\": 5, \"input_length\": 1000, \"hash_ids\": [1]}\n", "add --sector");
    refused(
        "{\"timestamp\": 5, \"input_length\": 90, \"hash_ids\": [1, 2, 3]}\n{\"timestamp\": 6, \"input_length\": 90, \"hash_ids\": [1]}\n",
        "agree on no block size",
    );
    let error = open(&rows(16, ", \"model\": \"a\""), &ReadOptions::default()).unwrap_err();
    assert!(error.contains("--unit"), "{error}");
}

#[test]
fn rows_may_be_longer_than_other_lines() {
    let ids = (0..20_000).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!("{{\"chat_id\": 1, \"timestamp\": 1, \"input_length\": 319999, \"hash_ids\": [{ids}]}}\n");
    assert_eq!(open(&text, &ReadOptions::default()).unwrap().0.len(), 20_000);
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
