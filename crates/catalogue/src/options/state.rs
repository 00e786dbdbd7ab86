//! Parses the skewed overwrites of `--state steady:...`, and takes their blocks from the run's workload.

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::{FlashState, SkewedWrites};
use headstack_workload::{Addresses, Band, Generator, InputError, Places, Span, Workload};

use super::{Draft, choice};
use crate::key_error;

/// fio's defaults for `zipf` and `pareto`.
const ZIPF_THETA: f64 = 1.1;
const PARETO_H: f64 = 0.2;

const FORMS: &str =
    "write steady:zipf[:THETA], steady:pareto[:H] or steady:zoned:SHARE/SIZE:..., for example steady:zoned:80/20:20/80";

/// Parses a state whose overwrites are not skewed. An error names the skewed states, too.
pub(super) fn unskewed(text: &str) -> Result<FlashState, InputError> {
    choice("state", text, &FlashState::ALL)
        .map_err(|error| key_error("state", format!("{}; for skewed overwrites {FORMS}", error.message)))
}

impl Draft {
    /// Parses a distribution written as in fio. Without a parameter, it is that of the workload if the kinds agree.
    pub(super) fn skewed_writes(&self, text: &str) -> Result<SkewedWrites, InputError> {
        let wrong = |message: String| key_error("state", message);
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let of_workload = self.workload.as_ref().map(|workload| &workload.addresses);
        let number = |usual: f64| match rest {
            "" => Ok(usual),
            _ => rest.parse::<f64>().map_err(|_| wrong(format!("steady:{text}: '{rest}' is not a number; {FORMS}"))),
        };
        let addresses = match (name, of_workload) {
            ("zipf", Some(same @ Addresses::Zipf { .. })) | ("pareto", Some(same @ Addresses::Pareto { .. }))
                if rest.is_empty() =>
            {
                same.clone()
            }
            ("zipf", _) => Addresses::Zipf { theta: number(ZIPF_THETA)? },
            ("pareto", _) => Addresses::Pareto { h: number(PARETO_H)? },
            ("zoned", _) => Addresses::HotBands(
                zones(rest).ok_or_else(|| wrong(format!("steady:{text}: zones are out of range; {FORMS}")))?,
            ),
            _ => return Err(wrong(format!("steady:{text} is unknown; {FORMS}"))),
        };
        addresses.validate().map_err(|(_, message)| wrong(format!("steady:{text}: {message}")))?;
        Ok(SkewedWrites { addresses, blocks: None })
    }
}

/// Parses zones from the start of the drive: the percentage of the writes and that of the drive, as in `80/20:20/80`.
/// `None` if they are not numbers, or exceed the drive.
fn zones(text: &str) -> Option<Vec<Band>> {
    let mut from_percent = 0.0;
    let band = |zone: &str| {
        let (share, size) = zone.split_once('/')?;
        let (share_percent, size): (f64, f64) = (share.parse().ok()?, size.parse().ok()?);
        let to_percent = from_percent + size;
        let band = Band { from_percent, to_percent: f64::min(to_percent, 100.0), share_percent };
        from_percent = to_percent;
        (size > 0.0 && to_percent < 100.0 + 1e-9).then_some(band)
    };
    let bands = text.split(':').map(band).collect::<Option<Vec<Band>>>()?;
    Some(bands.into_iter().filter(|band| band.share_percent != 0.0).collect())
}

/// Gives the state of a drive alone the blocks of the run's workload if both have the same kind of distribution, so that
/// the workload continues to use the blocks that were used most.
pub(super) fn use_blocks_of(system: &mut SystemDescription, workload: &Workload, span: Option<Span>, seed: u64) {
    let (whole, block_bytes) = (Span { start_bytes: 0, length_bytes: system.capacity_bytes() }, system.block_bytes());
    let SystemDescription::Drive(DeviceDescription::Ssd(ssd)) = system else { return };
    let FlashState::Skewed(writes) = &mut ssd.state else { return };
    if std::mem::discriminant(&writes.addresses) == std::mem::discriminant(&workload.addresses) {
        writes.blocks = blocks_of(workload, span.unwrap_or(whole), block_bytes, seed);
    }
}

/// Returns the blocks that differ in popularity; `None` if the workload is impossible on the span.
fn blocks_of(workload: &Workload, span: Span, block_bytes: u32, seed: u64) -> Option<Places> {
    Generator::new(workload, span, block_bytes, seed).ok()?.popular_blocks()
}
