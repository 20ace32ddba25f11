//! The queues of a drive: time of each command on its die and on the bus of its channel.
//!
//! A read senses, then holds the bus; a program holds the bus, then programs. Each die takes its commands in order. Invariant:
//! a die's cells do one thing at a time, a bus carries one command at a time, and a request ends with its last page.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::command::{BackgroundStep, CommandKind, PageCommand, StepOutcome};
use super::pending::{PendingTimes, PendingWork};
use super::shape::{DriveShape, DriveSwitches, DriveTimes};

/// What a command on a die is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DieWork {
    Read { request: u32 },
    Program { request: u32 },
    Background { duration_ns: u64 },
}

impl DieWork {
    fn is_same_kind(self, other: Self) -> bool {
        matches!((self, other), (Self::Read { .. }, Self::Read { .. }) | (Self::Program { .. }, Self::Program { .. }))
    }
}

#[derive(Clone, Copy, Debug)]
struct QueuedCommand {
    work: DieWork,
    channel: u8,
    /// The die of the drive.
    die: u16,
    pages: u8,
    may_overlap: bool,
    /// A read was sensed, or a program's bytes are in the register.
    is_half_done: bool,
}

/// Commands by their numbers.
#[derive(Clone, Debug, Default)]
struct DieQueue {
    waiting: VecDeque<u32>,
    /// The command under way, and the next one that overlaps it.
    active: [Option<u32>; 2],
}

#[derive(Clone, Debug, Default)]
struct Bus {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    /// The command got the permission to use the drive's memory.
    Permitted,
    CellsDone,
    BusDone,
}

/// Events at one time come in the order in which they were foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueEvent {
    at_ns: u64,
    number: u64,
    kind: EventKind,
    command: u32,
}

/// The drive at work.
pub struct DriveModel {
    shape: DriveShape,
    times: DriveTimes,
    switches: DriveSwitches,
    now_ns: u64,
    dies: Vec<DieQueue>,
    buses: Vec<Bus>,
    commands: Vec<QueuedCommand>,
    /// Numbers of commands that are done.
    spare: Vec<u32>,
    events: BinaryHeap<Reverse<QueueEvent>>,
    events_ever: u64,
    /// When the permission is free again.
    permission_ns: u64,
    /// Pages that each request still waits for.
    pages_left: Vec<u32>,
    /// Background steps that are not done, by channel.
    steps_left: Vec<u32>,
    pages_done: u64,
    pending: PendingTimes,
}

impl DriveModel {
    /// An idle drive at time 0.
    pub fn new(shape: DriveShape, times: DriveTimes, switches: DriveSwitches) -> Self {
        let dies = usize::from(shape.channels) * usize::from(shape.dies_per_channel());
        Self {
            shape,
            times,
            switches,
            now_ns: 0,
            dies: vec![DieQueue::default(); dies],
            buses: vec![Bus::default(); usize::from(shape.channels)],
            commands: Vec::new(),
            spare: Vec::new(),
            events: BinaryHeap::new(),
            events_ever: 0,
            permission_ns: 0,
            pages_left: Vec::new(),
            steps_left: vec![0; usize::from(shape.channels)],
            pages_done: 0,
            pending: PendingTimes::none(shape, times),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Pages that were read or programmed for requests.
    pub fn pages_done(&self) -> u64 {
        self.pages_done
    }

    /// How long dies are busy with what was asked of them.
    pub fn pending(&self) -> &PendingTimes {
        &self.pending
    }

    /// When something happens next.
    pub fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.at_ns)
    }

    /// Lets time pass in which nothing happens.
    pub fn wait_until(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Whether a die has nothing to do.
    pub fn is_idle(&self, channel: u8, die: u8) -> bool {
        let queue = &self.dies[usize::from(self.die_number(channel, die))];
        queue.waiting.is_empty() && queue.active[0].is_none()
    }

    /// Whether a background step of a channel waits or is under way.
    pub fn has_background(&self, channel: u8) -> bool {
        self.steps_left[usize::from(channel)] > 0
    }

    /// Queues the commands of a request, and gives its number.
    pub fn submit(&mut self, commands: &[PageCommand]) -> u32 {
        let request = self.pages_left.len() as u32;
        let pages = commands.iter().map(|command| u32::from(command.pages)).sum();
        self.pages_left.push(pages);
        let mut permitted_channels = 0_u64;
        for command in commands {
            let work = match command.kind {
                CommandKind::Read => DieWork::Read { request },
                CommandKind::Program => DieWork::Program { request },
            };
            let die = self.die_number(command.channel, command.die);
            let (channel, pages_each) = (command.channel, command.pages);
            let may_overlap = self.switches.overlap.holds_for(pages);
            let queued = QueuedCommand { work, channel, die, pages: pages_each, may_overlap, is_half_done: false };
            self.pending.add(die, self.pending_work(&queued));
            let number = self.number_of(queued);
            let Some(exchange) = self.switches.exchange else {
                self.queue(number);
                continue;
            };
            if pages <= exchange.once_over_pages || permitted_channels >> channel & 1 == 0 {
                self.permission_ns = self.permission_ns.max(self.now_ns) + exchange.command_ns;
                permitted_channels |= 1 << channel;
            }
            self.expect(self.permission_ns, EventKind::Permitted, number);
        }
        if self.switches.exchange.is_none() {
            // All wait for their dies before the first one asks for a bus.
            commands.iter().for_each(|command| self.start(self.die_number(command.channel, command.die)));
        }
        request
    }

    /// Queues a background step.
    pub fn submit_background(&mut self, step: &BackgroundStep) {
        let die = self.die_number(step.channel, step.die);
        let work = DieWork::Background { duration_ns: step.duration_ns };
        let channel = step.channel;
        let queued = QueuedCommand { work, channel, die, pages: 0, may_overlap: false, is_half_done: false };
        let number = self.number_of(queued);
        self.steps_left[usize::from(step.channel)] += 1;
        self.queue(number);
        self.start(die);
    }

    /// Lets the next event happen, if there is any.
    pub fn step(&mut self) -> Option<StepOutcome> {
        let Reverse(event) = self.events.pop()?;
        self.now_ns = event.at_ns;
        let QueuedCommand { work, channel, die, .. } = self.commands[event.command as usize];
        if event.kind == EventKind::BusDone {
            self.buses[usize::from(channel)].is_busy = false;
        }
        let ended = match (event.kind, work) {
            (EventKind::Permitted, _) => {
                self.queue(event.command);
                None
            }
            (EventKind::CellsDone, DieWork::Read { .. }) | (EventKind::BusDone, DieWork::Program { .. }) => {
                self.commands[event.command as usize].is_half_done = true;
                if self.dies[usize::from(die)].active[0] == Some(event.command) {
                    self.second_half(event.command);
                }
                None
            }
            (EventKind::CellsDone | EventKind::BusDone, _) => self.end(event.command),
        };
        self.start(die);
        if event.kind == EventKind::BusDone {
            self.transfer(channel);
        }
        Some(StepOutcome { channel, ended })
    }

    /// What a command counts for while it is not done.
    fn pending_work(&self, command: &QueuedCommand) -> PendingWork {
        let pages = u32::from(command.pages);
        let (page_ns, read_pages) = match command.work {
            DieWork::Read { .. } => (self.times.bus_ns, pages),
            DieWork::Program { .. } => (self.times.program_ns, 0),
            DieWork::Background { .. } => (0, 0),
        };
        PendingWork { ns: page_ns * u64::from(pages), read_pages }
    }

    fn die_number(&self, channel: u8, die: u8) -> u16 {
        u16::from(channel) * u16::from(self.shape.dies_per_channel()) + u16::from(die)
    }

    fn number_of(&mut self, command: QueuedCommand) -> u32 {
        match self.spare.pop() {
            Some(number) => {
                self.commands[number as usize] = command;
                number
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        }
    }

    fn expect(&mut self, at_ns: u64, kind: EventKind, command: u32) {
        let number = self.events_ever;
        self.events_ever += 1;
        self.events.push(Reverse(QueueEvent { at_ns, number, kind, command }));
    }

    /// Lets a command wait for its die.
    fn queue(&mut self, number: u32) {
        let command = &self.commands[number as usize];
        let waiting = &mut self.dies[usize::from(command.die)].waiting;
        let is_read = |&number: &u32| matches!(self.commands[number as usize].work, DieWork::Read { .. });
        match self.switches.read_priority && is_read(&number) {
            true => {
                let behind = waiting.iter().rposition(is_read).map_or(0, |last| last + 1);
                waiting.insert(behind, number);
            }
            false => waiting.push_back(number),
        }
    }

    /// Starts what the die can take.
    fn start(&mut self, die: u16) {
        loop {
            let queue = &self.dies[usize::from(die)];
            let Some(&next) = queue.waiting.front() else { return };
            let command = self.commands[next as usize];
            let place = match queue.active {
                [None, _] => 0,
                [Some(first), None] => {
                    let first = &self.commands[first as usize];
                    let may_overlap = first.may_overlap && command.may_overlap && first.is_half_done;
                    if !(may_overlap && first.work.is_same_kind(command.work)) {
                        return;
                    }
                    1
                }
                [Some(_), Some(_)] => return,
            };
            let queue = &mut self.dies[usize::from(die)];
            queue.waiting.pop_front();
            queue.active[place] = Some(next);
            match command.work {
                DieWork::Read { .. } => self.expect(self.now_ns + self.times.read_ns, EventKind::CellsDone, next),
                DieWork::Program { .. } => self.ask_for_bus(next),
                DieWork::Background { duration_ns } => {
                    self.expect(self.now_ns + duration_ns, EventKind::CellsDone, next);
                }
            }
        }
    }

    /// A read goes on to the bus, a program to the cells.
    fn second_half(&mut self, number: u32) {
        match self.commands[number as usize].work {
            DieWork::Read { .. } => self.ask_for_bus(number),
            _ => self.expect(self.now_ns + self.times.program_ns, EventKind::CellsDone, number),
        }
    }

    fn ask_for_bus(&mut self, number: u32) {
        let channel = self.commands[number as usize].channel;
        self.buses[usize::from(channel)].waiting.push_back(number);
        self.transfer(channel);
    }

    /// Gives a free bus to the next command.
    fn transfer(&mut self, channel: u8) {
        let bus = &mut self.buses[usize::from(channel)];
        if bus.is_busy {
            return;
        }
        let Some(next) = bus.waiting.pop_front() else { return };
        bus.is_busy = true;
        let pages = u64::from(self.commands[next as usize].pages);
        self.expect(self.now_ns + self.times.bus_ns * pages, EventKind::BusDone, next);
    }

    /// A command is done: the next one on its die goes on. Gives the request that ended.
    fn end(&mut self, number: u32) -> Option<u32> {
        let command = self.commands[number as usize];
        let QueuedCommand { work, channel, die, pages, .. } = command;
        let pending = self.pending_work(&command);
        self.spare.push(number);
        let active = &mut self.dies[usize::from(die)].active;
        *active = [active[1], None];
        if let Some(next) = active[0]
            && self.commands[next as usize].is_half_done
        {
            self.second_half(next);
        }
        match work {
            DieWork::Background { .. } => {
                self.steps_left[usize::from(channel)] -= 1;
                None
            }
            DieWork::Read { request } | DieWork::Program { request } => {
                self.pages_done += u64::from(pages);
                self.pending.take(die, pending);
                let left = &mut self.pages_left[request as usize];
                *left -= u32::from(pages);
                (*left == 0).then_some(request)
            }
        }
    }
}

#[cfg(test)]
mod tests;
