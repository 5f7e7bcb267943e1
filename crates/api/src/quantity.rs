use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An amount as Kubernetes writes it (`1Gi`, `1.5G`, `100m`, `2e3`). The text is kept as written; its value is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Quantity(pub String);

/// A text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadQuantity(pub String);

impl fmt::Display for BadQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a quantity; write a number with an optional suffix, such as 512Mi or 1.5Gi", self.0)
    }
}

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// A whole number of bytes, in the largest binary unit that expresses it exactly.
    pub fn from_bytes(bytes: i64) -> Quantity {
        let units = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
        for (suffix, shift) in units {
            let unit = 1_i64 << shift;
            if bytes >= unit && bytes % unit == 0 {
                return Quantity(format!("{}{suffix}", bytes / unit));
            }
        }
        Quantity(bytes.to_string())
    }

    /// The whole units, rounded up, as Kubernetes rounds sizes. Values beyond `i64` read as its end.
    pub fn bytes(&self) -> Result<i64, BadQuantity> {
        let nanos = self.nanos()?;
        let whole = nanos.div_euclid(NANO) + i128::from(nanos.rem_euclid(NANO) > 0);
        Ok(i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Thousandths, rounded up, as processors are counted.
    pub fn millis(&self) -> Result<i64, BadQuantity> {
        let nanos = self.nanos()?;
        let whole = nanos.div_euclid(NANO / 1000) + i128::from(nanos.rem_euclid(NANO / 1000) > 0);
        Ok(i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX }))
    }

    /// The exact value in billionths, rounded away from zero where finer.
    fn nanos(&self) -> Result<i128, BadQuantity> {
        parse(&self.0).ok_or_else(|| BadQuantity(self.0.clone()))
    }
}

/// Scale of a suffix: a power of two, or a power of ten.
enum Scale {
    Two(u32),
    Ten(i32),
}

fn parse(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits.bytes().position(|b| !b.is_ascii_digit() && b != b'.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let scale = scale(suffix)?;
    let mut mantissa: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let places = u32::try_from(fraction.len()).ok()?;
    let value = match scale {
        Scale::Two(shift) => divide_up(mantissa.checked_mul(NANO)?.checked_mul(1 << shift)?, power(places)?),
        Scale::Ten(exponent) => {
            let exponent = exponent + 9 - i32::try_from(places).ok()?;
            match u32::try_from(exponent) {
                Ok(up) => mantissa.checked_mul(power(up)?)?,
                Err(_) => divide_up(mantissa, power(exponent.unsigned_abs())?),
            }
        }
    };
    Some(if negative { -value } else { value })
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let value: i32 = digits.parse().ok()?;
            Scale::Ten((-30..=30).contains(&value).then_some(value)?)
        }
    })
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

fn divide_up(value: i128, by: i128) -> i128 {
    value / by + i128::from(value % by > 0)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            // Null, as Go reads it.
            fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity("0".into()))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_string()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<i64, BadQuantity> {
        Quantity(text.into()).bytes()
    }

    #[test]
    fn every_suffix_is_exact() {
        for (text, value) in [
            ("0", 0),
            ("1", 1),
            ("1Ki", 1 << 10),
            ("1.5Gi", 3 << 29),
            ("1Ei", 1 << 60),
            ("1E", 1_000_000_000_000_000_000),
            ("2e3", 2000),
            ("1E3", 1000),
            ("100m", 1),
            ("1n", 1),
            (".5", 1),
            ("5.", 5),
            ("-1.5", -1),
            ("+7k", 7000),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("123456789.123456789M", 123_456_789_123_457),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "Gi", "1 Gi", "1.2.3", "1gi", "1KiB", "e3", "--1", "1e99", "0x10", "NaN", "."] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prints_the_largest_exact_unit() {
        for (value, text) in [(0, "0"), (1000, "1000"), (1 << 30, "1Gi"), (3 << 29, "1536Mi"), (1025, "1025")] {
            assert_eq!(Quantity::from_bytes(value).0, text);
        }
    }
}
