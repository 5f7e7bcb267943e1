//! Explores one world with bounds from the environment.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
use prove_world::{Bounds, Budget, run, wander, worlds};

#[test]
fn probe() {
    let Ok(text) = std::env::var("PROBE") else { return };
    let mut parts = text.split(',');
    let name = parts.next().unwrap().to_string();
    let mut number = || parts.next().unwrap().parse::<usize>().unwrap();
    let (u, f, d, states) = (number() as u8, number() as u8, number() as u8, number());
    let report = run(&name, Some(Bounds { budget: Budget::troubled(u, f, d), states })).unwrap();
    println!("{report}");
}

#[test]
fn walk() {
    let Ok(text) = std::env::var("WALK") else { return };
    let mut parts = text.split(',');
    let name = parts.next().unwrap().to_string();
    let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
    let (u, f, d, from, to) = (number() as u8, number() as u8, number() as u8, number(), number());
    let (scenario, _) = worlds().iter().find(|(scenario, _)| scenario.name == name).unwrap();
    println!("{}", wander(scenario, Budget::troubled(u, f, d), from..to));
}
