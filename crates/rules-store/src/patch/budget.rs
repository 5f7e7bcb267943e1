use alloc::format;

use serde_json::Value;

use super::PatchError;
use crate::size::{DEEPEST, measure};

/// Kubernetes' limit on what all copies of one patch may make, after CVE-2019-1002100: copies of copies double.
const MOST_COPIED: usize = 3 << 20;
/// Bytes and list items moved about by one patch: a fraction of a second. No patch that people write comes near.
const MOST_MOVED: usize = 32 << 20;

/// What one JSON patch may still cost.
pub(super) struct Budget {
    copied: usize,
    moved: usize,
}

impl Budget {
    pub(super) fn new() -> Budget {
        Budget { copied: MOST_COPIED, moved: MOST_MOVED }
    }

    /// A value of the patch is put at a path.
    pub(super) fn put(value: &Value, path: &str) -> Result<(), PatchError> {
        size(value, path).map(drop)
    }

    /// A value of the document is put at a path as well.
    pub(super) fn copy(&mut self, value: &Value, path: &str) -> Result<(), PatchError> {
        let left = self.copied.checked_sub(size(value, path)?);
        let told = || PatchError::TooLarge(format!("the copies of a JSON patch may make {MOST_COPIED} bytes at most"));
        self.copied = left.ok_or_else(told)?;
        Ok(())
    }

    /// A value of the document is put at another path.
    pub(super) fn carry(&mut self, value: &Value, path: &str) -> Result<(), PatchError> {
        self.shift(size(value, path)?)
    }

    /// So many items of a list make room or close up.
    pub(super) fn shift(&mut self, items: usize) -> Result<(), PatchError> {
        let left = self.moved.checked_sub(items);
        self.moved = left.ok_or_else(|| PatchError::TooLarge("the JSON patch moves too much about".into()))?;
        Ok(())
    }
}

/// The size of a value that is to stand at a path, if it is not too deep there.
fn size(value: &Value, path: &str) -> Result<usize, PatchError> {
    let above = path.bytes().filter(|byte| *byte == b'/').count();
    DEEPEST
        .checked_sub(above)
        .and_then(|left| measure(value, left))
        .ok_or_else(|| PatchError::TooLarge(format!("the patch nests deeper than the limit of {DEEPEST} levels")))
}
