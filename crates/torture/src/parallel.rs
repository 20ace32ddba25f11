//! The same work for many, some beside each other. Invariant: outcomes come in the order of what was worked on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does the same with each, some beside each other; the outcomes in order.
pub fn parallel<T: Sync, R: Send>(threads: usize, all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(index) else { return };
                    let outcome = work(one);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).insert(index, outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_come_in_order_however_many_threads_there_are() {
        let all: Vec<u32> = (0..100).collect();
        assert_eq!(parallel(7, &all, |&n| n * 2), (0..100).map(|n| n * 2).collect::<Vec<_>>());
    }
}
