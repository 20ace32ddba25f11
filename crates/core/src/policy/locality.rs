//! Locality (FlexFS §4.1.3): which files are overwritten again and again, by two queues of inodes (2Q).
//!
//! Invariant: a file is hot only if what it held was overwritten more than once; both queues are bounded.

/// Files that a queue remembers.
const FILES: usize = 64;

/// The files that were overwritten last, the latest first.
#[derive(Clone, Copy, Debug)]
struct Queue {
    files: [u64; FILES],
    len: usize,
}

impl Queue {
    const EMPTY: Self = Self { files: [0; FILES], len: 0 };

    fn position(&self, file: u64) -> Option<usize> {
        self.files.iter().take(self.len).position(|&known| known == file)
    }

    /// Moves the file at a position to the front.
    fn bring_forward(&mut self, at: usize) {
        if let Some(before) = self.files.get_mut(..=at) {
            before.rotate_right(1);
        }
    }

    /// Puts a file to the front; the last one that there was no room for any more.
    fn push(&mut self, file: u64) -> Option<u64> {
        self.files.rotate_right(1);
        let [first, ..] = &mut self.files;
        let last = core::mem::replace(first, file);
        let dropped = (self.len == FILES).then_some(last);
        self.len = (self.len + 1).min(FILES);
        dropped
    }

    fn remove(&mut self, at: usize) {
        if let Some(behind) = self.files.get_mut(at..self.len) {
            behind.rotate_left(1);
            self.len -= 1;
        }
    }
}

/// The two queues.
#[derive(Clone, Copy, Debug)]
pub struct Queues {
    hot: Queue,
    cold: Queue,
}

impl Queues {
    pub const EMPTY: Self = Self { hot: Queue::EMPTY, cold: Queue::EMPTY };

    /// Whether a file is hot.
    pub fn is_hot(&self, file: u64) -> bool {
        self.hot.position(file).is_some()
    }

    /// Hears that something a file held was overwritten: one of the cold queue becomes hot, and the file that has been
    /// hot for the longest time without that becomes cold where there are too many.
    pub fn overwritten(&mut self, file: u64) {
        if let Some(at) = self.hot.position(file) {
            return self.hot.bring_forward(at);
        }
        let Some(at) = self.cold.position(file) else {
            self.cold.push(file);
            return;
        };
        self.cold.remove(at);
        if let Some(cooled) = self.hot.push(file) {
            self.cold.push(cooled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hot_from_the_second_overwrite_on() {
        let mut queues = Queues::EMPTY;
        queues.overwritten(7);
        assert!(!queues.is_hot(7));
        queues.overwritten(7);
        assert!(queues.is_hot(7) && !queues.is_hot(8) && !queues.is_hot(0));
    }

    #[test]
    fn the_file_overwritten_least_recently_cools_where_there_are_too_many() {
        let mut queues = Queues::EMPTY;
        let heat = |queues: &mut Queues, file| (0..2).for_each(|_| queues.overwritten(file));
        (1..=64).for_each(|file| heat(&mut queues, file));
        queues.overwritten(1);
        heat(&mut queues, 65);
        assert!(queues.is_hot(1) && !queues.is_hot(2) && queues.is_hot(65));
        queues.overwritten(2);
        assert!(queues.is_hot(2) && !queues.is_hot(3), "it was remembered as cold");
    }

    #[test]
    fn files_overwritten_once_do_not_displace_hot_ones() {
        let mut queues = Queues::EMPTY;
        (0..2).for_each(|_| queues.overwritten(7));
        (100..1000).for_each(|file| queues.overwritten(file));
        assert!(queues.is_hot(7));
        assert!(!queues.is_hot(999));
    }
}
