//! Measures how fast text is read on one core, in CPU time, for formats implemented in code and for tables declared in
//! files.
//!
//! `cargo bench -p headstack-trace --no-default-features --bench reading -- [FOLDER]` keeps the files in a directory
//! for comparison with other programs: `benches/peers.py polars-read FILE`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use headstack_trace::{CsvColumns, Format, Input, ReadOptions, TraceReader};

const ROWS: u64 = 1_000_000;
const ROUNDS: usize = 5;

/// Returns the CPU time of all threads of this process in s; Linux counts in steps of 10 ms.
fn processor_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let behind = stat.rsplit_once(") ").expect("stat contains a name in parentheses").1;
    let field = |place: usize| -> f64 {
        behind.split(' ').nth(place).expect("stat has the field").parse().expect("the field is a number")
    };
    (field(11) + field(12)) / 100.0
}

/// Returns numbers without a pattern that a branch predictor could learn.
fn mixed(number: u64) -> u64 {
    let x = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

fn file(line: fn(u64, u64) -> String) -> String {
    (0..ROWS).fold(String::new(), |mut text, number| {
        writeln!(text, "{}", line(number, mixed(number))).expect("writing to a string cannot fail");
        text
    })
}

/// Returns the median and maximum speed in million rows per second of CPU time.
fn speed(text: &str, options: &ReadOptions) -> (f64, f64) {
    let mut speeds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let input = Input::from_bytes("bench", text.as_bytes().to_vec()).expect("the input is not empty");
            let begin_s = processor_s();
            let mut reader = TraceReader::from_inputs(vec![input], options).expect("the input has the format");
            let (mut batch, mut rows) = (Vec::new(), 0);
            while reader.next_batch(&mut batch).expect("all lines are valid") {
                rows += batch.len() as u64;
            }
            assert_eq!(rows, ROWS);
            rows as f64 / 1e6 / (processor_s() - begin_s)
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    (speeds[ROUNDS / 2], speeds[ROUNDS - 1])
}

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the global pool is built once");
    let folder = env::args().skip(1).find(|argument| !argument.starts_with("--"));
    type Line = fn(u64, u64) -> String;
    let msr: Line = |n, x| {
        let kind = if x % 3 == 0 { "Write" } else { "Read" };
        format!(
            "{},hm,{},{kind},{},{},{}",
            128_166_372_003_061_629 + n * 1_117,
            x % 2,
            x % (1 << 38),
            4_096 << (x % 4),
            x % 99_999
        )
    };
    let alibaba: Line = |n, x| {
        format!(
            "{},{},{},{},{}",
            x % 1_000,
            if x % 3 == 0 { 'R' } else { 'W' },
            x % (1 << 36),
            4_096 << (x % 4),
            1_577_808_000_000_000 + n * 13
        )
    };
    let tencent: Line =
        |n, x| format!("{},{},{},{},{}", 1_538_323_200 + n / 9_000, x % (1 << 30), 8 << (x % 4), x % 2, x % 5_000);
    let fiu: Line = |n, x| {
        let kind = if x % 3 == 0 { 'R' } else { 'W' };
        format!("{} {} nfsd {} 8 {kind} 6 0 {x:032x}", 89_967_195_974u64 + n * 9_113, 4_000 + x % 20, x % (1 << 30))
    };
    let twitter: Line = |n, x| format!("{},q:q:1:{:x},17,{},{},get,0", n / 20_000, x % 400_000, x % 900, x % 64);
    let tectonic: Line = |n, x| {
        format!("{} {} 65536 {}.{} {} 1 17 5", x % 90_000, x % 128 * 65_536, 1_572_566_425 + n / 300, n % 10, 1 + x % 6)
    };
    let arc: Line = |n, x| format!("{} {} 0 {n}", x % 900_000, 1 + x % 8);
    let keys: Line = |_, x| format!("user:{}:profile", x % 400_000);
    let msr_columns = "time=1:filetime,offset=5,length=6,op=4,device=2+3,response=7:100ns,read=Read,write=Write";
    let alibaba_columns = "time=5:us,offset=3,length=4,op=2,device=1,read=R,write=W";
    let tencent_columns = "time=1:s,offset=2:512,length=3:512,op=4,device=5,read=0,write=1";
    let cases: [(&str, Line, Option<&str>); 11] = [
        ("msr", msr, None),
        ("msr", msr, Some(msr_columns)),
        ("alibaba", alibaba, None),
        ("alibaba", alibaba, Some(alibaba_columns)),
        ("tencent", tencent, None),
        ("tencent", tencent, Some(tencent_columns)),
        ("fiu", fiu, None),
        ("twitter", twitter, None),
        ("tectonic", tectonic, None),
        ("arc", arc, None),
        ("keys", keys, None),
    ];
    for (name, line, columns) in cases {
        let text = file(line);
        if let (Some(folder), None) = (&folder, columns) {
            fs::write(Path::new(folder).join(format!("{name}.txt")), &text).expect("the directory exists");
        }
        let csv = columns.map(|columns| CsvColumns::parse(columns).expect("the declaration is valid"));
        let format = if csv.is_some() { None } else { Format::from_name(name) };
        let (median, best) = speed(&text, &ReadOptions { format, csv, ..ReadOptions::default() });
        let how = columns.map_or("", |_| ", declared");
        println!(
            "{name}{how}: {median:.1} million rows/s, at best {best:.1}, {:.0} MB/s",
            median * text.len() as f64 / ROWS as f64
        );
    }
}
