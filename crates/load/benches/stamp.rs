//! Time of stamping and checking on one core, with buffers that stay in its cache: `cargo bench -p headstack-load
//! --bench stamp`.

use std::hint::black_box;
use std::time::Instant;

use headstack_load::integrity::{Expectation, IntegrityReport, Layout, Outcome, Scanner, Stamper};

/// Prints GB/s and nanoseconds per request, the best of five rounds.
fn best(name: &str, bytes: usize, mut request: impl FnMut(u64)) {
    let count = ((256 << 20) / bytes) as u64;
    let mut least_s = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        (0..count).for_each(&mut request);
        least_s = least_s.min(start.elapsed().as_secs_f64());
    }
    let ns = least_s * 1e9 / count as f64;
    println!("{name:<34} {:>7} B: {ns:>8.0} ns, {:>5.1} GB/s", bytes, bytes as f64 / ns);
}

fn main() {
    for (unit, sector, bytes) in [(512, 512, 512), (4096, 512, 4096), (4096, 512, 131_072), (4096, 4096, 131_072)] {
        let span = 1 << 30;
        let layout = Layout::new(span, unit, sector).expect("a layout");
        let stamper = Stamper::new(layout, None).expect("a ledger in memory");
        let mut buffer = vec![0; bytes];
        let requests = span / bytes as u64;
        let at = |request: u64| request * 7919 % requests * bytes as u64;
        let name = |what: &str| format!("{what}, sectors of {sector}");
        best(&name("fill and book"), bytes, |request| {
            let ticket = stamper.fill(at(request), black_box(&mut buffer)).expect("within the span");
            stamper.ended(ticket, Outcome::Acknowledged);
        });
        best(&name("fill and book, one place"), bytes, |_| {
            let ticket = stamper.fill(0, black_box(&mut buffer)).expect("within the span");
            stamper.ended(ticket, Outcome::Acknowledged);
        });
        let (mut expectation, mut report) = (Expectation::default(), IntegrityReport::default());
        best(&name("expect and check"), bytes, |_| {
            stamper.expect(0, bytes as u64, &mut expectation).expect("within the span");
            stamper.check(&expectation, black_box(&buffer), &mut report);
        });
        assert_eq!(report.faults(), 0);
        let mut scanner = Scanner::new(stamper.ledger());
        best(&name("scan"), bytes, |_| scanner.read(0, black_box(&buffer)).expect("within the span"));
        assert_eq!(scanner.finish().faults(), 0);
    }
}
