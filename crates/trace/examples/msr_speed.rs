//! How fast an MSR CSV is read: `msr_speed make FILE ROWS` writes one, `msr_speed read FILE` reads it and says.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use headstack_trace::{ReadOptions, TraceReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [command, file, rows] if command == "make" => make(Path::new(file), rows.parse()?)?,
        [command, file] if command == "read" => read(Path::new(file))?,
        _ => return Err("msr_speed make FILE ROWS, or msr_speed read FILE".into()),
    }
    Ok(())
}

/// Rows as in the traces of 2007: one volume a file, 18-digit stamps, offsets of several GB, responses of some digits.
fn make(file: &Path, rows: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    let (mut state, mut ticks) = (1u64, 128_166_372_003_061_629);
    let mut random = |below: u64| {
        // Knuth's MMIX generator; only the shape of the rows matters.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..rows {
        ticks += random(100_000);
        let kind = if random(3) == 0 { "Write" } else { "Read" };
        let (offset, size) = (random(1 << 24) * 512, (1 + random(128)) * 512);
        writeln!(out, "{ticks},proj,2,{kind},{offset},{size},{}", 600 + random(100_000))?;
    }
    out.flush()
}

fn read(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let mut reader = TraceReader::open(&[file], &ReadOptions::default())?;
    let (mut batch, mut requests, mut bytes) = (Vec::new(), 0, 0u64);
    while reader.next_batch(&mut batch)? {
        requests += batch.len();
        bytes += batch.iter().map(|record| u64::from(record.length_bytes)).sum::<u64>();
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = requests as f64 / seconds / 1e6;
    println!("{requests} requests, {bytes} bytes moved, in {seconds:.3} s: {rate:.1} million a second");
    Ok(())
}
