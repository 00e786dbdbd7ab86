//! Generates states of a window, a few of each kind at a time.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::state::{ChangeOutcome, CrashState, Member, Tear, runs};

/// Methods of choosing states. One or two missing or surviving writes find nearly all faults, so these come first; each
/// window gets a few of all kinds before any window gets all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// All changes, and none; all states of small windows.
    Ends,
    /// The first changes survive, the others do not.
    Prefixes(Share),
    /// One change is missing.
    Missing(Share),
    /// One change survives.
    Surviving(Share),
    /// One change is torn; later ones survive, or do not.
    Torn(Share),
    /// Two changes are missing.
    Pairs,
    /// All states, in windows that are not too large.
    All,
    /// Random states.
    Drawn,
}

/// How many states of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    Few,
    Every,
}

impl Stage {
    /// A few of each kind. Tears are included if writes may tear.
    pub(crate) const FIRST: [Stage; 5] = [
        Stage::Ends,
        Stage::Torn(Share::Few),
        Stage::Missing(Share::Few),
        Stage::Prefixes(Share::Few),
        Stage::Surviving(Share::Few),
    ];

    /// The following stages.
    pub(crate) const THEN: [Stage; 7] = [
        Stage::Missing(Share::Every),
        Stage::Prefixes(Share::Every),
        Stage::Surviving(Share::Every),
        Stage::Torn(Share::Every),
        Stage::Pairs,
        Stage::All,
        Stage::Drawn,
    ];
}

/// Number of states up to which a window is exhausted at once.
pub(crate) const SMALL: f64 = 16.0;
/// Number of changes up to which all pairs of a window are tried.
const PAIRED_MAX: usize = 16;
/// Number of states for [`Share::Few`].
const FEW: usize = 4;
/// Number of tears of one write.
const TEARS: u64 = 8;

/// Returns the states of a stage in a window.
pub(crate) fn candidates(
    stage: Stage,
    events: usize,
    members: &[Member],
    exhaust_max: f64,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<CrashState> {
    let count = members.len();
    let state = |is_there: &dyn Fn(usize) -> bool| {
        CrashState::of(
            events,
            members,
            |place| if is_there(place) { ChangeOutcome::All } else { ChangeOutcome::Nothing },
        )
    };
    let outcomes: f64 = members.iter().map(Member::outcomes).product();
    match stage {
        Stage::Ends if outcomes <= SMALL => all(events, members),
        Stage::Ends => vec![state(&|_| true), state(&|_| false)],
        Stage::Prefixes(share) => {
            chosen(count, share, random).into_iter().map(|first| state(&|place| place < first)).collect()
        }
        Stage::Missing(share) => {
            chosen(count, share, random).into_iter().map(|one| state(&|place| place != one)).collect()
        }
        Stage::Surviving(share) => {
            chosen(count, share, random).into_iter().map(|one| state(&|place| place == one)).collect()
        }
        Stage::Torn(share) => torn(events, members, share, random),
        Stage::Pairs if count <= PAIRED_MAX => (0..count)
            .flat_map(|one| (one + 1..count).map(move |two| (one, two)))
            .map(|(one, two)| state(&|place| place != one && place != two))
            .collect(),
        Stage::All if outcomes <= exhaust_max => all(events, members),
        Stage::Pairs | Stage::All => Vec::new(),
        Stage::Drawn => (0..FEW).map(|_| drawn(events, members, random)).collect(),
    }
}

/// Some of `count` indices, or all.
fn chosen(count: usize, share: Share, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    if share == Share::Every || count <= FEW {
        return (0..count).collect();
    }
    (0..FEW).map(|_| below(count as u64, random) as usize).collect()
}

/// Every state: the outcomes of the members as digits.
fn all(events: usize, members: &[Member]) -> Vec<CrashState> {
    let outcomes: Vec<u64> = members.iter().map(|member| member.outcomes() as u64).collect();
    let count: u64 = outcomes.iter().product();
    let digits = |mut number: u64| -> Vec<u64> {
        let digit = |&outcomes: &u64| {
            let digit = number % outcomes;
            number /= outcomes;
            digit
        };
        outcomes.iter().map(digit).collect()
    };
    (0..count)
        .map(|number| {
            let digits = digits(number);
            CrashState::of(events, members, |place| members[place].outcome(digits[place]))
        })
        .collect()
}

/// States with one torn write; later ones survive, or do not.
fn torn(events: usize, members: &[Member], share: Share, random: &mut Xoshiro256PlusPlus) -> Vec<CrashState> {
    let torn: Vec<usize> = (0..members.len()).filter(|&place| members[place].tear != Tear::None).collect();
    let few = chosen(torn.len(), share, random);
    let mut states = Vec::new();
    for one in few.into_iter().map(|place| torn[place]) {
        for kept in tears(&members[one], share, random) {
            for are_there in [true, false] {
                states.push(CrashState::of(events, members, |place| match place.cmp(&one) {
                    std::cmp::Ordering::Less => ChangeOutcome::All,
                    std::cmp::Ordering::Equal => kept.clone(),
                    std::cmp::Ordering::Greater if are_there => ChangeOutcome::All,
                    std::cmp::Ordering::Greater => ChangeOutcome::Nothing,
                }));
            }
        }
    }
    states
}

/// Ways in which a write may be torn: halves first.
fn tears(member: &Member, share: Share, random: &mut Xoshiro256PlusPlus) -> Vec<ChangeOutcome> {
    let half = member.atoms / 2;
    let mut tears = vec![ChangeOutcome::Atoms(vec![(0, half)])];
    if member.tear == Tear::Any {
        tears.push(ChangeOutcome::Atoms(vec![(half, member.atoms)]));
    }
    if share == Share::Every {
        let atoms = u64::from(member.atoms);
        tears.extend(
            (1..TEARS)
                .map(|part| part * atoms / TEARS)
                .filter(|&end| end > 0)
                .map(|end| ChangeOutcome::Atoms(vec![(0, end as u32)])),
        );
        tears.push(ChangeOutcome::Atoms(vec![(0, member.atoms - 1)]));
        if member.tear == Tear::Any {
            tears.push(ChangeOutcome::Atoms(vec![(1, member.atoms)]));
            tears.push(ChangeOutcome::Atoms(runs(member.atoms, |atom| atom % 2 == 0)));
            tears.extend((0..TEARS).map(|_| drawn_tear(member, random)));
        }
    }
    tears
}

fn drawn_tear(member: &Member, random: &mut Xoshiro256PlusPlus) -> ChangeOutcome {
    match member.tear {
        Tear::None => ChangeOutcome::All,
        Tear::Prefix => match below(u64::from(member.atoms), random) as u32 {
            0 => ChangeOutcome::Nothing,
            end => ChangeOutcome::Atoms(vec![(0, end)]),
        },
        Tear::Any => match runs(member.atoms, |_| random.next_u64() >> 63 == 1) {
            kept if kept.is_empty() => ChangeOutcome::Nothing,
            kept if kept == [(0, member.atoms)] => ChangeOutcome::All,
            kept => ChangeOutcome::Atoms(kept),
        },
    }
}

/// Random states: few, half or most changes are missing; some are torn.
fn drawn(events: usize, members: &[Member], random: &mut Xoshiro256PlusPlus) -> CrashState {
    let missing_of_8 = [1, 4, 7][below(3, random) as usize];
    CrashState::of(events, members, |place| match below(8, random) {
        draw if draw < missing_of_8 => ChangeOutcome::Nothing,
        _ if below(8, random) == 0 => drawn_tear(&members[place], random),
        _ => ChangeOutcome::All,
    })
}

/// A random number below another. The bias of 2^-60 does not matter here.
fn below(end: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
    random.next_u64() % end.max(1)
}
