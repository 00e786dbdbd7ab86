//! Quantities with units: what is accepted prints as a text that parses to the same value.

#![no_main]

use headstack_workload::quantity::{
    Bytes, DurationNs, QuantityError, Rate, Rpm, format_bytes, format_duration_ns, format_rate, parse_bytes,
    parse_duration_ns, parse_rate_bytes_per_s, parse_rpm,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    round_trip(text, parse_bytes, |bytes| Bytes(bytes).to_string());
    round_trip(text, parse_duration_ns, |ns| DurationNs(ns).to_string());
    round_trip(text, parse_rate_bytes_per_s, |rate| Rate(rate).to_string());
    round_trip(text, parse_rpm, |rpm| Rpm(rpm).to_string());
    if let Ok(bytes) = parse_bytes(text) {
        // 2^64 - 1 bytes round up to a figure that is no longer in range.
        let printed = parse_bytes(&format_bytes(bytes)).unwrap_or(u64::MAX);
        assert_near(bytes as f64, printed as f64);
    }
    if let Ok(ns) = parse_duration_ns(text) {
        let printed = parse_duration_ns(&format_duration_ns(ns)).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX });
        assert_near(ns as f64, printed as f64);
    }
    if let Ok(rate) = parse_rate_bytes_per_s(text)
        && rate >= 1.0
    {
        assert_near(rate, parse_rate_bytes_per_s(&format_rate(rate)).expect("what people read is a rate"));
    }
});

fn round_trip<T: Copy + PartialEq + std::fmt::Debug>(
    text: &str,
    parse: fn(&str) -> Result<T, QuantityError>,
    print: impl Fn(T) -> String,
) {
    match parse(text) {
        Ok(value) => {
            let printed = print(value);
            assert_eq!(parse(&printed), Ok(value), "printed as {printed:?}");
            assert_eq!(print(value), printed);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    }
}

/// Four digits are kept.
fn assert_near(value: f64, printed: f64) {
    assert!((value - printed).abs() <= value.abs() * 5.1e-4, "{value} became {printed}");
}
