//! Tests of layers: closed forms, the identity of layers that cost nothing, and data that survive power cuts.

mod delays;

use headstack_sim::SystemDescription;
use headstack_sim::stack::description::{LayerDescription, StackDescription};

/// Puts a layer over systems.
pub fn over(layer: LayerDescription, below: &[SystemDescription]) -> SystemDescription {
    let name = format!("test {}", layer.kind());
    SystemDescription::Stack(Box::new(StackDescription { name, layer, below: below.to_vec() }))
}
