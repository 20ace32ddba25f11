//! Panics as errors: a file system that panics has broken a promise like any other. Invariant: no panic of what is
//! tortured ends the torture.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does something; a panic in it is an error that says what the panic said.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", said.unwrap_or("without a word")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(caught(|| Ok(3)), Ok(3));
        assert_eq!(caught::<u32>(|| panic!("at once")), Err("panicked: at once".into()));
        assert_eq!(caught::<u32>(|| panic!("{}", 7)), Err("panicked: 7".into()));
    }
}
