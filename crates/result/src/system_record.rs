//! [`SystemRecord`]: the system of a run and the hash of its description.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The source of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A simulated system in virtual time.
    Simulated,
    /// Real hardware.
    Measured,
    /// A simulated system on the wall clock, exported as a block device.
    Live,
}

/// The system that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SystemRecord {
    /// Name of the system in the catalogue, or path of a device.
    pub name: String,
    /// Kind of system: `drive`, `array`, `file` or `device`.
    pub kind: String,
    /// Description of the system with all defaults filled in. Results of one system share it.
    #[serde(serialize_with = "whole", deserialize_with = "shared")]
    #[cfg_attr(feature = "schema", schemars(with = "Value"))]
    pub description: Arc<Value>,
    /// Hash of the description, as compact JSON with sorted keys.
    pub hash: String,
}

impl SystemRecord {
    /// Creates the record of a description with all defaults filled in, and computes its hash.
    pub fn new(name: impl Into<String>, kind: impl Into<String>, description: Value) -> Self {
        let hash = content_hash(description.to_string().as_bytes());
        Self { name: name.into(), kind: kind.into(), description: Arc::new(description), hash }
    }
}

fn whole<S: Serializer>(description: &Arc<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    description.as_ref().serialize(serializer)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Value>, D::Error> {
    Value::deserialize(deserializer).map(Arc::new)
}

/// Returns a stable hash of the bytes as 32 hexadecimal digits (128-bit FNV-1a).
///
/// The hash distinguishes descriptions and chunks that people write or generate. Forgery is not a concern, so a
/// cryptographic hash and its crates would add nothing, and FNV-1a takes three lines in any language.
pub fn content_hash(bytes: &[u8]) -> String {
    // Offset basis and prime of Fowler, Noll and Vo for 128 bits.
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    let hash = bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a_of_the_content() {
        // Published test vectors of 128-bit FNV-1a.
        assert_eq!(content_hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(content_hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(content_hash(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
        let record = |text: &str| SystemRecord::new("x", "drive", serde_json::from_str(text).unwrap());
        let hash = record("{\"heads\": 12, \"rpm\": 10025}").hash;
        assert_eq!(hash, record("{\"rpm\":10025,\"heads\":12}").hash);
        assert_eq!(hash, content_hash(b"{\"heads\":12,\"rpm\":10025}"));
        assert_ne!(hash, record("{\"rpm\":10025,\"heads\":13}").hash);
    }
}
