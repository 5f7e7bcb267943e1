//! The driver is killed (SIGKILL) at random moments while several users work with it. After each restart its lists, its
//! records, the loop devices, the mounts and the data agree with what was acknowledged; in the end nothing is left.
//! Reliability 76 to 83. Needs root; says so without.
//!
//! `LONGSHORE_STORM_KILLS` says how often it is killed (25), `LONGSHORE_STORM_SEED` repeats a run as far as the
//! machine's timing allows. `make storm` runs the long version.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod client;
mod dice;
mod driver;
mod model;
mod truth;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use client::Client;
use dice::Dice;
use driver::{Caller, Driver};

const CLIENTS: u64 = 6;
/// The latest moment of a kill. Most calls take a few milliseconds, making a filesystem some tens.
const LATEST: Duration = Duration::from_millis(200);
/// How long what an earlier life left running may take to end.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text}, which is no number")))
}

/// Says how to repeat a storm that failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was the storm of LONGSHORE_STORM_SEED={}", self.0);
        }
    }
}

#[test]
fn killed_at_random_under_load_it_keeps_every_promise() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = Seed(setting("LONGSHORE_STORM_SEED").unwrap_or(since.as_micros() as u64));
    let kills = setting("LONGSHORE_STORM_KILLS").unwrap_or(25);
    let Some(mut driver) = Driver::new() else { return };
    let mut dice = Dice::of(seed.0, 0);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client::new(number, seed.0, &driver.path(""))).collect();
    driver.spawn();
    driver.ready();
    for kill in 1..=kills {
        storm(&mut driver, &mut clients, &mut dice);
        let caller = Caller::new(&driver.socket());
        agree(&driver, &caller, &clients, &format!("after kill {kill}"));
        for client in &mut clients {
            assert!(client.settle(&caller).is_ok(), "kill {kill}: the driver is gone");
        }
        agree(&driver, &caller, &clients, &format!("after kill {kill} and the repeated calls"));
        if kills > 100 && kill % 50 == 0 {
            println!("{kill} of {kills} kills, {} calls answered", clients.iter().map(|one| one.answered).sum::<u64>());
        }
    }
    let caller = Caller::new(&driver.socket());
    for client in &mut clients {
        assert!(client.finish(&caller).is_ok(), "the driver is gone");
    }
    agree(&driver, &caller, &clients, "when everything was deleted");
    let left = truth::leftovers(&driver);
    assert!(left.is_empty(), "left behind:\n{}", left.join("\n"));
    println!("{kills} kills, {} calls answered, nothing lost", clients.iter().map(|one| one.answered).sum::<u64>());
}

/// All users at once until the driver is killed; then it is started again, sometimes not for the first time.
fn storm(driver: &mut Driver, clients: &mut [Client], dice: &mut Dice) {
    let killed = AtomicBool::new(false);
    let socket = driver.socket();
    std::thread::scope(|scope| {
        for client in clients.iter_mut() {
            scope.spawn(|| client.live(&Caller::new(&socket), &killed));
        }
        std::thread::sleep(moment(dice, LATEST));
        killed.store(true, Ordering::SeqCst);
        driver.kill();
        // Started at once: whoever waits for a filesystem that stands still is freed only by that.
        while dice.once_in(4) {
            driver.spawn();
            std::thread::sleep(moment(dice, LATEST / 4));
            driver.kill();
        }
        driver.spawn();
    });
    driver.ready();
}

fn moment(dice: &mut Dice, latest: Duration) -> Duration {
    Duration::from_micros(dice.below(latest.as_micros() as u64))
}

/// Everything agrees. Given a moment: a mkfs of the driver's earlier life may hold a device until it ends.
fn agree(driver: &Driver, caller: &Caller, clients: &[Client], when: &str) {
    let until = Instant::now() + SETTLED_WITHIN;
    loop {
        let wrong = truth::disagreements(driver, caller, clients);
        if wrong.is_empty() {
            return;
        }
        if Instant::now() > until {
            let pending: Vec<_> = clients.iter().filter_map(|client| client.pending.as_ref()).collect();
            panic!("{when}:\n{}\nanswers lost: {pending:?}", wrong.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
