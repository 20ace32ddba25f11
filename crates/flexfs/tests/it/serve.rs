//! `flexfs serve`: a card over NBD, its image, and what others are told of it. The host is the client of the crate `card`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use card::host::{FLUSH, NbdHost, TRIM};
use ftl::Scheme;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{PATIENCE, assert_clean, flexfs, info, output, run};

/// A server, with its socket, as a child of the test.
struct CardProcess {
    child: Child,
    socket: PathBuf,
}

impl CardProcess {
    /// Starts `flexfs serve`, and waits until it listens.
    fn start(dir: &Path, args: &[&str]) -> Self {
        let socket = dir.join("card.sock");
        let mut command = flexfs(["serve", "--listen"]);
        command.arg(format!("unix:{}", socket.display())).args(args).current_dir(dir).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("served at nbd+unix:///?socket="), "{said}");
        Self { child, socket }
    }

    fn host(&self) -> NbdHost<UnixStream> {
        NbdHost::connect(UnixStream::connect(&self.socket).unwrap(), "", true).unwrap()
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for CardProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command says that must fail; a server that is not refused would go on for ever.
fn refused(command: &mut Command) -> String {
    let mut limited = Command::new("timeout");
    limited.arg(PATIENCE.as_secs().to_string()).arg(command.get_program()).args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    let output = output(&mut limited);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty() && said.lines().count() == 1, "{command:?}: {said}");
    said
}

#[test]
fn written_bytes_are_there_after_the_server_is_killed() {
    for scheme in Scheme::ALL.map(Scheme::name) {
        let dir = tempfile::tempdir().unwrap();
        let server = CardProcess::start(dir.path(), &["card.img", "--create", "2MiB", "--ftl", scheme]);
        let mut host = server.host();
        for turn in 0..40_u64 {
            host.write(turn * 7_000 % 900_000, &[turn as u8 + 1; 5_000], 0).unwrap().unwrap();
        }
        host.write(100_003, b"odd places", 0).unwrap().unwrap();
        host.ask(TRIM, 0, (7_168, 512)).unwrap().unwrap();
        let mut expected = vec![0; 900_000];
        host.read(0, &mut expected).unwrap().unwrap();
        assert!(!server.end(Signal::KILL).success());
        fs::remove_file(dir.path().join("card.sock")).unwrap();
        let server = CardProcess::start(dir.path(), &["card.img"]);
        let mut found = vec![0xee; 900_000];
        server.host().read(0, &mut found).unwrap().unwrap();
        assert!(found == expected && found[100_003..].starts_with(b"odd places"), "{scheme}");
        assert!(server.end(Signal::TERM).success(), "{scheme}");
        assert!(!dir.path().join("card.sock").exists());
        assert_clean(&dir.path().join("card.img"));
    }
}

#[test]
fn others_are_told_of_a_served_image_and_do_not_touch_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    let server = CardProcess::start(dir.path(), &["card.img", "--create", "2MiB", "--ftl", "log-block"]);
    let mut host = server.host();
    host.write(0, &[1; 40_000], 0).unwrap().unwrap();
    host.read(0, &mut [0; 10_000]).unwrap().unwrap();
    host.ask(FLUSH, 0, (0, 0)).unwrap().unwrap();
    let told = info(&image);
    assert_eq!(told["served"]["host"]["written_bytes"], 40_000, "{told}");
    assert_eq!((&told["served"]["host"]["read_bytes"], &told["served"]["clients"]), (&10_000.into(), &1.into()));
    let programs = told["served"]["work"]["programs"].as_u64().unwrap();
    assert!(programs >= 79, "{told}");
    assert_eq!(told["served"]["block_map"].as_str().unwrap().len() as u64, told["chip"]["blocks"].as_u64().unwrap());
    let shown = run(flexfs(["info"]).arg(&image));
    assert!(shown.contains("served        at nbd+unix:") && shown.contains("1 requests, 39.1 KiB"), "{shown}");
    let picture = run(flexfs(["top", "--once", "--interval", "0.1"]).arg(&image));
    assert!(picture.contains("log-block, 1.5 MiB") && picture.contains("1 client"), "{picture}");
    let overview = run(flexfs(["dump"]).arg(&image));
    assert!(overview.contains("scheme       log-block") && overview.contains("D data"), "{overview}");
    let block: Value =
        serde_json::from_str(run(flexfs(["dump", "--json", "--block", "0"]).arg(&image)).lines().next().unwrap())
            .unwrap();
    assert_eq!(block["used_as"], "anchor");
    let in_use = "in use: it is served at nbd+unix:";
    for args in [vec!["fsck"], vec!["fsck", "-y"], vec!["serve", "--listen", "unix:other"], vec!["ls"]] {
        let said = refused(flexfs(args).arg(&image).current_dir(dir.path()));
        assert!(said.contains(in_use) && said.contains("flexfs serve` (process "), "{said}");
    }
    assert!(server.end(Signal::INT).success());
    assert!(refused(flexfs(["ls"]).arg(&image)).contains("`flexfs serve"));
    let said = refused(flexfs(["top", "--once"]).arg(&image));
    assert!(said.contains("`flexfs serve"), "{said}");
}

#[test]
fn a_card_served_read_only_or_from_memory_leaves_its_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    run(flexfs(["mkfs", "--size", "2MiB", "--profile", "k9f5608u0m", "--ftl", "dftl"]).arg(&image));
    let before = fs::read(&image).unwrap();
    for (more, errno) in [("--read-only", Some(1)), ("--memory", None)] {
        let server = CardProcess::start(dir.path(), &["card.img", more]);
        let mut host = server.host();
        let written = host.write(0, &[1; 512], 0).unwrap();
        assert_eq!(written.err().map(|error| error.errno), errno, "{more}");
        let mut found = [0xee; 512];
        host.read(0, &mut found).unwrap().unwrap();
        assert_eq!(found, [u8::from(errno.is_none()); 512], "{more}");
        assert!(server.end(Signal::TERM).success());
        assert!(fs::read(&image).unwrap() == before, "{more}");
    }
    let server = CardProcess::start(dir.path(), &["--memory", "--create", "2MiB", "--ftl", "fast"]);
    server.host().write(0, &[1; 512], 0).unwrap().unwrap();
    assert!(server.end(Signal::TERM).success());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing but the image");
}

#[test]
fn what_cannot_be_served_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    run(flexfs(["mkfs", "--size", "8MiB"]).arg(at("files.img")));
    run(flexfs(["mkfs", "--size", "64MiB", "--profile", "codesign-mlc8", "--over", "codesign"]).arg(at("drive.img")));
    run(flexfs(["mkfs", "--size", "2MiB", "--profile", "k9f5608u0m", "--ftl", "fast"]).arg(at("card.img")));
    let serve = |args: &[&str]| refused(flexfs(["serve"]).args(args).current_dir(dir.path()));
    for name in ["files.img", "drive.img"] {
        let said = serve(&[name]);
        assert!(said.contains("it holds a file system") && said.contains(&format!("`flexfs mount {name} ")), "{said}");
    }
    assert!(serve(&["card.img", "--ftl", "fast"]).contains("--ftl is for a card that is made with --create"));
    assert!(serve(&["card.img", "--create", "2MiB", "--ftl", "fast"]).contains("card.img: exists"));
    assert!(serve(&["new.img", "--create", "256KiB", "--ftl", "fast"]).contains("--create"));
    assert!(serve(&["none.img"]).contains("no such image"));
    fs::write(at("taken"), "x").unwrap();
    assert!(serve(&["card.img", "--record", "taken"]).contains("taken: exists"));
    assert!(serve(&["card.img", "--listen", "unix:nowhere/card.sock"]).contains("unix:nowhere/card.sock: "));
    let server = CardProcess::start(dir.path(), &["card.img"]);
    let said = serve(&["--memory", "--create", "2MiB", "--ftl", "fast", "--listen", "unix:card.sock"]);
    assert!(said.contains("another server listens there"), "{said}");
    assert!(server.end(Signal::TERM).success());
}

#[test]
fn a_recording_replays_to_the_counts_of_its_server() {
    for (scheme, profile) in [("log-block", "k9f5608u0m"), ("dftl", "k9f5608u0m"), ("page-greedy", "k9k8g08u0m")] {
        let dir = tempfile::tempdir().unwrap();
        let create = ["--create", if profile == "k9f5608u0m" { "2MiB" } else { "16MiB" }];
        let more = ["--ftl", scheme, "--profile", profile, "--record", "busy.trace", "--no-idle-merges"];
        let server = CardProcess::start(dir.path(), &[&["card.img"], &create[..], &more].concat());
        let mut host = server.host();
        for turn in 0..600_u64 {
            let offset = turn * 7_919 % 1_800 * 512;
            host.write(offset, &vec![turn as u8; 512 + turn as usize % 13 * 512], 0).unwrap().unwrap();
            host.read(offset / 2, &mut [0; 1_536]).unwrap().unwrap();
        }
        host.ask(TRIM, 0, (65_536, 40_960)).unwrap().unwrap();
        let served = info(&dir.path().join("card.img"))["served"].clone();
        assert!(server.end(Signal::TERM).success());
        let args = ["replay", "busy.trace", "--json", "--as-recorded", "--ftl", scheme];
        let replayed: Value = serde_json::from_str(&run(flexfs(args).current_dir(dir.path()))).unwrap();
        let works = ["programs", "erases", "merges", "partial_merges", "switches", "map_writes", "map_copies"];
        for work in works {
            assert_eq!(replayed[work], served["work"][work], "{scheme}, {work}: {replayed}");
        }
        for (sectors, of_server) in [("sectors_written", "written"), ("sectors_trimmed", "trimmed")] {
            assert_eq!(replayed[sectors], served["sectors"][of_server], "{scheme}, {sectors}");
        }
        assert!(replayed["erases"].as_u64() > Some(10), "{scheme}: {replayed}");
        // Another scheme takes the same requests.
        let args = ["replay", "busy.trace", "--ftl", "fast", "--as-recorded", "--full", "--warm-up"];
        let told = run(flexfs(args).current_dir(dir.path()));
        assert!(told.contains("extra erases") && told.contains("compared"), "{told}");
    }
}

#[test]
fn counts_that_a_scheme_does_not_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.trace"), "0 0 0 8 0\n").unwrap();
    let replay = |args: &[&str]| refused(flexfs(["replay", "one.trace"]).args(args).current_dir(dir.path()));
    assert!(
        replay(&["--ftl", "dftl", "--logs", "4"]).contains("one.trace: a dftl translation layer has none of those")
    );
    assert!(
        replay(&["--ftl", "fast", "--size", "16MiB", "--extra-blocks", "9999"])
            .contains("is too many: the chip has 1,024 blocks")
    );
}
