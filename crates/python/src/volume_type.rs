//! [`VolumeType`]: types of cloud volumes, with their limits, billing and failure rates.

use headstack_catalogue::volume::pricing::{Bill, Pricing, Provisioned};
use headstack_catalogue::volume::types;
use pyo3::prelude::*;

use crate::error::input_error;

/// A type of cloud volume by its name: `gp3`. Raises `InputError` for an unknown name.
#[pyclass(frozen, module = "headstack._native")]
pub struct VolumeType {
    of: types::VolumeType,
    pricing: Pricing,
}

impl VolumeType {
    fn of(of: types::VolumeType) -> VolumeType {
        VolumeType { of, pricing: of.pricing() }
    }
}

/// All types of cloud volumes.
#[pyfunction]
pub fn volume_types() -> Vec<VolumeType> {
    types::VolumeType::ALL.into_iter().map(VolumeType::of).collect()
}

#[pymethods]
impl VolumeType {
    #[new]
    fn new(name: &str) -> PyResult<VolumeType> {
        let unknown = || {
            let allowed = types::VolumeType::ALL.map(types::VolumeType::name).join(", ");
            input_error(format!("volume.type: '{}' is unknown; allowed: {allowed}", name.escape_debug()))
        };
        types::VolumeType::parse(name).map(VolumeType::of).ok_or_else(unknown)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.of.name()
    }

    /// The provider.
    #[getter]
    fn provider(&self) -> &'static str {
        self.pricing.provider.name()
    }

    /// The provider's cloud, which selects all of its types in options: `aws`.
    #[getter]
    fn cloud(&self) -> &'static str {
        self.pricing.provider.cloud()
    }

    /// A volume of the catalogue with this type, from which others are derived.
    #[getter]
    fn base(&self) -> &'static str {
        self.pricing.base
    }

    /// Smallest and largest capacity in GiB.
    #[getter]
    fn gib(&self) -> (u64, u64) {
        self.pricing.gib
    }

    /// Sizes in GiB at which a limit changes or stops growing; up to the last of them a larger size increases
    /// performance.
    #[getter]
    fn grows_to_gib(&self) -> Vec<u64> {
        self.pricing.grows_to_gib.to_vec()
    }

    /// The available sizes, if they are fixed: GiB, name, and whether it is faster than the next smaller one.
    #[getter]
    fn sizes(&self) -> Vec<(u64, String, bool)> {
        self.pricing.sizes.iter().map(|size| (size.gib, size.name.clone(), size.is_faster)).collect()
    }

    /// Least and most IOPS that can be provisioned, of the largest volume; `None` where they follow from the size.
    #[getter]
    fn iops(&self) -> Option<(u64, u64)> {
        self.pricing.iops.map(|Provisioned { least, most, .. }| (least, most))
    }

    /// Most IOPS for each GiB, where there is such a limit.
    #[getter]
    fn iops_a_gib(&self) -> Option<u64> {
        self.pricing.iops_a_gib
    }

    /// IOPS that the price of the size includes.
    #[getter]
    fn free_iops(&self) -> u64 {
        self.pricing.iops.map_or(0, |iops| iops.free)
    }

    /// Smallest and largest provisioned throughput, in `rate_unit`; `None` if it follows from the rest.
    #[getter]
    fn throughput(&self) -> Option<(u64, u64)> {
        self.pricing.throughput.map(|Provisioned { least, most, .. }| (least, most))
    }

    /// The unit of throughput: `MiB/s` or `MB/s`.
    #[getter]
    fn rate_unit(&self) -> &'static str {
        self.pricing.rate_unit.name()
    }

    /// Annual failure rate in percent, and its source; `None` if the provider's figure was not read.
    #[getter]
    fn afr_percent(&self) -> Option<(f64, String)> {
        self.pricing.afr_percent.clone()
    }

    /// Least and most IOPS that a volume of so many GiB can have provisioned; `None` where they follow from the size.
    fn iops_range(&self, gib: u64) -> Option<(u64, u64)> {
        self.pricing.iops_range(gib)
    }

    /// Most throughput in `rate_unit` that a volume with so many IOPS can have provisioned; `None` where it follows from the rest.
    fn throughput_max(&self, iops: u64) -> Option<u64> {
        self.pricing.throughput_range(iops).map(|(_, most)| most / self.pricing.rate_unit.bytes())
    }

    /// The billed size in GiB for a volume of that size.
    fn billed_gib(&self, gib: u64) -> u64 {
        self.pricing.billed_gib(gib)
    }

    /// The monthly bill for a size in GiB, and for IOPS and throughput (in `rate_unit`) that are provisioned: items of files of
    /// prices, and how many of each.
    #[pyo3(signature = (gib, iops = None, throughput = None))]
    fn bill(&self, gib: u64, iops: Option<u64>, throughput: Option<u64>) -> Bill {
        self.of.bill(gib, iops, throughput)
    }

    fn __repr__(&self) -> String {
        format!("VolumeType('{}')", self.of.name())
    }
}
