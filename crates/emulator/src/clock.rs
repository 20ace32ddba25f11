//! Virtual time: when each die and each channel is free.
//!
//! A die takes one operation at a time, so whoever posts to a busy die waits for it; a transfer waits for its channel.
//! There is one caller, whose waits let the time pass; or each call has a time of its own, which may be before the end of
//! the call before it ([`Clock::begin_call`]), and then dies and channels serve calls in the order in which they were made.
//! Invariants: within a call time never runs backwards; nothing here sleeps or looks at a real clock.

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now_ns: u64,
    dies_free_ns: Vec<u64>,
    channels_free_ns: Vec<u64>,
    worst_op_ns: u64,
    /// The end of everything that the call under way waited for or posted so far.
    call_end_ns: u64,
}

impl Clock {
    pub(crate) fn new(dies: u32, channels: u16, now_ns: u64) -> Self {
        Self {
            now_ns,
            dies_free_ns: vec![now_ns; dies as usize],
            channels_free_ns: vec![now_ns; usize::from(channels.max(1))],
            worst_op_ns: 0,
            call_end_ns: now_ns,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass until `ns`; earlier times change nothing.
    pub(crate) fn advance_to(&mut self, ns: u64) {
        self.now_ns = self.now_ns.max(ns);
    }

    /// A call begins that came at this time: it is the time now, later or earlier than before.
    pub(crate) fn begin_call(&mut self, arrival_ns: u64) {
        (self.now_ns, self.call_end_ns) = (arrival_ns, arrival_ns);
    }

    pub(crate) fn call_end_ns(&self) -> u64 {
        self.call_end_ns
    }

    /// How long a die will be busy yet.
    pub(crate) fn pending_ns(&self, die: usize) -> u64 {
        self.dies_free_ns.get(die).map_or(0, |free_ns| free_ns.saturating_sub(self.now_ns))
    }

    /// When the last die becomes free, or now.
    pub(crate) fn busy_until_ns(&self) -> u64 {
        self.dies_free_ns.iter().copied().fold(self.now_ns, u64::max)
    }

    /// Waits until `die` is free.
    pub(crate) fn wait_for_die(&mut self, die: usize) {
        self.wait_until(self.now_ns + self.pending_ns(die));
    }

    /// Lets the caller wait until then.
    pub(crate) fn wait_until(&mut self, until_ns: u64) {
        let waited_ns = until_ns.saturating_sub(self.now_ns);
        self.worst_op_ns = self.worst_op_ns.max(waited_ns);
        self.now_ns += waited_ns;
        self.call_end_ns = self.call_end_ns.max(self.now_ns);
    }

    /// A read begins as soon as its die is free: senses, then transfers. When the caller has the data.
    pub(crate) fn begin_read(&mut self, die: usize, sense_ns: u64, transfer_ns: u64) -> u64 {
        let channel = die % self.channels_free_ns.len();
        let sensed_ns = self.now_ns.max(self.dies_free_ns[die]) + sense_ns;
        let done_ns = sensed_ns.max(self.channels_free_ns[channel]) + transfer_ns;
        if transfer_ns > 0 {
            self.channels_free_ns[channel] = done_ns;
        }
        self.dies_free_ns[die] = done_ns;
        done_ns
    }

    /// A program or an erase: waits for the die alone; transfer and cell work go on without the caller.
    pub(crate) fn post(&mut self, die: usize, transfer_ns: u64, busy_ns: u64) {
        self.wait_for_die(die);
        let channel = die % self.channels_free_ns.len();
        let mut start_ns = self.now_ns;
        if transfer_ns > 0 {
            start_ns = start_ns.max(self.channels_free_ns[channel]) + transfer_ns;
            self.channels_free_ns[channel] = start_ns;
        }
        self.dies_free_ns[die] = start_ns + busy_ns;
        self.call_end_ns = self.call_end_ns.max(start_ns + busy_ns);
    }

    /// Waits for every die.
    pub(crate) fn barrier(&mut self) {
        self.wait_until(self.busy_until_ns());
    }

    /// Every die is idle from now on: the power was off.
    pub(crate) fn make_idle(&mut self) {
        self.dies_free_ns.fill(self.now_ns);
        self.channels_free_ns.fill(self.now_ns);
    }

    pub(crate) fn take_worst_op_ns(&mut self) -> u64 {
        std::mem::take(&mut self.worst_op_ns)
    }
}
