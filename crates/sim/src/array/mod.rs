//! Arrays: members under a layout, the links to them, and the controller in front.

mod check;
pub mod description;
pub mod pool;

pub use check::check;
