use wire::messages::{LEASE, LEASE_SPEC};

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate: |report, lease| {
        if lease["spec"]["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
            report.invalid("spec.leaseDurationSeconds", "it must be greater than zero");
        }
        if lease["spec"]["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
            report.invalid("spec.leaseTransitions", "it must not be negative");
        }
    },
    columns: &[NAME, text("Holder", |row| show(&row.object["spec"]["holderIdentity"])), AGE],
    ..KindRules::plain(&FIELDS)
};

tables! {
    FIELDS = LEASE {
        honoured metadata => META;
        honoured spec => LEASE_TERMS;
    }
    LEASE_TERMS = LEASE_SPEC {
        honoured holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions;
        warned strategy, preferredHolder: "nobody chooses among candidates here: whoever takes the lease first has it";
    }
}
