//! [`VolumeType`]: types of cloud volumes, with their limits, billing and failure rates.

use headstack_catalogue::volume::pricing::{Bill, Pricing, Provisioned};
use headstack_catalogue::volume::types;
use pyo3::prelude::*;

use crate::error::input_error;

/// A type of cloud volume, by its name such as `gp3`. Raises `InputError` for an unknown name.
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

/// Returns all types of cloud volumes.
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

    /// Name of the type.
    #[getter]
    fn name(&self) -> &'static str {
        self.of.name()
    }

    /// Name of the provider.
    #[getter]
    fn provider(&self) -> &'static str {
        self.pricing.provider.name()
    }

    /// Name of the provider's cloud, which selects all of its types in options: `aws`.
    #[getter]
    fn cloud(&self) -> &'static str {
        self.pricing.provider.cloud()
    }

    /// Id of a catalogue volume with this type, from which other volumes are derived.
    #[getter]
    fn base(&self) -> &'static str {
        self.pricing.base
    }

    /// Minimum and maximum capacity in GiB.
    #[getter]
    fn gib(&self) -> (u64, u64) {
        self.pricing.gib
    }

    /// Sizes in GiB at which a limit changes or stops growing. Up to the last of these sizes, a larger volume is
    /// faster.
    #[getter]
    fn grows_to_gib(&self) -> Vec<u64> {
        self.pricing.grows_to_gib.to_vec()
    }

    /// Available sizes if only fixed sizes are offered: GiB, name, and whether the size is faster than the next smaller
    /// size.
    #[getter]
    fn sizes(&self) -> Vec<(u64, String, bool)> {
        self.pricing.sizes.iter().map(|size| (size.gib, size.name.clone(), size.is_faster)).collect()
    }

    /// Minimum and maximum IOPS that can be provisioned for the largest volume; `None` if the size determines the IOPS.
    #[getter]
    fn iops(&self) -> Option<(u64, u64)> {
        self.pricing.iops.map(|Provisioned { least, most, .. }| (least, most))
    }

    /// Maximum IOPS per GiB; `None` if there is no such limit.
    #[getter]
    fn iops_a_gib(&self) -> Option<u64> {
        self.pricing.iops_a_gib
    }

    /// IOPS that are included in the price of the capacity.
    #[getter]
    fn free_iops(&self) -> u64 {
        self.pricing.iops.map_or(0, |iops| iops.free)
    }

    /// Minimum and maximum throughput that can be provisioned, in `rate_unit`; `None` if other parameters determine it.
    #[getter]
    fn throughput(&self) -> Option<(u64, u64)> {
        self.pricing.throughput.map(|Provisioned { least, most, .. }| (least, most))
    }

    /// Unit of throughput: `MiB/s` or `MB/s`.
    #[getter]
    fn rate_unit(&self) -> &'static str {
        self.pricing.rate_unit.name()
    }

    /// Annual failure rate in percent, and its source; `None` if the provider's figure is not known.
    #[getter]
    fn afr_percent(&self) -> Option<(f64, String)> {
        self.pricing.afr_percent.clone()
    }

    /// Returns the minimum and maximum IOPS that can be provisioned for a volume of `gib` GiB; `None` if the size
    /// determines the IOPS.
    fn iops_range(&self, gib: u64) -> Option<(u64, u64)> {
        self.pricing.iops_range(gib)
    }

    /// Returns the maximum throughput in `rate_unit` that can be provisioned for a volume with `iops` IOPS; `None` if
    /// other parameters determine it.
    fn throughput_max(&self, iops: u64) -> Option<u64> {
        self.pricing.throughput_range(iops).map(|(_, most)| most / self.pricing.rate_unit.bytes())
    }

    /// Returns the billed size in GiB of a volume of `gib` GiB.
    fn billed_gib(&self, gib: u64) -> u64 {
        self.pricing.billed_gib(gib)
    }

    /// Returns the items of the monthly bill for a size in GiB and for provisioned IOPS and throughput (in
    /// `rate_unit`): the name of each item in price files, and its quantity.
    #[pyo3(signature = (gib, iops = None, throughput = None))]
    fn bill(&self, gib: u64, iops: Option<u64>, throughput: Option<u64>) -> Bill {
        self.of.bill(gib, iops, throughput)
    }

    fn __repr__(&self) -> String {
        format!("VolumeType('{}')", self.of.name())
    }
}
