use alloc::vec::Vec;

use serde_json::json;

use crate::{Time, Value};

/// Conditions as a strategic merge patch writes them: by type, so that other conditions stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<Value>);

impl Conditions {
    /// No condition yet.
    pub fn new() -> Conditions {
        Conditions::default()
    }

    /// The condition is true since this time.
    #[must_use]
    pub fn holds(self, r#type: &str, since: &Time) -> Conditions {
        self.set(r#type, "True", "", "", since)
    }

    /// The condition has this status since this time. An empty reason or message is left out.
    #[must_use]
    pub fn set(mut self, r#type: &str, status: &str, reason: &str, message: &str, since: &Time) -> Conditions {
        let mut condition = json!({ "type": r#type, "status": status, "lastTransitionTime": since.0 });
        for (field, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition[field] = text.into();
            }
        }
        self.0.push(condition);
        self
    }

    /// The condition goes.
    #[must_use]
    pub fn without(mut self, r#type: &str) -> Conditions {
        self.0.push(json!({ "type": r#type, "$patch": "delete" }));
        self
    }

    /// The value of `status.conditions` in the patch.
    pub fn to_json(self) -> Value {
        Value::Array(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_each_condition_by_its_type() {
        let at = Time::from_unix_millis(1_000);
        let conditions = Conditions::new().holds("A", &at).set("B", "False", "Because", "why", &at).without("C");
        let wanted = json!([
            { "type": "A", "status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z" },
            {
                "type": "B", "status": "False", "reason": "Because", "message": "why",
                "lastTransitionTime": "1970-01-01T00:00:01Z",
            },
            { "type": "C", "$patch": "delete" },
        ]);
        assert_eq!(conditions.to_json(), wanted);
    }
}
