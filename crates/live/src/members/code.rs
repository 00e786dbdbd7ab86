//! [`Code`]: how redundancy follows from data. Each redundant unit of a stripe is a sum of its data units, each times a
//! constant, over GF(2^8) with the polynomial 0x11d (as in Linux' raid6). A copy is a sum of one; P of RAID 5 and 6 has
//! a factor of 1 for each unit, Q a factor of 2^i for unit i (H. P. Anvin, "The mathematics of RAID-6"). Codes of k+m
//! use a Cauchy matrix, any part of which can be inverted (Bloemer et al., 1995), scaled so that its first row is P.

use headstack_sim::array::description::Level;

/// Logarithms to base 2, and powers of 2 twice over.
struct Tables {
    log: [u8; 256],
    power: [u8; 510],
}

const TABLES: Tables = tables();

const fn tables() -> Tables {
    let (mut log, mut power) = ([0; 256], [0; 510]);
    let (mut at, mut value) = (0, 1u16);
    while at < 255 {
        power[at] = value as u8;
        power[at + 255] = value as u8;
        log[value as usize] = at as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11d;
        }
        at += 1;
    }
    Tables { log, power }
}

fn times(one: u8, other: u8) -> u8 {
    if one == 0 || other == 0 {
        return 0;
    }
    TABLES.power[usize::from(TABLES.log[usize::from(one)]) + usize::from(TABLES.log[usize::from(other)])]
}

fn inverse(value: u8) -> u8 {
    debug_assert!(value != 0, "an element without inverse");
    TABLES.power[255 - usize::from(TABLES.log[usize::from(value)])]
}

/// Adds `factor` times `what` to `into`.
pub fn add(into: &mut [u8], factor: u8, what: &[u8]) {
    match factor {
        0 => {}
        1 => into.iter_mut().zip(what).for_each(|(sum, byte)| *sum ^= byte),
        _ => into.iter_mut().zip(what).for_each(|(sum, byte)| *sum ^= times(factor, *byte)),
    }
}

/// The factors of a level: for each redundant unit, one per data unit.
#[derive(Clone, Debug)]
pub struct Code {
    factors: Vec<Vec<u8>>,
}

impl Code {
    /// Returns the code of copies of one data unit.
    pub fn for_copies(copies: usize) -> Code {
        Code { factors: vec![vec![1]; copies - 1] }
    }

    /// Returns the code of a level with parity; `None` for one with log-structured records.
    pub fn for_rows(level: Level, data: usize) -> Option<Code> {
        let sums = vec![1; data];
        let factors = match level {
            Level::Raid5 => vec![sums],
            Level::Raid6 => vec![sums, (0..data).map(|unit| TABLES.power[unit % 255]).collect()],
            Level::Erasure { parity, .. } => cauchy(data as u8, parity as u8),
            Level::Concat | Level::Raid0 | Level::Raid1 | Level::Raid10 => return None,
            Level::Raidz { .. } | Level::Draid { .. } => return None,
        };
        Some(Code { factors })
    }

    /// Number of redundant units of a stripe.
    pub fn redundant(&self) -> usize {
        self.factors.len()
    }

    /// The factor of data unit `unit` in redundant unit `number`.
    pub fn factor(&self, number: usize, unit: usize) -> u8 {
        self.factors[number][unit]
    }

    /// Solves for the data units of `missing` from as many redundant ones: for each, a factor per unit of `used`.
    pub fn solution(&self, used: &[usize], missing: &[usize]) -> Vec<Vec<u8>> {
        let count = missing.len();
        // Gauss-Jordan elimination, with the identity matrix appended.
        let mut rows: Vec<Vec<u8>> = (0..count)
            .map(|at| {
                let left = missing.iter().map(|&unit| self.factor(used[at], unit));
                left.chain((0..count).map(|other| u8::from(other == at))).collect()
            })
            .collect();
        for at in 0..count {
            let pivot = (at..count).find(|&row| rows[row][at] != 0).expect("any part of the code can be inverted");
            rows.swap(at, pivot);
            let scale = inverse(rows[at][at]);
            rows[at].iter_mut().for_each(|factor| *factor = times(*factor, scale));
            let own = rows[at].clone();
            for (other, row) in rows.iter_mut().enumerate() {
                if other != at {
                    let factor = row[at];
                    add(row, factor, &own);
                }
            }
        }
        rows.into_iter().map(|row| row[count..].to_vec()).collect()
    }
}

/// 1 / (x + y) for each redundant unit x and data unit y, scaled so that the first row is all ones.
fn cauchy(data: u8, redundant: u8) -> Vec<Vec<u8>> {
    let raw = |x: u8, y: u8| inverse(x ^ (redundant + y));
    (0..redundant).map(|x| (0..data).map(|y| times(raw(x, y), inverse(raw(0, y)))).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_linux_raid6() {
        let code = Code::for_rows(Level::Raid6, 10).unwrap();
        assert_eq!(code.factors[0], [1; 10]);
        assert_eq!(code.factors[1], [1, 2, 4, 8, 16, 32, 64, 128, 0x1d, 0x3a]);
        assert_eq!((times(0x80, 2), times(0x53, inverse(0x53))), (0x1d, 1));
    }

    /// In every code, any redundant units restore as many data units.
    #[test]
    fn any_part_of_a_code_can_be_inverted() {
        for (data, parity) in (1..=8).flat_map(|data| (1..=8).map(move |parity| (data, parity))) {
            let code = Code::for_rows(Level::Erasure { data, parity }, data as usize).unwrap();
            assert_eq!(code.factors[0], vec![1; data as usize]);
            let sets = |count: u32| {
                (0..1u32 << count).map(move |set| (0..count as usize).filter(move |at| set >> at & 1 == 1))
            };
            for missing in sets(data).map(Vec::from_iter) {
                for used in sets(parity).map(Vec::from_iter).filter(|used| used.len() == missing.len()) {
                    let solution = code.solution(&used, &missing);
                    for (at, &unit) in missing.iter().enumerate() {
                        // A difference of only one unit appears in that unit only.
                        let seen: Vec<u8> = used.iter().map(|&number| times(code.factor(number, unit), 7)).collect();
                        for (row, factors) in solution.iter().enumerate() {
                            let sum =
                                factors.iter().zip(&seen).fold(0, |sum, (factor, byte)| sum ^ times(*factor, *byte));
                            assert_eq!(sum, if row == at { 7 } else { 0 });
                        }
                    }
                }
            }
        }
    }
}
