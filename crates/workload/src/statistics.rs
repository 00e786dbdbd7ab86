//! Goodness of fit for tests of random draws.

/// Returns Pearson's chi-square of `counts` for `probabilities`, in standard deviations from its mean. Neighboring
/// classes are merged until each expects at least 10 draws, so that chi-square applies.
pub(crate) fn chi_square_z(counts: &[u64], probabilities: &[f64]) -> f64 {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    let (mut chi_square, mut classes) = (0.0, 0u32);
    let (mut count, mut expected) = (0.0, 0.0);
    let mut left: f64 = probabilities.iter().sum::<f64>() * total as f64;
    for (&c, &p) in counts.iter().zip(probabilities) {
        count += c as f64;
        expected += p * total as f64;
        left -= p * total as f64;
        let rest_is_a_class = left >= 10.0;
        let nothing_is_left = left < 1e-3;
        if expected >= 10.0 && (rest_is_a_class || nothing_is_left) {
            chi_square += (count - expected).powi(2) / expected;
            classes += 1;
            (count, expected) = (0.0, 0.0);
        }
    }
    assert!(expected < 1e-3 * total as f64, "a class was left over");
    let degrees = f64::from(classes - 1);
    if degrees == 0.0 {
        return 0.0;
    }
    (chi_square - degrees) / (2.0 * degrees).sqrt()
}

/// Asserts that `counts` fit `probabilities`. A fit that is too good also fails.
pub(crate) fn assert_fits(what: &str, counts: &[u64], probabilities: &[f64]) {
    let z = chi_square_z(counts, probabilities);
    assert!(z.abs() < 4.5, "{what}: chi-square is {z:.1} sigma from its mean");
}
