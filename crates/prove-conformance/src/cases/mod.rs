//! Every case, by service.

use crate::Case;

mod attach;
mod capacity;
mod concurrency;
mod create;
mod data;
mod delete;
mod expand;
mod group;
mod hostile;
mod identity;
pub mod in_tree;
mod list;
mod modify;
mod node;
mod restart;
mod secrets;
mod snapshots;
mod topology;

/// All that judge any driver, in the order they are reported.
pub fn all() -> Vec<&'static Case> {
    let files = [
        identity::CASES,
        create::CASES,
        create::limits::CASES,
        delete::CASES,
        attach::CASES,
        list::CASES,
        capacity::CASES,
        snapshots::CASES,
        snapshots::beyond::CASES,
        expand::CASES,
        modify::CASES,
        group::CASES,
        topology::CASES,
        node::CASES,
        node::beyond::CASES,
        data::CASES,
        data::block::CASES,
        concurrency::CASES,
        hostile::CASES,
        secrets::CASES,
        restart::CASES,
    ];
    let mut cases: Vec<&'static Case> = files.into_iter().flatten().collect();
    // Services and methods in the order they first appear, each together.
    let (mut services, mut methods): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for case in &cases {
        let (service, method) = places(case.name);
        if !services.contains(&service) {
            services.push(service);
        }
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let place = |list: &[&str], of: &str| list.iter().position(|known| *known == of);
    cases.sort_by_key(|case| {
        let (service, method) = places(case.name);
        (place(&services, service), place(&methods, method))
    });
    cases
}

/// `service` and `service/method` of a name.
fn places(name: &'static str) -> (&'static str, &'static str) {
    (name.split('/').next().unwrap_or(name), name.rsplit_once('/').map_or(name, |(method, _)| method))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_and_a_reason() {
        let cases = super::all();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
        for case in cases {
            assert_eq!(case.name.split('/').count(), 3, "{}", case.name);
            assert!(case.why.ends_with('.') && case.why.len() > 10, "{}", case.name);
        }
    }

    // Reliability 3.1: 95 active cases of csi-sanity, and at least 100 over the gaps it leaves.
    #[test]
    fn there_are_as_many_as_csi_sanity_has_and_a_hundred_more() {
        let (parity, beyond): (Vec<_>, Vec<_>) = super::all().into_iter().partition(|case| case.parity);
        assert!(parity.len() >= 95, "{} cases of csi-sanity", parity.len());
        assert!(beyond.len() >= 100, "{} cases beyond", beyond.len());
    }
}
