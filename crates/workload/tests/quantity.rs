//! Quantities with units: exact parsing, exact printing, and clear errors.

use headstack_workload::quantity::{
    LineCoding, format_bytes, format_duration_ns, format_rate, parse_bytes, parse_duration_ns, parse_link_rate,
    parse_rate_bytes_per_s, parse_rpm,
};
use headstack_workload::{Bytes, DurationNs, Rate, Rpm};
use proptest::prelude::*;
use serde::Deserialize;

#[test]
fn sizes_keep_decimal_and_binary_apart() {
    for (text, bytes) in [
        ("64KiB", 65_536),
        ("4 KiB", 4_096),
        ("36.7GB", 36_700_000_000),
        ("512B", 512),
        ("512", 512),
        ("1_000", 1_000),
        ("1MB", 1_000_000),
        ("1MiB", 1_048_576),
        ("1kB", 1_000),
        ("0.5KiB", 512),
        ("1.1KiB", 1_126),
        ("1.9KiB", 1_946),
        ("2TiB", 2 << 40),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn sizes_of_requests_are_written_with_a_bare_k_or_m() {
    for (text, bytes) in [("4k", 4096), ("4K", 4096), ("64k", 65_536), ("1m", 1 << 20), ("1M", 1 << 20), ("0.5k", 512)]
    {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn other_bare_prefixes_are_refused_with_both_readings() {
    for (text, readings) in [("4G", "GiB"), ("4g", "GB"), ("9.1G", "GB"), ("2T", "TiB"), ("4kb", "KiB"), ("4Mb", "MB")]
    {
        let error = parse_bytes(text).unwrap_err().to_string();
        assert!(error.contains(readings), "{error}");
    }
}

#[test]
fn the_rate_of_a_line_is_that_of_its_data_by_its_code() {
    let data = |text: &str, coding| parse_link_rate(text).unwrap().data(coding).0;
    for (text, ten, eight) in [
        ("6Gb/s", 600e6, 750e6),
        ("6Gbit/s", 600e6, 750e6),
        ("1.5Gb/s", 150e6, 187.5e6),
        ("12Gb/s", 1200e6, 1500e6),
        ("600MB/s", 600e6, 600e6),
        ("1Gb/s", 100e6, 125e6),
    ] {
        assert_eq!((data(text, LineCoding::TenBits), data(text, LineCoding::EightBits)), (ten, eight), "{text}");
        let printed = parse_link_rate(text).unwrap().to_string();
        assert_eq!(parse_link_rate(&printed), parse_link_rate(text), "{printed}");
    }
}

#[test]
fn what_is_no_size_is_refused() {
    for text in [
        "",
        "KiB",
        "-4KiB",
        "4.KiB",
        ".5KiB",
        "1.5",
        "0.5B",
        "4Kib",
        "1e3",
        "1,000",
        "4 KiB x",
        "1..5KB",
        "16EiB",
        "16777216TiB",
        "0.0001KiB",
        "1.0_0KB",
    ] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
}

#[test]
fn durations_are_signed_and_exact() {
    for (text, ns) in [
        ("8.5ms", 8_500_000),
        ("-0.483ms", -483_000),
        ("120us", 120_000),
        ("120µs", 120_000),
        ("10s", 10_000_000_000),
        ("5min", 300_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("3ns", 3),
        ("0ms", 0),
        ("3.9867841ms", 3_986_784),
    ] {
        assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
    }
    for text in ["", "5", "5m", "--5ms", "5 sec", "0.1ns", "300y", "3000000h"] {
        assert!(parse_duration_ns(text).is_err(), "{text}");
    }
}

#[test]
fn rates_distinguish_bits_and_bytes() {
    for (text, bytes_per_s) in
        [("69MB/s", 69e6), ("560Mb/s", 70e6), ("1.1MiB/s", 1.1 * 1_048_576.0), ("1Gb/s", 125e6), ("8b/s", 1.0)]
    {
        assert_eq!(parse_rate_bytes_per_s(text), Ok(bytes_per_s), "{text}");
    }
    for text in ["69", "69MB", "69M/s", "-1MB/s", "69MBps"] {
        assert!(parse_rate_bytes_per_s(text).is_err(), "{text}");
    }
}

#[test]
fn spindle_speeds_are_positive() {
    assert_eq!(parse_rpm("15000rpm"), Ok(15_000.0));
    assert_eq!(parse_rpm("10_045.5 rpm"), Ok(10_045.5));
    for text in ["0rpm", "15000", "15k rpm", "-1rpm"] {
        assert!(parse_rpm(text).is_err(), "{text}");
    }
}

#[test]
fn rates_and_speeds_beyond_any_device_are_refused() {
    assert_eq!(parse_rate_bytes_per_s("1000000TB/s"), Ok(1e18));
    assert_eq!(parse_rpm("1000000000rpm"), Ok(1e9));
    // Larger rates would print with more digits than can be parsed.
    for text in ["1000001TB/s", "88888000000158800000001604759210TB/s"] {
        let error = parse_rate_bytes_per_s(text).unwrap_err().to_string();
        assert!(error.contains("out of range; the maximum is 10^18 bytes per second"), "{error}");
    }
    let error = parse_rpm("340282366920938463463374607431768211455rpm").unwrap_err().to_string();
    assert!(error.contains("out of range; the maximum is 10^9 rpm"), "{error}");
}

#[test]
fn exact_text_is_the_shortest_sensible() {
    for (bytes, text) in [
        (65_536, "64KiB"),
        (36_700_000_000, "36.7GB"),
        (512, "512B"),
        (0, "0B"),
        (1_000, "1KB"),
        (1_234_567, "1234.567KB"),
        (1_025, "1.025KB"),
    ] {
        assert_eq!(Bytes(bytes).to_string(), text);
    }
    assert_eq!(DurationNs(-483_000).to_string(), "-483us");
    assert_eq!(DurationNs(8_512_345).to_string(), "8.512345ms");
    assert_eq!(DurationNs(300_000_000_000).to_string(), "5min");
    assert_eq!(Rate(70e6).to_string(), "70MB/s");
    assert_eq!(Rpm(15_000.0).to_string(), "15000rpm");
}

#[test]
fn text_for_people_has_four_digits() {
    assert_eq!(format_bytes(65_536), "64KiB");
    assert_eq!(format_bytes(36_700_000_000), "36.7GB");
    assert_eq!(format_bytes(36_703_918_080), "36.7GB");
    assert_eq!(format_bytes(9_186_123_776), "9.186GB");
    assert_eq!(format_duration_ns(8_512_345), "8.512ms");
    assert_eq!(format_duration_ns(-483_000), "-483us");
    assert_eq!(format_duration_ns(90_000_000_000), "90s");
    assert_eq!(format_duration_ns(5_400_000_000_000), "90min");
    // Minutes and hours are named from ten of them on.
    assert_eq!(
        (format_duration_ns(599_000_000_000).as_str(), format_duration_ns(600_000_000_000).as_str()),
        ("599s", "10min")
    );
    assert_eq!(format_duration_ns(35_940_000_000_000), "599min");
    assert_eq!(format_duration_ns(36_000_000_000_000), "10h");
    assert_eq!((format_bytes(1_023), format_bytes(10_001)), ("1.023KB".to_owned(), "10KB".to_owned()));
    assert_eq!(format_rate(69_123_456.0), "69.12MB/s");
    assert_eq!(format_rate(0.0), "0B/s");
}

#[test]
fn quantities_read_and_write_text() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Sheet {
        capacity: Bytes,
        sizes: Vec<Bytes>,
        seek: Option<DurationNs>,
        settle: Option<DurationNs>,
        rate: Rate,
        spindle: Rpm,
    }
    let sheet: Sheet = toml::from_str(
        "capacity = \"36.7GB\"\nsizes = [512, \"4KiB\"]\nseek = \"-0.483ms\"\nrate = \"560Mb/s\"\nspindle = \"7200rpm\"",
    )
    .unwrap();
    let expected = Sheet {
        capacity: Bytes(36_700_000_000),
        sizes: vec![Bytes(512), Bytes(4_096)],
        seek: Some(DurationNs(-483_000)),
        settle: None,
        rate: Rate(70e6),
        spindle: Rpm(7_200.0),
    };
    assert_eq!(sheet, expected);
    assert_eq!(serde_json::to_string(&Bytes(65_536)).unwrap(), "\"64KiB\"");
    // A bare number has no unit to check.
    assert!(serde_json::from_str::<DurationNs>("5").is_err());
    assert!(serde_json::from_str::<Rate>("5.0").is_err());
    assert!(serde_json::from_str::<Bytes>("-5").is_err());
}

proptest! {
    /// Any text is a quantity or causes a one-line error, and a valid text prints as itself.
    #[test]
    fn no_text_does_more_than_an_error(text in "[0-9._+ -]{0,12}[a-zA-Zµ/ ]{0,6}", any in ".{0,24}") {
        for text in [text, any] {
            let bytes = parse_bytes(&text).map(|bytes| parse_bytes(&Bytes(bytes).to_string()) == Ok(bytes));
            let rate = parse_link_rate(&text).map(|rate| parse_link_rate(&rate.to_string()).is_ok());
            let duration = parse_duration_ns(&text).map(|ns| parse_duration_ns(&DurationNs(ns).to_string()) == Ok(ns));
            for told in [bytes, rate, duration] {
                match told {
                    Ok(prints_as_itself) => prop_assert!(prints_as_itself, "{text:?}"),
                    Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
                }
            }
        }
    }

    /// A bare prefix means the binary unit, for any number.
    #[test]
    fn a_bare_prefix_is_the_binary_unit(number in 0u64..1 << 40, tenths in 0u64..10) {
        for (bare, unit) in [("k", "KiB"), ("K", "KiB"), ("m", "MiB"), ("M", "MiB")] {
            prop_assert_eq!(parse_bytes(&format!("{number}{bare}")), parse_bytes(&format!("{number}{unit}")));
            prop_assert_eq!(parse_bytes(&format!("{number}.{tenths} {bare}")), parse_bytes(&format!("{number}.{tenths}{unit}")));
        }
    }
}

proptest! {
    #[test]
    fn exact_text_parses_back(bytes: u64, ns in -i64::MAX..=i64::MAX, rate in 0.0..1e13f64, rpm in 1e-3..1e6f64) {
        prop_assert_eq!(parse_bytes(&Bytes(bytes).to_string()), Ok(bytes));
        prop_assert_eq!(parse_duration_ns(&DurationNs(ns).to_string()), Ok(ns));
        prop_assert_eq!(parse_rate_bytes_per_s(&Rate(rate).to_string()), Ok(rate));
        prop_assert_eq!(parse_rpm(&Rpm(rpm).to_string()), Ok(rpm));
    }

    #[test]
    fn multiples_of_units_parse_back(
        count in 0u64..2_000_000,
        unit in prop::sample::select(vec![1u64, 512, 1_000, 1_024, 1_000_000, 1 << 20, 1_000_000_000, 1 << 30]),
    ) {
        let bytes = count * unit;
        prop_assert_eq!(parse_bytes(&Bytes(bytes).to_string()), Ok(bytes));
    }

    #[test]
    fn text_for_people_is_right_to_its_digits(bytes: u64, ns in -i64::MAX / 2..=i64::MAX / 2, rate in 1e-3..1e13f64) {
        let close = |shown: f64, value: f64| (shown - value).abs() <= 6e-4 * value.abs();
        prop_assert!(close(parse_bytes(&format_bytes(bytes)).unwrap() as f64, bytes as f64));
        prop_assert!(close(parse_duration_ns(&format_duration_ns(ns)).unwrap() as f64, ns as f64));
        prop_assert!(close(parse_rate_bytes_per_s(&format_rate(rate)).unwrap(), rate));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,24}", number in "[0-9._]{0,50}", unit in "(B|KiB|TB|ms|h|MB/s|rpm)?") {
        for text in [text, format!("{number}{unit}")] {
            let _ = (parse_bytes(&text), parse_duration_ns(&text), parse_rate_bytes_per_s(&text), parse_rpm(&text));
        }
    }
}
