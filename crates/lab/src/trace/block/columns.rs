//! The columns of a line, and the numbers in them. Invariant: what is no number in full is an error that names the
//! column.

use std::str::FromStr;

use super::super::TimeUnit;
use super::SECTOR_BYTES;

/// Exactly so many columns, or how many there are.
pub fn exactly<'a, const N: usize>(columns: impl Iterator<Item = &'a str>) -> Result<[&'a str; N], String> {
    let columns: Vec<&str> = columns.map(str::trim).collect();
    let found = columns.len();
    columns.try_into().map_err(|_| format!("it has {found} columns, and not {N}"))
}

/// A whole number.
pub fn number<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what} is no number that can be: {text:?}"))
}

/// A whole number as C writes it in the system of 16.
pub fn hex(text: &str, what: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("{what} does not begin with 0x: {text:?}"))?;
    u64::from_str_radix(digits, 16).map_err(|_| format!("{what} is no number that can be: {text:?}"))
}

/// Whether it is a number in digits alone.
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Seconds with a fraction of up to nine digits, as ns.
pub fn seconds_ns(text: &str, what: &str) -> Result<i128, String> {
    let wrong = || format!("{what} is no time as SECONDS.NANOSECONDS: {text:?}");
    let (_, fraction) = text.split_once('.').ok_or_else(wrong)?;
    if fraction.len() > 9 {
        return Err(wrong());
    }
    decimal_ns(text, TimeUnit::S, what).map_err(|_| wrong())
}

/// A time in a unit, which may have a fraction, as ns; the part below a ns is dropped.
pub fn decimal_ns(text: &str, unit: TimeUnit, what: &str) -> Result<i128, String> {
    let wrong = || format!("{what} is no number that can be: {text:?}");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(whole) || !is_digits(fraction) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    // No unit is longer than a second: the digits beyond the ninth are below a ns.
    let billionths: u64 = format!("{fraction:0<9.9}").parse().map_err(|_| wrong())?;
    let unit_ns = i128::from(unit.ns());
    Ok(i128::from(whole) * unit_ns + i128::from(billionths) * unit_ns / 1_000_000_000)
}

/// Bytes of so many sectors.
pub fn sectors(count: u64, what: &str) -> Result<u64, String> {
    count.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("{what} is too large: {count} sectors"))
}
