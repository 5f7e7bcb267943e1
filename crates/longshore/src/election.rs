//! Flags of leader election, where the sidecars' own are not: the same names, the same rules.

use std::time::Duration;

use clap::Args;
use control::LeaseConfig;

/// The times of the Leases of leaders, under the names of the sidecars and of kube-controller-manager.
#[derive(Args, Clone, Copy, Default)]
pub struct LeaderElection {
    /// A Lease untouched for so long may be taken: so long a leader that was killed is waited for [default: 15s]
    #[arg(long, alias = "leader-elect-lease-duration", requires = "leader_elect")]
    #[arg(value_name = "DURATION", value_parser = lease_time)]
    pub leader_election_lease_duration: Option<Duration>,
    /// A leader that could not renew for so long stops working [default: 10s]
    #[arg(long, alias = "leader-elect-renew-deadline", requires = "leader_elect")]
    #[arg(value_name = "DURATION", value_parser = lease_time)]
    pub leader_election_renew_deadline: Option<Duration>,
    /// Between two tries [default: 2s]
    #[arg(long, alias = "leader-elect-retry-period", requires = "leader_elect")]
    #[arg(value_name = "DURATION", value_parser = lease_time)]
    pub leader_election_retry_period: Option<Duration>,
}

impl LeaderElection {
    /// The times as they are, given or not.
    fn times(self) -> [Duration; 3] {
        [
            self.leader_election_lease_duration.unwrap_or(Duration::from_secs(15)),
            self.leader_election_renew_deadline.unwrap_or(Duration::from_secs(10)),
            self.leader_election_retry_period.unwrap_or(Duration::from_secs(2)),
        ]
    }

    /// The rules of the game for this candidate; an error is a sentence.
    pub fn config(self, identity: String) -> Result<LeaseConfig, String> {
        let [duration, renew, retry] = self.times().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let config = LeaseConfig { identity, duration, renew, retry };
        config.check().map_err(|why| format!("leader election cannot work so: {why}"))?;
        Ok(config)
    }

    /// The same times as flags of a sidecar, all of them if any was given: together they are checked already.
    pub fn flags(self) -> Vec<String> {
        let given = [
            self.leader_election_lease_duration,
            self.leader_election_renew_deadline,
            self.leader_election_retry_period,
        ];
        if given.iter().all(Option::is_none) {
            return Vec::new();
        }
        let names = ["lease-duration", "renew-deadline", "retry-period"];
        let told = |(name, time): (&str, Duration)| format!("--leader-election-{name}={}ms", time.as_millis());
        names.into_iter().zip(self.times()).map(told).collect()
    }
}

fn lease_time(text: &str) -> Result<Duration, String> {
    let read = crate::sidecar::parse_duration(text).filter(|time| !time.is_zero());
    read.ok_or_else(|| "write a number with its unit, such as 15s or 1m30s".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lease: u64, renew: u64, retry: u64) -> LeaderElection {
        LeaderElection {
            leader_election_lease_duration: Some(Duration::from_millis(lease)),
            leader_election_renew_deadline: Some(Duration::from_millis(renew)),
            leader_election_retry_period: Some(Duration::from_millis(retry)),
        }
    }

    #[test]
    fn contradictions_are_one_sentence() {
        let why = |election: LeaderElection| election.config("a".into()).unwrap_err();
        assert!(why(times(10_000, 10_000, 2_000)).contains("must be shorter than the lease duration"));
        assert!(why(times(10_000, 2_000, 2_000)).contains("still shorter than the renew deadline"));
        assert!(why(times(999, 500, 100)).contains("at least one second"));
        let alone =
            LeaderElection { leader_election_lease_duration: Some(Duration::from_secs(5)), ..Default::default() };
        assert!(why(alone).starts_with("leader election cannot work so: "), "the other two are as they are by default");
        assert!(LeaderElection::default().config("a".into()).is_ok());
    }

    // The sidecars' part in the same process must neither refuse what was taken here nor keep times of its own.
    #[test]
    fn the_sidecars_in_the_process_get_the_same_times() {
        assert!(LeaderElection::default().flags().is_empty(), "they have defaults of their own");
        let alone =
            LeaderElection { leader_election_lease_duration: Some(Duration::from_secs(60)), ..Default::default() };
        let told = ["lease-duration=60000ms", "renew-deadline=10000ms", "retry-period=2000ms"];
        assert_eq!(alone.flags(), told.map(|one| format!("--leader-election-{one}")));
        let given: Vec<_> = alone.flags().iter().filter_map(|flag| lease_time(flag.split_once('=')?.1).ok()).collect();
        assert_eq!(given, alone.times());
        assert!(lease_time("15").is_err() && lease_time("0").is_err() && lease_time("-1s").is_err());
    }
}
