//! The columns of a line, and the numbers in them. Invariant: what is no number in full is an error that names the column.

use std::str::FromStr;

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

/// Seconds with a fraction of up to nine digits, as ns.
pub fn seconds_ns(text: &str, what: &str) -> Result<i128, String> {
    let wrong = || format!("{what} is no time as SECONDS.NANOSECONDS: {text:?}");
    let (whole, fraction) = text.split_once('.').ok_or_else(wrong)?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let fraction_ns: i128 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    Ok(i128::from(whole) * 1_000_000_000 + fraction_ns)
}

/// Bytes of so many sectors.
pub fn sectors(count: u64, what: &str) -> Result<u64, String> {
    count.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("{what} is too large: {count} sectors"))
}
