//! Statistical tests of the address distributions.

use super::*;
use crate::random::Purpose;
use crate::statistics::assert_fits;

fn zipf_law(n: u64, theta: f64) -> Vec<f64> {
    let masses: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-theta)).collect();
    let sum: f64 = masses.iter().sum();
    masses.iter().map(|mass| mass / sum).collect()
}

#[test]
fn zipf_ranks_follow_the_exact_law() {
    for theta in [0.5, 0.8, 0.99, 1.0, 1.2, 3.0] {
        for n in [1, 2, 3, 1_000, 16_001] {
            let zipf = Zipf::new(n, theta);
            let mut random = Random::new(n, Purpose::Addresses);
            let mut counts = vec![0u64; n as usize];
            for _ in 0..1_000_000 {
                counts[zipf.rank(&mut random) as usize] += 1;
            }
            assert_fits(&format!("zipf {theta} of {n}"), &counts, &zipf_law(n, theta));
        }
    }
}

#[test]
fn zipf_is_exact_over_a_tebi_of_ranks() {
    // Share of the first m ranks, from the Euler-Maclaurin sum of k^-theta.
    let (n, theta) = (1u64 << 40, 0.9);
    let partial = |m: f64| {
        let head: f64 = (1..100).map(|k| f64::from(k).powf(-theta)).sum();
        let integral = (m.powf(1.0 - theta) - 100f64.powf(1.0 - theta)) / (1.0 - theta);
        let ends = (m.powf(-theta) + 100f64.powf(-theta)) / 2.0;
        let slope = theta * (100f64.powf(-theta - 1.0) - m.powf(-theta - 1.0)) / 12.0;
        head + integral + ends + slope
    };
    let limits: Vec<f64> = (4..=20).map(|power| 4f64.powi(power)).collect();
    let total = partial(n as f64);
    let mut shares = vec![partial(limits[0]) / total];
    shares.extend(limits.windows(2).map(|pair| (partial(pair[1]) - partial(pair[0])) / total));
    let zipf = Zipf::new(n, theta);
    let mut random = Random::new(5, Purpose::Addresses);
    let mut counts = vec![0u64; limits.len()];
    for _ in 0..1_000_000 {
        let rank = zipf.rank(&mut random);
        counts[limits.partition_point(|&limit| limit <= rank as f64)] += 1;
    }
    assert_fits("zipf of 2^40", &counts, &shares);
}

#[test]
fn bands_that_meet_share_no_place_and_leave_none_out() {
    for count in [1_000, 1_001, 37] {
        let mut next = 0;
        for limits in [0.0, 0.05, 0.2, 0.731, 1.0].windows(2) {
            let (first, end) = band_places(count, limits[0], limits[1]);
            assert_eq!(first, next);
            next = end;
        }
        assert_eq!(next, count);
    }
    assert_eq!(band_places(1, 0.9, 1.0), (0, 1));
}

/// Returns how many of `draws` offsets fall into each of `cells` equal parts of `n` places, for a distribution without
/// scatter.
fn cell_counts(addresses: &Addresses, n: u64, cells: usize) -> Vec<u64> {
    let places = Places { first_bytes: 0, step_bytes: 1, count: n };
    let mut sampler = Sampler::new(addresses, places, Random::new(1, Purpose::Permutation));
    let mut random = Random::new(1, Purpose::Addresses);
    let mut counts = vec![0u64; cells];
    for _ in 0..1_000_000 {
        let offset = sampler.offset_bytes(&places, 8, Kind::Read, &mut random);
        counts[(offset as usize * cells) / n as usize] += 1;
    }
    counts
}

#[test]
fn hot_bands_get_their_shares() {
    // JESD219: 50 % of the accesses in the first 5 %, 30 % in the next 15 %, 20 % in the rest.
    let band = |from_percent, to_percent, share_percent| Band { from_percent, to_percent, share_percent };
    let bands = vec![band(0.0, 5.0, 50.0), band(5.0, 20.0, 30.0), band(20.0, 100.0, 20.0)];
    let counts = cell_counts(&Addresses::HotBands(bands), 100_000, 100);
    let shares: Vec<f64> = (0..100)
        .map(|cell| match cell {
            0..5 => 0.5 / 5.0,
            5..20 => 0.3 / 15.0,
            _ => 0.2 / 80.0,
        })
        .collect();
    assert_fits("hot bands", &counts, &shares);
}

#[test]
fn uniform_is_uniform() {
    let counts = cell_counts(&Addresses::Uniform, 1_000, 1_000);
    assert_fits("uniform", &counts, &[1e-3; 1_000]);
}

#[test]
fn once_takes_every_place_before_any_again_and_in_another_order() {
    let places = Places { first_bytes: 4096, step_bytes: 512, count: 1_000 };
    let mut sampler = Sampler::new(&Addresses::Once, places, Random::new(1, Purpose::Permutation));
    let mut random = Random::new(1, Purpose::Addresses);
    let mut round = || -> Vec<u64> {
        (0..places.count).map(|_| sampler.offset_bytes(&places, 512, Kind::Read, &mut random)).collect()
    };
    let rounds: Vec<Vec<u64>> = (0..1_000).map(|_| round()).collect();
    let all: Vec<u64> = (0..places.count).map(|index| places.offset_bytes(index)).collect();
    for round in &rounds {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all);
    }
    // Each place is equally likely to come first, 500th or last.
    for turn in [0, 499, 999] {
        let mut counts = vec![0u64; 20];
        rounds.iter().for_each(|round| counts[((round[turn] - 4096) / 512 / 50) as usize] += 1);
        assert_fits(&format!("turn {turn}"), &counts, &[0.05; 20]);
    }
    // Two random orders agree at one position on average, and the place after a given one is independent of it.
    let pairs = || rounds.windows(2);
    let same = pairs().map(|pair| pair[0].iter().zip(&pair[1]).filter(|(a, b)| a == b).count()).sum::<usize>();
    assert!((850..1_150).contains(&same), "{same} of 999 expected");
    let mut jumps = vec![0u64; 20];
    for round in &rounds {
        for pair in round.windows(2) {
            jumps[(((pair[1] + 512_000 - pair[0]) / 512 % 1_000) / 50) as usize] += 1;
        }
    }
    // A jump by 0 cannot occur.
    let shares: Vec<f64> = (0..20).map(|class| if class == 0 { 49.0 / 999.0 } else { 50.0 / 999.0 }).collect();
    assert_fits("jumps", &jumps, &shares);
}

#[test]
fn strides_leave_holes_go_back_and_begin_again() {
    let places = Places { first_bytes: 8, step_bytes: 4, count: 16 };
    let mut random = Random::new(1, Purpose::Addresses);
    let mut offsets = |zone_bytes, step_bytes, backwards, length: u32| -> Vec<u64> {
        let law = Addresses::Strided { zone_bytes, step_bytes, backwards };
        let mut sampler = Sampler::new(&law, places, Random::new(1, Purpose::Permutation));
        (0..8).map(|_| sampler.offset_bytes(&places, length, Kind::Read, &mut random)).collect()
    };
    // The last place at which a request fits is 68.
    assert_eq!(offsets(4, 12, false, 4), [8, 20, 32, 44, 56, 68, 8, 20]);
    assert_eq!(offsets(8, 24, false, 4), [8, 12, 32, 36, 56, 60, 8, 12]);
    assert_eq!(offsets(4, 4, true, 4), [8, 68, 64, 60, 56, 52, 48, 44]);
    // A request longer than a zone is a zone of its own, and zones may overlap.
    assert_eq!(offsets(4, 8, false, 8), [8, 16, 24, 32, 40, 48, 56, 64]);
    // A step past the end of the span starts over.
    assert_eq!(offsets(8, 1 << 63, false, 4), [8, 12, 8, 12, 8, 12, 8, 12]);
}

#[test]
fn normal_is_cut_off_and_keeps_its_shape() {
    let law = Addresses::Normal { mean_percent: 30.0, deviation_percent: 20.0 };
    let counts = cell_counts(&law, 100_000, 50);
    let below = |x: f64| 0.5 * libm::erfc(-(x - 0.3) / (0.2 * 2f64.sqrt()));
    let inside = below(1.0) - below(0.0);
    let shares: Vec<f64> =
        (0..50).map(|cell| f64::from(cell) / 50.0).map(|from| (below(from + 0.02) - below(from)) / inside).collect();
    assert_fits("normal", &counts, &shares);
}

#[test]
fn pareto_gives_80_percent_of_accesses_to_20_percent_of_blocks() {
    let blocks = 10_000;
    let mut counts = cell_counts(&Addresses::Pareto { h: 0.2 }, blocks, blocks as usize);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hottest: u64 = counts[..2_000].iter().sum();
    // Sorting by count instead of by rank raises the share slightly. 0.2 % covers this and the noise.
    let share = hottest as f64 / 1e6;
    assert!((0.798..0.804).contains(&share), "{share}");
    // By self-similarity, 64 % of the accesses go to 4 % of the blocks.
    let hotter: u64 = counts[..400].iter().sum();
    let share = hotter as f64 / 1e6;
    assert!((0.638..0.644).contains(&share), "{share}");
}
