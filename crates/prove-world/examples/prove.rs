//! Explores or walks through one world: `prove WORLD USER FAULTS DELAYS [STATES]`, or with `walk` and two seeds behind.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use prove_world::{Bounds, Budget, explore, wander, worlds};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let found = worlds().iter().find(|(scenario, _)| Some(scenario.name) == arguments.first().map(String::as_str));
    let small = |at: usize| number(at).and_then(|value| u8::try_from(value).ok());
    let (Some((scenario, _)), Some(user), Some(faults), Some(delays)) = (found, small(1), small(2), small(3)) else {
        let names: Vec<_> = worlds().iter().map(|(scenario, _)| scenario.name).collect();
        eprintln!(
            "usage: prove WORLD USER FAULTS DELAYS [STATES | walk FROM TO], where WORLD is one of {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    };
    let budget = Budget::troubled(user, faults, delays);
    let sound = match arguments.get(4).map(String::as_str) {
        Some("walk") => {
            let walks = wander(scenario, budget, number(5).unwrap_or(0)..number(6).unwrap_or(1000));
            println!("{walks}");
            walks.broken.is_none()
        }
        Some(_) | None => {
            let states = number(4).and_then(|states| usize::try_from(states).ok());
            let bounds = Bounds::of(budget);
            let report = explore(scenario, &Bounds { states: states.unwrap_or(bounds.states), ..bounds });
            println!("{report}");
            report.broken.is_none()
        }
    };
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
