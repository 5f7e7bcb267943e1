use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use prove_lab::Dice;

use super::*;

fn config(identity: &str) -> LeaseConfig {
    LeaseConfig { identity: identity.into(), duration: 15_000, renew: 10_000, retry: 2_000 }
}

fn read(lease: Option<Lease>) -> LeaseRead {
    lease.map_or(LeaseRead::NotFound, LeaseRead::Found)
}

/// The server: one lease, written only on the version named.
#[derive(Default)]
struct Server {
    lease: Option<Lease>,
    version: u64,
}

impl Server {
    fn write(&mut self, spec: LeaseSpec, based_on: Option<&Lease>) -> Option<Lease> {
        let held = self.lease.as_ref().map(|lease| &lease.metadata.resource_version);
        if held != based_on.map(|lease| &lease.metadata.resource_version) {
            return None;
        }
        self.version += 1;
        let mut lease = Lease { spec, ..Lease::default() };
        lease.metadata.uid = "u".into();
        lease.metadata.resource_version = api::ResourceVersion(format!("{}", self.version));
        self.lease = Some(lease.clone());
        Some(lease)
    }
}

/// Does what the machine asks until it waits.
fn settle(candidate: &mut Election, server: &mut Server, now: Timestamp) {
    loop {
        match candidate.next(now, now.to_time()) {
            ElectionStep::Wait(until) => {
                assert!(until > now, "a wait must end later");
                return;
            }
            ElectionStep::Read => candidate.read(now, read(server.lease.clone())),
            ElectionStep::Write { spec, based_on } => {
                let wrote = server.write(spec, based_on.as_ref());
                candidate.wrote(now, wrote);
            }
        }
    }
}

#[test]
fn the_first_to_come_leads_and_the_second_waits_for_the_lease_to_run_out() {
    let mut server = Server::default();
    let (mut a, mut b) = (Election::new(config("a")), Election::new(config("b")));
    settle(&mut a, &mut server, Timestamp(0));
    settle(&mut b, &mut server, Timestamp(0));
    assert!(a.leads(Timestamp(0)) && !b.leads(Timestamp(0)));
    assert_eq!(b.holder(), Some("a"));
    // The leader is gone. By the second one's own clock the lease is free after its duration, not before.
    let mut now = Timestamp(0);
    while !b.leads(now) {
        now = now.after_millis(1_000);
        settle(&mut b, &mut server, now);
    }
    assert!(now >= Timestamp(15_000) && now <= Timestamp(17_000), "{now:?}");
    assert!(!a.leads(now));
    assert_eq!(server.lease.unwrap().spec.lease_transitions, Some(1));
}

#[test]
fn a_leader_renews_without_reading_and_keeps_its_acquire_time() {
    let mut server = Server::default();
    let mut a = Election::new(config("a"));
    settle(&mut a, &mut server, Timestamp(0));
    let first = server.lease.clone().unwrap().spec;
    assert!(matches!(a.next(Timestamp(2_000), Timestamp(2_000).to_time()), ElectionStep::Write { .. }));
    let wrote =
        server.write(a.claim(server.lease.clone().as_ref(), Timestamp(2_000).to_time()), server.lease.clone().as_ref());
    a.wrote(Timestamp(2_000), wrote);
    let second = server.lease.unwrap().spec;
    assert_eq!(first.acquire_time, second.acquire_time);
    assert!(first.renew_time < second.renew_time);
    assert_eq!(second.lease_transitions, Some(0));
}

#[test]
fn a_leader_whose_renewals_fail_stops_before_anyone_can_take_over() {
    let mut server = Server::default();
    let mut a = Election::new(config("a"));
    settle(&mut a, &mut server, Timestamp(0));
    let mut now = Timestamp(0);
    while a.leads(now) {
        now = now.after_millis(100);
        match a.next(now, now.to_time()) {
            ElectionStep::Read => a.read(now, LeaseRead::Failed),
            ElectionStep::Write { .. } => a.wrote(now, None),
            ElectionStep::Wait(_) => {}
        }
    }
    assert_eq!(now, Timestamp(10_000));
}

#[test]
fn a_released_lease_is_taken_at_the_next_try() {
    let mut server = Server::default();
    let (mut a, mut b) = (Election::new(config("a")), Election::new(config("b")));
    settle(&mut a, &mut server, Timestamp(0));
    settle(&mut b, &mut server, Timestamp(0));
    let (spec, based_on) = a.release(Timestamp(1_000).to_time()).unwrap();
    assert!(!a.leads(Timestamp(1_000)), "given up before the write goes out");
    assert!(server.write(spec, Some(&based_on)).is_some());
    settle(&mut b, &mut server, Timestamp(2_000));
    assert!(b.leads(Timestamp(2_000)));
    assert_eq!(a.release(Timestamp(3_000).to_time()), None, "nothing to release twice");
}

#[test]
fn a_holder_with_a_longer_duration_is_given_its_time() {
    let mut server = Server::default();
    let mut a = Election::new(LeaseConfig { duration: 60_000, renew: 40_000, ..config("a") });
    let mut b = Election::new(config("b"));
    settle(&mut a, &mut server, Timestamp(0));
    for second in 0..60 {
        settle(&mut b, &mut server, Timestamp(second * 1_000));
        assert!(!b.leads(Timestamp(second * 1_000)));
    }
}

#[test]
fn a_configuration_that_cannot_keep_the_law_is_refused() {
    assert_eq!(config("a").check(), Ok(()));
    let wrong = [
        LeaseConfig { identity: String::new(), ..config("a") },
        LeaseConfig { renew: 15_000, ..config("a") },
        LeaseConfig { retry: 9_000, ..config("a") },
        LeaseConfig { retry: 0, ..config("a") },
        LeaseConfig { duration: 900, renew: 500, retry: 100, ..config("a") },
    ];
    for config in wrong {
        assert!(config.check().is_err(), "{config:?}");
    }
}

/// A request on its way: it reaches the server at one moment and its answer comes back at another, or never.
struct Trip {
    who: usize,
    ask: ElectionStep,
    reaches: Timestamp,
    returns: Timestamp,
    lost: bool,
    answer: Option<Option<Lease>>,
}

/// Three candidates, slow requests, lost requests and answers, long pauses of whole processes: never two leaders.
#[test]
fn there_is_never_more_than_one_leader() {
    let mut terms_of_office = 0;
    for seed in 1..60_u64 {
        let mut dice = Dice::new(seed);
        let mut server = Server::default();
        let mut candidates: Vec<Election> =
            ["a", "b", "c"].into_iter().map(|name| Election::new(config(name))).collect();
        let mut asleep = [Timestamp(0); 3];
        let mut trips: Vec<Trip> = vec![];
        let mut led = None;
        for step in 0..4_000_u64 {
            let now = Timestamp(step * 100);
            for trip in trips.iter_mut().filter(|trip| trip.reaches == now) {
                trip.answer = Some(match &trip.ask {
                    ElectionStep::Write { spec, based_on } => server.write(spec.clone(), based_on.as_ref()),
                    ElectionStep::Read | ElectionStep::Wait(_) => server.lease.clone(),
                });
            }
            let (back, rest): (Vec<Trip>, Vec<Trip>) =
                trips.into_iter().partition(|trip: &Trip| trip.returns <= now && asleep[trip.who] <= now);
            trips = rest;
            for trip in back {
                let answer = trip.answer.filter(|_| !trip.lost);
                match (&trip.ask, answer) {
                    (ElectionStep::Write { .. }, answer) => candidates[trip.who].wrote(now, answer.flatten()),
                    (_, Some(lease)) => candidates[trip.who].read(now, read(lease)),
                    (_, None) => candidates[trip.who].read(now, LeaseRead::Failed),
                }
            }
            for who in 0..3 {
                if dice.once_in(400) {
                    asleep[who] = now.after_millis(100 * dice.roll(400));
                }
                if asleep[who] > now || trips.iter().any(|trip| trip.who == who) {
                    continue;
                }
                let ask = candidates[who].next(now, now.to_time());
                if !matches!(ask, ElectionStep::Wait(_)) {
                    let reaches = now.after_millis(travel(&mut dice));
                    let returns = reaches.after_millis(travel(&mut dice));
                    trips.push(Trip { who, ask, reaches, returns, lost: dice.once_in(8), answer: None });
                }
            }
            let leaders: Vec<usize> = (0..3).filter(|who| candidates[*who].leads(now)).collect();
            assert!(leaders.len() <= 1, "seed {seed}: {leaders:?} lead at {now:?}");
            if leaders.first().copied() != led && !leaders.is_empty() {
                led = leaders.first().copied();
                terms_of_office += 1;
            }
        }
    }
    assert!(terms_of_office > 200, "the test must see leaders change: {terms_of_office}");
}

/// Mostly quick, now and then slower than the deadlines allow.
fn travel(dice: &mut Dice) -> u64 {
    let longest = if dice.once_in(10) { 120 } else { 3 };
    100 * (1 + dice.roll(longest))
}
