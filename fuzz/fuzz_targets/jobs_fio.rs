//! fio's job files, and the generator on what they ask for. A second file is what every `include` finds: the text
//! behind a byte 0.

#![no_main]

use std::io;

use headstack_jobfiles::{JobFile, fio};
use headstack_workload::{Generator, Span};
use libfuzzer_sys::fuzz_target;

const SPAN: Span = Span { start_bytes: 1 << 20, length_bytes: 1 << 30 };
const SECTOR_BYTES: u32 = 512;
const REQUESTS: usize = 64;

fuzz_target!(|text: &str| {
    let (text, included) = text.split_once('\0').unwrap_or((text, ""));
    let environment = |name: &str| match name {
        "$pagesize" | "$mb_memory" | "$ncpus" => Some("4096".to_owned()),
        "SIZE" => Some("64m".to_owned()),
        _ => None,
    };
    let include = |_: &str| -> io::Result<String> { Ok(included.to_owned()) };
    let file = match fio::read("fuzz.fio", text, &[], &environment, &include) {
        Ok(file) => file,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    };
    assert_is_sound(&file);
    let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if let Err(error) = fio::from_arguments(&arguments) {
        assert_eq!(error.to_string().lines().count(), 1, "an error is one line");
    }
});

fn assert_is_sound(file: &JobFile) {
    for remark in &file.remarks {
        assert!(remark.line > 0 && remark.message.lines().count() == 1, "{remark:?}");
    }
    for job in file.phases.iter().flat_map(|phase| &phase.jobs) {
        assert!(job.copies > 0 && job.slots > 0);
        job.workload.validate().expect("an accepted job has a possible workload");
        // A request may be larger than the span, or no multiple of the sector: that is an error, not a panic.
        let Ok(mut generator) = Generator::new(&job.workload, SPAN, SECTOR_BYTES, 1) else { continue };
        for _ in 0..REQUESTS {
            let request = generator.next();
            let end_bytes = request.offset_bytes + u64::from(request.length_bytes);
            let is_inside =
                request.offset_bytes >= SPAN.start_bytes && end_bytes <= SPAN.start_bytes + SPAN.length_bytes;
            assert!(request.length_bytes == 0 || is_inside, "{request:?}");
        }
    }
}
