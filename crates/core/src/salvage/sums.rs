//! Which of many numbers make a sum: what was deleted is told from what was not by what is left of a count.
//!
//! Invariant: what is found adds up exactly, and whoever asks agrees with it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Most numbers of which three at a time are tried.
const THREE_OF: usize = 2000;

/// Most numbers of which however many are tried.
pub const ALL_OF: usize = 32;

/// Choices at most that are looked at of those which come to the same: many only do where the same number came and went.
const MEETING_MAX: usize = 16;

/// Those of `parts` that add up to `need` (under `mask`) and that `fits` agrees to: of up to [`ALL_OF`] however many, of
/// more at most three, and of very many two.
pub fn adding_up(parts: &[u64], need: u64, mask: u64, fits: &dyn Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let need = need & mask;
    if need == 0 && fits(&[]) {
        return Some(Vec::new());
    }
    if parts.len() <= ALL_OF {
        return any_adding_up(parts, need, mask, fits);
    }
    let places: BTreeMap<u64, usize> = parts.iter().enumerate().map(|(at, part)| (part & mask, at)).collect();
    let one = |rest: u64| places.get(&(rest & mask)).copied();
    if let Some(at) = one(need).filter(|&at| fits(&[at])) {
        return Some(alloc::vec![at]);
    }
    for (first, part) in parts.iter().enumerate() {
        let second = one(need.wrapping_sub(*part)).filter(|&second| second > first);
        if let Some(second) = second.filter(|&second| fits(&[first, second])) {
            return Some(alloc::vec![first, second]);
        }
    }
    if parts.len() > THREE_OF {
        return None;
    }
    for (first, part) in parts.iter().enumerate() {
        for (second, other) in parts.iter().enumerate().skip(first + 1) {
            let third = one(need.wrapping_sub(*part).wrapping_sub(*other)).filter(|&third| third > second);
            if let Some(third) = third.filter(|&third| fits(&[first, second, third])) {
                return Some(alloc::vec![first, second, third]);
            }
        }
    }
    None
}

/// The same of few parts: every choice of one half of them meets every choice of the other.
fn any_adding_up(parts: &[u64], need: u64, mask: u64, fits: &dyn Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let (one, other) = parts.split_at(parts.len() / 2);
    let chosen = |of: u64, first: usize| (0..64).filter(move |bit| of >> bit & 1 != 0).map(move |bit| first + bit);
    let sum_of = |parts: &[u64], of: u64| {
        chosen(of, 0).filter_map(|at| parts.get(at)).fold(0, |sum: u64, part| sum.wrapping_add(*part))
    };
    let mut sums: Vec<(u64, u64)> = (0..1 << one.len()).map(|of| (sum_of(one, of) & mask, of)).collect();
    sums.sort_unstable();
    (0..1u64 << other.len()).find_map(|of| {
        let rest = need.wrapping_sub(sum_of(other, of)) & mask;
        let from = sums.partition_point(|&(sum, _)| sum < rest);
        let meeting = sums.iter().skip(from).take_while(|&&(sum, _)| sum == rest).take(MEETING_MAX);
        let mut choices = meeting.map(|&(_, first)| chosen(first, 0).chain(chosen(of, one.len())).collect::<Vec<_>>());
        choices.find(|choice| fits(choice))
    })
}
