//! [`Pricing`]: how each volume type is sold, with its sizes, provisioned performance, billing and failure rate.

use super::types::VolumeType;

/// A company that sells volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Amazon EBS.
    Amazon,
    /// Google persistent disk and Hyperdisk.
    Google,
    /// Azure managed disks.
    Microsoft,
}

impl Provider {
    /// Returns the name of the provider.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Amazon => "Amazon",
            Provider::Google => "Google",
            Provider::Microsoft => "Microsoft",
        }
    }

    /// Returns the name of the provider's cloud; as an option value, it selects all of the provider's types.
    pub fn cloud(self) -> &'static str {
        match self {
            Provider::Amazon => "aws",
            Provider::Google => "gcp",
            Provider::Microsoft => "azure",
        }
    }
}

/// Range of a quantity that can be provisioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// Minimum.
    pub least: u64,
    /// Maximum, for the largest volume.
    pub most: u64,
    /// Amount included in the price of the size; 0 if the whole amount is billed.
    pub free: u64,
}

/// Unit of throughput: mebibytes or megabytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// `MiB/s`
    Mib,
    /// `MB/s`
    Mb,
}

impl RateUnit {
    /// Returns the name of the unit.
    pub fn name(self) -> &'static str {
        match self {
            RateUnit::Mib => "MiB/s",
            RateUnit::Mb => "MB/s",
        }
    }

    /// Returns the number of bytes per second in the unit.
    pub fn bytes(self) -> u64 {
        match self {
            RateUnit::Mib => 1 << 20,
            RateUnit::Mb => 1_000_000,
        }
    }
}

/// A fixed size with a name and a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Maximum capacity, in GiB.
    pub gib: u64,
    /// Name of the size, such as `p30`.
    pub name: String,
    /// Whether the size is faster than the next smaller one.
    pub is_faster: bool,
}

/// How the size of a volume is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Billing {
    /// Per GiB.
    EachGib,
    /// By powers of two up to 1 TiB, then by whole TiB.
    Doubling,
}

/// How a volume type is sold.
#[derive(Clone, Debug, PartialEq)]
pub struct Pricing {
    /// Provider that sells the type.
    pub provider: Provider,
    /// Id of a volume of this type in the catalogue, from which other volumes are described.
    pub base: &'static str,
    /// Minimum and maximum capacity, in GiB.
    pub gib: (u64, u64),
    /// How the size is billed.
    pub billing: Billing,
    /// Sizes in GiB at which a limit jumps or stops growing. Above the last one, a larger size does not increase
    /// performance.
    pub grows_to_gib: &'static [u64],
    /// Fixed sizes that are sold; empty if any size is sold.
    pub sizes: Vec<Size>,
    /// IOPS that can be provisioned, if any.
    pub iops: Option<Provisioned>,
    /// Maximum IOPS per GiB, if there is such a limit.
    pub iops_a_gib: Option<u64>,
    /// IOPS thresholds above which additional IOPS are billed as a separate item.
    pub iops_tiers: &'static [u64],
    /// Throughput that can be provisioned, in `rate_unit`; at most 1/4 of the IOPS.
    pub throughput: Option<Provisioned>,
    /// Unit of `throughput`.
    pub rate_unit: RateUnit,
    /// Annual failure rate of volumes in percent, and its source; `None` if the provider's figure was not read.
    pub afr_percent: Option<(f64, String)>,
}

/// Billing units of volumes, with `-over-N` for a tier above N.
pub const BILLED_UNITS: [&str; 5] = ["GiB-month", "IOPS-month", "MiB/s-month", "MB/s-month", "month"];

/// Items of price files with the number of each that is billed per month.
pub type Bill = Vec<(String, u64)>;

impl Pricing {
    const fn of(provider: Provider, base: &'static str, gib: (u64, u64)) -> Pricing {
        Pricing {
            provider,
            base,
            gib,
            billing: Billing::EachGib,
            grows_to_gib: &[],
            sizes: Vec::new(),
            iops: None,
            iops_a_gib: None,
            iops_tiers: &[],
            throughput: None,
            rate_unit: RateUnit::Mib,
            afr_percent: None,
        }
    }

    /// Returns the billed size in GiB for a volume of `gib`.
    pub fn billed_gib(&self, gib: u64) -> u64 {
        match self.billing {
            Billing::EachGib => gib,
            Billing::Doubling if gib > 1_024 => gib.next_multiple_of(1_024),
            Billing::Doubling => gib.next_power_of_two(),
        }
    }

    /// Returns the minimum and maximum IOPS that can be provisioned for a volume of `gib`.
    pub fn iops_range(&self, gib: u64) -> Option<(u64, u64)> {
        let Provisioned { least, most, .. } = self.iops?;
        Some((least, self.iops_a_gib.map_or(most, |each| (each * gib).clamp(least, most))))
    }

    /// Returns the minimum and maximum throughput in bytes per second that can be provisioned for a volume with `iops`.
    pub fn throughput_range(&self, iops: u64) -> Option<(u64, u64)> {
        let (Provisioned { least, most, .. }, unit) = (self.throughput?, self.rate_unit.bytes());
        Some((least * unit, (iops * unit / 4).min(most * unit)))
    }
}

const fn provisioned(least: u64, most: u64) -> Option<Provisioned> {
    Some(Provisioned { least, most, free: 0 })
}

/// Returns a range whose minimum is included in the price of the size.
const fn beyond_free(free: u64, most: u64) -> Option<Provisioned> {
    Some(Provisioned { least: free, most, free })
}

/// Returns the annual failure rate stated by Amazon. Amazon states 0.1 to 0.2 % of volumes, of which the higher value
/// is used, and 0.001 % for io2.
fn by_amazon(percent: f64, kind: VolumeType) -> Option<(f64, String)> {
    Some((percent, format!("stated by Amazon for {}, upper bound", kind.name())))
}

/// Numbers in the names of Azure's sizes, from 4 GiB on; for example, P30 has 1,024 GiB.
const AZURE_NUMBERS: [u32; 14] = [1, 2, 3, 4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80];

/// Returns Azure's sizes from rows of capacity in GiB, IOPS and MB/s. The last row has the last of [`AZURE_NUMBERS`].
fn azure(letter: char, rows: &[(u64, u64, u64)]) -> Vec<Size> {
    let numbers = &AZURE_NUMBERS[AZURE_NUMBERS.len() - rows.len()..];
    let before = std::iter::once(None).chain(rows.iter().map(Some));
    let sizes = rows.iter().zip(numbers).zip(before);
    sizes
        .map(|((&(gib, iops, rate), number), before)| Size {
            gib,
            name: format!("{letter}{number}"),
            is_faster: before.is_none_or(|&(_, iops_before, rate_before)| (iops, rate) != (iops_before, rate_before)),
        })
        .collect()
}

impl VolumeType {
    /// Returns how the type is sold.
    pub fn pricing(self) -> Pricing {
        use Provider::{Amazon, Google, Microsoft};
        match self {
            // From 34 GiB, more than 100 IOPS; from 171 GiB, 250 MiB/s; at 1,000 GiB, the base equals the burst; at
            // 5,334 GiB, 16,000 IOPS.
            VolumeType::Gp2 => Pricing {
                grows_to_gib: &[34, 171, 1_000, 5_334],
                afr_percent: by_amazon(0.2, self),
                ..Pricing::of(Amazon, "aws-gp2-100", (1, 16_384))
            },
            VolumeType::Gp3 => Pricing {
                iops: beyond_free(3_000, 80_000),
                iops_a_gib: Some(500),
                throughput: beyond_free(125, 2_000),
                afr_percent: by_amazon(0.2, self),
                ..Pricing::of(Amazon, "aws-gp3-500", (1, 65_536))
            },
            VolumeType::Io1 => Pricing {
                iops: provisioned(100, 64_000),
                iops_a_gib: Some(50),
                afr_percent: by_amazon(0.2, self),
                ..Pricing::of(Amazon, "aws-io1-500-20k", (4, 16_384))
            },
            VolumeType::Io2 => Pricing {
                iops: provisioned(100, 256_000),
                iops_a_gib: Some(1_000),
                iops_tiers: &[32_000, 64_000],
                afr_percent: by_amazon(0.001, self),
                ..Pricing::of(Amazon, "aws-io2-500-32k", (4, 65_536))
            },
            // The burst grows up to 2 and 3.1 TiB, the base up to 12.5 and 16 TiB.
            VolumeType::St1 => Pricing {
                grows_to_gib: &[2_048, 12_800],
                afr_percent: by_amazon(0.2, self),
                ..Pricing::of(Amazon, "aws-st1-2tib", (125, 16_384))
            },
            VolumeType::Sc1 => Pricing {
                grows_to_gib: &[3_200, 16_384],
                afr_percent: by_amazon(0.2, self),
                ..Pricing::of(Amazon, "aws-sc1-2tib", (125, 16_384))
            },
            // Sizes up to which throughput and IOPS grow, for writes and reads of pd-standard.
            VolumeType::PdStandard => {
                Pricing { grows_to_gib: &[3_334, 10_000], ..Pricing::of(Google, "gcp-pd-standard-1000", (10, 65_536)) }
            }
            VolumeType::PdBalanced => {
                Pricing { grows_to_gib: &[3_786, 12_834], ..Pricing::of(Google, "gcp-pd-balanced-500", (10, 65_536)) }
            }
            VolumeType::PdSsd => {
                Pricing { grows_to_gib: &[2_000, 3_134], ..Pricing::of(Google, "gcp-pd-ssd-500", (10, 65_536)) }
            }
            VolumeType::PdExtreme => Pricing {
                iops: provisioned(1, 120_000),
                ..Pricing::of(Google, "gcp-pd-extreme-1000-40k", (500, 65_536))
            },
            VolumeType::HyperdiskBalanced => Pricing {
                iops: beyond_free(3_000, 160_000),
                iops_a_gib: Some(500),
                throughput: beyond_free(140, 2_400),
                ..Pricing::of(Google, "gcp-hyperdisk-balanced-500", (4, 65_536))
            },
            VolumeType::HyperdiskExtreme => Pricing {
                iops: provisioned(1, 350_000),
                ..Pricing::of(Google, "gcp-hyperdisk-extreme-1000-100k", (64, 65_536))
            },
            VolumeType::PremiumSsd => Pricing {
                sizes: azure('p', &super::types::PREMIUM),
                ..Pricing::of(Microsoft, "azure-p30", (1, 32_767))
            },
            VolumeType::PremiumSsdV2 => Pricing {
                iops: beyond_free(3_000, 80_000),
                iops_a_gib: Some(500),
                throughput: beyond_free(125, 2_000),
                rate_unit: RateUnit::Mb,
                ..Pricing::of(Microsoft, "azure-premium-v2-500", (1, 65_536))
            },
            VolumeType::UltraDisk => Pricing {
                billing: Billing::Doubling,
                iops: provisioned(100, 400_000),
                iops_a_gib: Some(1_000),
                throughput: provisioned(1, 10_000),
                rate_unit: RateUnit::Mb,
                ..Pricing::of(Microsoft, "azure-ultra-512-50k", (4, 65_536))
            },
            VolumeType::StandardSsd => Pricing {
                sizes: azure('e', &super::types::STANDARD_SSD),
                ..Pricing::of(Microsoft, "azure-e30", (1, 32_767))
            },
            VolumeType::StandardHdd => Pricing {
                sizes: azure('s', &super::types::STANDARD_HDD),
                ..Pricing::of(Microsoft, "azure-s30", (1, 32_767))
            },
        }
    }

    /// Returns the monthly bill for a size and for provisioned IOPS and throughput (in the type's unit).
    pub fn bill(self, gib: u64, iops: Option<u64>, throughput: Option<u64>) -> Bill {
        let (pricing, name) = (self.pricing(), self.name());
        if let Some(size) = pricing.sizes.iter().find(|size| size.gib >= gib) {
            return vec![(format!("{name}-{}:month", size.name), 1)];
        }
        let mut bill = vec![(format!("{name}:GiB-month"), pricing.billed_gib(gib))];
        if let (Some(iops), Some(provisioned)) = (iops, pricing.iops) {
            let mut above = provisioned.free;
            let mut item = format!("{name}:IOPS-month");
            for &up_to in pricing.iops_tiers.iter().chain([&u64::MAX]) {
                if iops > above {
                    bill.push((item, iops.min(up_to) - above));
                }
                item = format!("{name}:IOPS-month-over-{up_to}");
                above = up_to;
            }
        }
        if let (Some(rate), Some(provisioned)) = (throughput, pricing.throughput)
            && rate > provisioned.free
        {
            bill.push((format!("{name}:{}-month", pricing.rate_unit.name()), rate - provisioned.free));
        }
        bill
    }
}
