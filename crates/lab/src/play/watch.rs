//! Watching volumes that are played with: whoever runs a workload can have a look at its volume whenever time passes there.
//!
//! Invariant: watching changes nothing. A watcher sees what is played on its own thread, for as long as its work lasts.

use std::cell::RefCell;

use emulator::Chip;
use flexfs_core::Fs;

/// Looks at a volume; it may pass over as many moments as it likes.
pub type Watcher = Box<dyn FnMut(&mut Fs<Chip>)>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Does some work on this thread, with a watcher of what is played in it.
pub fn watched<T>(watcher: Watcher, work: impl FnOnce() -> T) -> T {
    let outer = WATCHER.replace(Some(watcher));
    let done = work();
    WATCHER.replace(outer);
    done
}

/// Time has passed in a volume.
pub(super) fn show(fs: &mut Fs<Chip>) {
    WATCHER.with_borrow_mut(|watcher| {
        if let Some(watcher) = watcher {
            watcher(fs);
        }
    });
}
