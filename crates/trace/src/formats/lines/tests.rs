//! Guarantees of the engine for all formats: order, line numbers, names, limits.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::error::Place;
use crate::formats::cutter::{CHUNK_BYTES, LINE_BYTES_MAX};
use crate::formats::tests::{of, read};
use crate::meta::Meta;
use crate::reader::TraceReader;

type Outcome = Result<(Vec<Record>, Meta), TraceError>;

/// Reads with several numbers of cores, with the same result.
fn read_on_all(bytes: &[u8], options: &ReadOptions) -> Outcome {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read(bytes, options))
    };
    let outcome = on(1);
    for threads in [2, 3, 7] {
        assert_eq!(on(threads), outcome, "{threads} threads");
    }
    outcome
}

/// A file of many chunks, with new devices throughout.
fn msr_lines(lines: u64) -> Vec<String> {
    let line =
        |i: u64| format!("{},h{},{},Read,{},512,{i}", 128_166_372_003_061_629 + i, i * i / 90_000, i % 3, i * 512);
    (0..lines).map(line).collect()
}

#[test]
fn chunks_are_handed_over_in_order_with_names_as_they_appear() {
    let lines = msr_lines(20_000);
    let bytes = lines.join("\n").into_bytes();
    assert!(bytes.len() > 6 * CHUNK_BYTES, "{}", bytes.len());
    let (records, meta) = read_on_all(&bytes, &of(Format::Msr)).unwrap();
    let mut names: Vec<String> = Vec::new();
    for (i, record) in (0..20_000u64).zip(&records) {
        let name = format!("h{}.{}", i * i / 90_000, i % 3);
        if !names.contains(&name) {
            names.push(name.clone());
        }
        assert_eq!((record.offset_bytes, record.response_ns), (i * 512, i * 100));
        assert_eq!(meta.devices[record.device as usize].name, name);
    }
    assert_eq!(records.len(), 20_000);
    assert_eq!(meta.devices.iter().map(|device| &device.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
}

#[test]
fn bad_lines_keep_their_numbers_at_any_chunk_size() {
    let mut lines = msr_lines(20_000);
    let is_bad = |line: usize| line.is_multiple_of(137);
    for (line, text) in (1..).zip(&mut lines) {
        if is_bad(line) {
            text.push_str(",more");
        }
        if line % 50 == 7 {
            text.push('\r');
        }
    }
    let bytes = lines.join("\n").into_bytes();
    let error = read_on_all(&bytes, &of(Format::Msr)).unwrap_err();
    assert_eq!(error.place, Place::Line(137));
    let (records, meta) = read_on_all(&bytes, &ReadOptions { skip_bad: true, ..of(Format::Msr) }).unwrap();
    let good: Vec<u64> = (0..20_000).filter(|&i| !is_bad(i as usize + 1)).map(|i| i * 512).collect();
    assert_eq!(records.iter().map(|record| record.offset_bytes).collect::<Vec<_>>(), good);
    assert_eq!(meta.rejected, 20_000 - good.len() as u64);
    let first: Vec<String> = meta.rejects.iter().map(|text| text.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(first, (1..=10).map(|i| format!("t:{}", 137 * i)).collect::<Vec<_>>());

    // Only the last line is bad, many chunks after the first.
    let mut lines = msr_lines(20_000);
    lines[19_999].truncate(40);
    let error = read_on_all(&lines.join("\n").into_bytes(), &of(Format::Msr)).unwrap_err();
    assert_eq!(error.place, Place::Line(20_000));
}

#[test]
fn time_does_not_go_back_from_chunk_to_chunk() {
    // One line hours ahead makes all later ones go back; so do single lines.
    let time_of = |i: u64| match i {
        9_000..10_000 => 50_000_000,
        _ if i.is_multiple_of(61) => i / 2,
        _ => 10 * i,
    };
    let mut text = String::new();
    for i in 0..60_000u64 {
        writeln!(text, "0,{i},512,R,{}.{:06}", time_of(i) / 1_000_000, time_of(i) % 1_000_000).unwrap();
    }
    assert!(text.len() > 8 * CHUNK_BYTES);
    let (records, meta) = read_on_all(text.as_bytes(), &ReadOptions { skip_bad: true, ..of(Format::Spc) }).unwrap();
    let mut last = 0;
    let mut good = Vec::new();
    for i in 0..60_000 {
        if time_of(i) >= last {
            last = time_of(i);
            good.push(i * 512);
        }
    }
    assert_eq!(records.iter().map(|record| record.offset_bytes).collect::<Vec<_>>(), good);
    assert_eq!(meta.rejected, 60_000 - good.len() as u64);
    assert!(records.is_sorted_by_key(|record| record.arrival_ns));

    // The one line that goes back is the first of a chunk, for every start of that chunk.
    for back in (1..30).map(|i| i * 257) {
        let lines = |i: u64| format!("0,{i},512,R,{}.5,{i:0>40}\n", if i == back { 0 } else { i });
        let text: String = (0..7_500).map(lines).collect();
        let error = read_on_all(text.as_bytes(), &of(Format::Spc)).unwrap_err();
        assert_eq!((error.place, error.field), (Place::Line(back + 1), "time"), "{back}");
    }
}

#[test]
fn files_have_their_own_lines_and_common_names() {
    let inputs = |texts: &[&str]| -> Vec<Input> {
        let named = |(i, text): (usize, &&str)| Input::from_bytes(&format!("f{i}"), text.as_bytes().to_vec()).unwrap();
        texts.iter().enumerate().map(named).collect()
    };
    let mut first = msr_lines(5_000).join("\n");
    let all = |inputs| {
        let mut reader = TraceReader::from_inputs(inputs, &of(Format::Msr))?;
        let (mut batch, mut count) = (Vec::new(), 0);
        while reader.next_batch(&mut batch)? {
            count += batch.len();
        }
        Ok::<_, TraceError>((count, reader.meta().devices.len()))
    };
    let devices = all(inputs(&[&first])).unwrap().1;
    assert_eq!(all(inputs(&[&first, &first])).unwrap(), (10_000, devices));
    let error = all(inputs(&[&first, &format!("{first}\nx")])).unwrap_err();
    assert_eq!((error.file.as_str(), error.place), ("f1", Place::Line(5_001)));
    first.push_str("\nx");
    let error = all(inputs(&[&first, "y"])).unwrap_err();
    assert_eq!((error.file.as_str(), error.place), ("f0", Place::Line(5_001)));
}

#[test]
fn lines_end_within_64_kib() {
    let good = "128166372003061629,hm,0,Read,0,512,1";
    let line = |length: usize| format!("128166372003061629,{},0,Read,0,512,1", "h".repeat(length - 34));
    let skipping = ReadOptions { skip_bad: true, ..of(Format::Msr) };
    assert_eq!(read(line(LINE_BYTES_MAX).as_bytes(), &of(Format::Msr)).unwrap().0.len(), 1);
    let text = format!("{good}\n{}\n{good}\n", line(LINE_BYTES_MAX + 1));
    assert_eq!(read(text.as_bytes(), &of(Format::Msr)).unwrap_err().place, Place::Line(2));
    assert_eq!(read(text.as_bytes(), &skipping).unwrap().0.len(), 2);
    // A file without lines is not a trace, even if bad lines are skipped.
    let text = format!("{good}\n\n{}\n{good}\n", line(2 * CHUNK_BYTES));
    assert_eq!(read(text.as_bytes(), &skipping).unwrap_err().place, Place::Line(3));
}

#[test]
fn a_cut_archive_is_an_error() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(msr_lines(50_000).join("\n").as_bytes()).unwrap();
    let mut bytes = encoder.finish().unwrap();
    assert_eq!(read(&bytes, &ReadOptions::default()).unwrap().0.len(), 50_000);
    bytes.truncate(bytes.len() - 100);
    let mut reader =
        TraceReader::from_inputs(vec![Input::from_bytes("t.gz", bytes).unwrap()], &ReadOptions::default()).unwrap();
    let mut batch = Vec::new();
    let error = loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("the end was not missed"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "t.gz: the compressed file is cut off");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_on_one_line(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        for format in Format::ALL {
            if let Err(error) = read(&bytes, &of(format)) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn near_misses_are_read_or_refused(
        text in "(([0-9]{1,20}|-1|18446744073709551615|9223372036854775807|[0-9]{0,10}\\.[0-9]{0,10}|[RWrwx01]|Read|Write|[0-9a-f]{1,4})[, \t]){3,9}\n{1,2}"
    ) {
        let headers = [
            "", "Timestamp,Response,IOType,LUN,Offset,Size\n", "version,time,op,size,lbn\n", "#ELAPSED_USECS.D,OP.I,LBA.I,NBLKS.I,LATENCY_USECS.D\n",
            "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n", "ts_us;volume;op;lba;bytes;latency_ms\n",
        ];
        for format in Format::ALL {
            for header in headers {
                let text = format!("{header}{}", if format == Format::Csv { text.replace([',', ' '], ";") } else { text.clone() });
                for skip_bad in [false, true] {
                    if let Ok((records, meta)) = read(text.as_bytes(), &ReadOptions { skip_bad, ..of(format) }) {
                        for record in &records {
                            prop_assert!(record.end_bytes() < 1 << 63);
                            prop_assert!((record.device as usize) < meta.devices.len());
                        }
                    }
                }
            }
        }
    }
}
