//! How much one object may be: what is stored can be read back, listed and sent, by us and by every client.

use alloc::format;

use serde_json::Value;

use crate::Failure;

/// Lists and objects within each other. Readers of JSON give up at 128, and lists and watch events put two around an
/// object.
pub(crate) const DEEPEST: usize = 100;
/// What etcd takes in one request, and so what an object in Kubernetes can be.
const LARGEST: usize = 3 << 19;

/// A value's JSON text, about, and how deep it nests; `None` if it nests deeper than `deepest`. Never goes further down
/// than that, however deep the value is.
pub(crate) fn measure(value: &Value, deepest: usize) -> Option<usize> {
    let within = || deepest.checked_sub(1);
    match value {
        Value::Null | Value::Bool(_) => Some(4),
        Value::Number(_) => Some(8),
        Value::String(text) => Some(text.len() + 2),
        Value::Array(list) => {
            let deepest = within()?;
            list.iter().try_fold(2, |sum, item| Some(sum + 1 + measure(item, deepest)?))
        }
        Value::Object(map) => {
            let deepest = within()?;
            map.iter().try_fold(2, |sum, (key, item)| Some(sum + 4 + key.len() + measure(item, deepest)?))
        }
    }
}

/// Refuses what is too much. What an older version let in may stay as long as it does not grow.
pub(crate) fn check(old: Option<&Value>, new: &Value) -> Result<(), Failure> {
    let refuse = |message| Err(Failure::TooLarge { message });
    let of_old = |deepest| old.and_then(|old| measure(old, deepest));
    match measure(new, DEEPEST) {
        Some(bytes) if bytes <= LARGEST || of_old(DEEPEST).is_some_and(|old| bytes <= old) => Ok(()),
        Some(_) => refuse(format!("the object would be larger than the limit of {LARGEST} bytes")),
        None if old.is_some() && of_old(DEEPEST).is_none() && measure(new, READABLE).is_some() => Ok(()),
        None => refuse(format!("the object would nest deeper than the limit of {DEEPEST} levels")),
    }
}

/// What a store that was written without a limit can hold: it was read with this one.
const READABLE: usize = 127;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |value, _| json!([value]))
    }

    #[test]
    fn h5_what_is_at_the_limit_can_be_read_in_a_list_and_in_an_event_and_one_level_more_is_refused() {
        let deepest = nested(DEEPEST);
        check(None, &deepest).unwrap();
        for around in [json!({"items": [deepest]}), json!({"type": "ADDED", "object": deepest})] {
            serde_json::from_str::<Value>(&format!("{around}")).unwrap();
        }
        let failure = check(None, &nested(DEEPEST + 1)).unwrap_err();
        assert_eq!(format!("{failure}"), "the object would nest deeper than the limit of 100 levels");
        // What was stored without a limit was read with that of the reader, and may change without nesting further out.
        check(Some(&nested(READABLE)), &nested(READABLE)).unwrap();
        serde_json::from_str::<Value>(&format!("{}", nested(READABLE))).unwrap();
        assert!(serde_json::from_str::<Value>(&format!("{}", nested(READABLE + 1))).is_err());
        assert!(check(Some(&nested(READABLE)), &nested(READABLE + 1)).is_err());
        assert!(check(Some(&nested(DEEPEST)), &nested(DEEPEST + 1)).is_err());
    }
}
