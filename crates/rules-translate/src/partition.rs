//! Partition numbers, which CSI has as text.

use alloc::string::ToString;

use crate::{Error, Plugin};

pub(crate) const KEY: &str = "partition";

pub(crate) fn read(plugin: Plugin, text: &str) -> Result<i32, Error> {
    let bad =
        |_| Error::Malformed { plugin, field: "attribute partition", value: text.to_string(), want: "a whole number" };
    text.parse().map_err(bad)
}
