mod classes;
mod gates;
mod golden;
mod plugins;
mod properties;
mod rbd;
mod topologies;

use alloc::string::String;

use api::{PersistentVolume, PodVolume, StorageClass, Value};

use crate::{Error, Translated};

pub(crate) fn volume(json: Value) -> PersistentVolume {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn inline(json: Value) -> PodVolume {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn class(json: Value) -> StorageClass {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn lost<T>(translated: &Translated<T>) -> alloc::vec::Vec<&str> {
    translated.lost.iter().map(|lost| lost.field.as_str()).collect()
}

pub(crate) fn sentence<T: core::fmt::Debug>(result: Result<T, Error>) -> String {
    alloc::format!("{}", result.unwrap_err())
}
