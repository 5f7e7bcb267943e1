//! Times: seconds after 1970 and nanoseconds in protobuf, RFC 3339 in JSON.

use alloc::format;
use alloc::string::String;

use api::Time;

use crate::bytes::{Wire, next};
use crate::error::Place;
use crate::{Error, Type};

/// The last second of the year 9999. What is later, or before 1970, cannot be written.
const LAST: u64 = 253_402_300_799;
const NANOS: u64 = 1_000_000_000;

/// How exact a time is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Seconds,
    Micros,
}

/// The text of a time.
pub(crate) fn read(mut bytes: &[u8], precision: Precision, place: Place) -> Result<String, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    while let Some((number, wire)) = next(&mut bytes, place.field)? {
        match (number, wire) {
            (1, Wire::Number(number)) => seconds = number,
            (2, Wire::Number(number)) => nanos = number,
            (number, _) => return Err(Error::unknown(place.field, number)),
        }
    }
    if seconds > LAST || nanos >= NANOS {
        return Err(Error::at(place, "is no time"));
    }
    Ok(written(seconds, nanos / 1000, precision))
}

fn written(seconds: u64, micros: u64, precision: Precision) -> String {
    let mut text = Time::from_unix_millis(seconds * 1000).0;
    if precision == Precision::Micros {
        text.pop();
        text.push_str(&format!(".{micros:06}Z"));
    }
    text
}

/// Seconds and nanoseconds of a text. `None` if it is no time, or one that this precision cannot say.
pub(crate) fn parse(text: &str, precision: Precision) -> Option<(u64, u64)> {
    let (seconds, nanos) = instant(text)?;
    let exact = match precision {
        Precision::Seconds => nanos == 0,
        Precision::Micros => nanos.is_multiple_of(1000),
    };
    exact.then_some((seconds, nanos))
}

/// A time as Kubernetes writes it: in UTC, and as exact as its type is. `None` if the text is no time in RFC 3339.
pub fn canonical_time(r#type: Type, text: &str) -> Option<String> {
    let (seconds, nanos) = instant(text)?;
    let precision = if matches!(r#type, Type::MicroTime) { Precision::Micros } else { Precision::Seconds };
    Some(written(seconds, nanos / 1000, precision))
}

/// Seconds after 1970 and nanoseconds of a text in RFC 3339.
fn instant(text: &str) -> Option<(u64, u64)> {
    let (clock, offset_minutes) = split_offset(text)?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    // The calendar ignores what it does not check, so the form is held to first.
    let fits = whole.len() == 19
        && whole.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            10 => byte == b'T',
            13 | 16 => byte == b':',
            _digit => byte.is_ascii_digit(),
        });
    if !fits || fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis = Time(format!("{whole}Z")).unix_millis()?;
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = i64::try_from(millis / 1000).ok()?.checked_sub(offset_minutes * 60)?;
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST)?;
    Some((seconds, nanos))
}

/// The text before the offset, and the offset from UTC in minutes.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let (clock, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _neither => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    Some((clock, sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?)))
}
