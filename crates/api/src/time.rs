use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A point in time as Kubernetes writes it: RFC 3339, UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub String);

impl Time {
    /// The time at so many milliseconds after 1970, to the second.
    pub fn from_unix_millis(millis: u64) -> Time {
        let (date, clock) = split(millis);
        Time(format!("{date}T{clock}Z"))
    }

    /// The same with microseconds, as leases and events carry it.
    pub fn micro_from_unix_millis(millis: u64) -> Time {
        let (date, clock) = split(millis);
        Time(format!("{date}T{clock}.{:06}Z", (millis % 1000) * 1000))
    }

    /// Milliseconds after 1970, if the text is a UTC time we understand.
    pub fn unix_millis(&self) -> Option<u64> {
        let text = self.0.strip_suffix('Z')?;
        let (date, clock) = text.split_once('T')?;
        let mut date = date.splitn(3, '-').map(|p| p.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut clock = clock.splitn(3, ':').map(|p| p.parse::<i64>().ok());
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let mut millis = 0;
        for (index, digit) in fraction.bytes().take(3).enumerate() {
            millis += i64::from(digit.checked_sub(b'0')?) * [100, 10, 1][index];
        }
        let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        u64::try_from(seconds * 1000 + millis).ok()
    }
}

fn split(millis: u64) -> (String, String) {
    let seconds = millis / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(i64::try_from(days).unwrap_or(0));
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    (format!("{year:04}-{month:02}-{day:02}"), clock)
}

// Howard Hinnant's calendar arithmetic: years start in March, so that the leap day is the last one.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        for millis in [0, 951_782_400_000, 1_794_771_599_000, 4_102_444_800_000] {
            assert_eq!(Time::from_unix_millis(millis).unix_millis(), Some(millis));
        }
        assert_eq!(Time::from_unix_millis(951_782_400_000).0, "2000-02-29T00:00:00Z");
        assert_eq!(Time::micro_from_unix_millis(1_001).0, "1970-01-01T00:00:01.001000Z");
        assert_eq!(Time("1970-01-01T00:00:01.5Z".into()).unix_millis(), Some(1_500));
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for text in ["", "yesterday", "2026-11-15", "2026-11-15T10:00:00", "2026-xx-15T10:00:00Z"] {
            assert_eq!(Time(text.into()).unix_millis(), None, "{text}");
        }
    }
}
