//! Times: seconds after 1970 and nanoseconds here, text in JSON.

use alloc::format;
use alloc::string::String;

use api::Time;

use crate::Error;
use crate::bytes::{Wire, next};
use crate::error::Place;

/// The last second of the year 9999. What is later, or before 1970, cannot be written.
const LAST: u64 = 253_402_300_799;
const NANOS: u64 = 1_000_000_000;

/// To what a time is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    Second,
    Microsecond,
}

/// The text of a time.
pub(crate) fn read(mut bytes: &[u8], grain: Grain, place: Place) -> Result<String, Error> {
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
    Ok(written(seconds, nanos / 1000, grain))
}

fn written(seconds: u64, micros: u64, grain: Grain) -> String {
    let mut text = Time::from_unix_millis(seconds * 1000).0;
    if grain == Grain::Microsecond {
        text.pop();
        text.push_str(&format!(".{micros:06}Z"));
    }
    text
}

/// Seconds and nanoseconds of a text that is written as [`read`] writes it.
pub(crate) fn parsed(text: &str, grain: Grain) -> Option<(u64, u64)> {
    let seconds = Time(text.into()).unix_millis()? / 1000;
    let micros = match grain {
        Grain::Second => 0,
        Grain::Microsecond => text.split_once('.')?.1.strip_suffix('Z')?.parse().ok()?,
    };
    (seconds <= LAST && written(seconds, micros, grain) == text).then_some((seconds, micros * 1000))
}
