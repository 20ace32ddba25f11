//! `flexfs top` of a real mount: its figures are those of `info --json`, and every way it ends.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Dice, Mount, flexfs, image, info, is_one_line, need, output, run, wait_for};

/// What `top --once` prints of an image.
fn once(image: &Path) -> String {
    run(flexfs(["top", "--once", "--interval", "0.1"]).arg(image))
}

fn block_map(told: &Value) -> &str {
    told["mounted"]["block_map"].as_str().unwrap()
}

/// The figures of a volume that are on the picture too.
fn figures(told: &Value) -> Vec<String> {
    let (blocks, wear, life, health) = (&told["blocks"], &told["wear"], &told["life"], &told["health"]);
    let (mounted, programmed) = (&told["mounted"], &told["programmed_bytes"]);
    let percent = |part: f64, whole: &Value| 100.0 * part / whole.as_f64().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(programmed["host"].is_u64() && mounted["read_bytes"].is_u64(), "of these it shows differences");
    let mut all = vec![
        format!(". {} free  s {} SLC (h {} hot)", blocks["free"], blocks["slc"], blocks["slc_hot"]),
        format!("n {} native  m {} metadata  b {} bad", blocks["native"], blocks["metadata"], blocks["bad"]),
        format!("α {:.2} ", told["mounted"]["alpha"].as_f64().unwrap()),
        format!(
            " next: {:.2} to SLC, {} ",
            number(&mounted["to_slc"]["share"]),
            mounted["to_slc"]["rule"].as_str().unwrap()
        ),
        format!("δ {:.2} ", told["life"]["delta"].as_f64().unwrap()),
        format!("headroom  {} blocks", mounted["headroom_blocks"]),
        format!("under way {}", mounted["under_way"].as_str().unwrap_or("nothing")),
        format!("waiting   {} failing, {} fading", health["failing_blocks"], health["fading_blocks"]),
        format!(", health {}", health["state"].as_str().unwrap()),
        format!("policy {} ", mounted["policy"].as_str().unwrap()),
        format!(" on {} ", mounted["mountpoint"].as_str().unwrap()),
        format!("life      {:.0} %: ", percent(number(&life["elapsed_ns"]), &life["goal_ns"])),
        format!(
            "budget    {:.0} %: ",
            percent(number(&life["budget_bytes"]) - number(&life["left_bytes"]), &life["budget_bytes"])
        ),
        "ends      when its goal is reached".into(),
        format!("Erases of a block: {}-{}, mean {:.1} ", wear["min"], wear["max"], number(&wear["mean"])),
        format!(" it endures {} natively ", number(&wear["endurance_native"]) as u64).replace("10000", "10,000"),
    ];
    let ranges = wear["histogram"].as_array().unwrap().iter().filter(|range| range["blocks"] != 0);
    all.extend(ranges.map(|range| format!("{}█", range["blocks"])));
    all
}

#[test]
fn a_picture_shows_the_figures_of_info_of_the_same_moment() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    run(flexfs(["mkfs", "--size", "64MiB", "--lifetime", "3y"]).arg(&image));
    let mount = Mount::new(&image);
    fs::write(mount.join("file"), Dice::new(30).bytes(4 << 20)).unwrap();
    run(Command::new("sync").arg("-f").arg(mount.join("file")));
    // The volume works on by itself: what stays the same around a picture is what the picture has to show.
    let (mut picture, mut told) = (String::new(), Value::Null);
    wait_for("a moment in which nothing changes", || {
        told = info(&image);
        picture = once(&image);
        let after = info(&image);
        figures(&told) == figures(&after) && block_map(&told) == block_map(&after)
    });
    for figure in figures(&told) {
        assert!(picture.contains(&figure), "{figure}\n{picture}");
    }
    let lines: Vec<&str> = picture.lines().collect();
    assert_eq!(lines.len(), 24, "{picture}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80) && !picture.contains('\u{1b}'), "{picture}");
    // 128 blocks are 128 cells, in two rows.
    let map = block_map(&told);
    assert_eq!(map.len(), 128);
    for (row, letters) in [&map[..78], &map[78..]].iter().enumerate() {
        assert!(lines[2 + row].starts_with(&format!("│{letters}")), "{map}\n{picture}");
    }
    // What holds nothing is free in the map at once, and counts so after the next checkpoint.
    for (letters, kind) in [("sh", "slc"), ("n", "native"), ("m", "metadata")] {
        let shown = map.matches(|letter| letters.contains(letter)).count() as u64;
        assert!(Some(shown) <= told["blocks"][kind].as_u64(), "{kind}: {told}");
    }
    assert!(map.contains('s') || map.contains('n'), "{map}");
    mount.unmount();
}

#[test]
fn an_image_that_is_not_mounted_is_refused_by_name_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    for arguments in [&["top"][..], &["top", "--once"]] {
        let refused = output(flexfs(arguments).arg(&image));
        assert_eq!(refused.status.code(), Some(1));
        assert!(refused.stdout.is_empty());
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            is_one_line(said.as_bytes()) && said.contains("flash.img: not mounted; mount it with `flexfs mount "),
            "{said}"
        );
    }
    let layer = dir.path().join("layer.img");
    let small_pages = ["mkfs", "--size", "16MiB", "--profile", "k9f5608u0m", "--ftl", "log-block"];
    run(flexfs(small_pages).arg(&layer));
    let text = dir.path().join("text");
    std::fs::write(&text, "no image").unwrap();
    for (path, why) in [
        (dir.path().join("none"), "none: no such image; make one with"),
        (dir.path().to_path_buf(), ": a directory, not a chip image; name the image file"),
        (layer, "layer.img: it holds a log-block translation layer, not a file system; `flexfs serve"),
        (text, "text: not a chip image"),
    ] {
        let refused = output(flexfs(["top", "--once"]).arg(path));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && is_one_line(&refused.stderr) && said.contains(why), "{said}");
    }
}

#[test]
fn without_a_terminal_it_names_info() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let refused = output(flexfs(["top"]).arg(&image));
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(is_one_line(said.as_bytes()) && said.contains("not a terminal; `flexfs info "), "{said}");
    mount.unmount();
}

/// `top` in a terminal of its own.
struct Terminal {
    script: Child,
    /// What was drawn.
    shown: PathBuf,
}

impl Terminal {
    /// Watches an image, and returns once it does.
    fn watch(image: &Path) -> Self {
        Self::run(&format!("top --interval 0.1 {}", image.display()), image.with_file_name("shown"))
    }

    /// Runs the program, and returns once it has drawn something.
    fn run(arguments: &str, shown: PathBuf) -> Self {
        need("script");
        let program = env!("CARGO_BIN_EXE_flexfs");
        let line = format!("stty rows 24 cols 80; exec {program} {arguments}");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
        let script = command.stdout(File::create(&shown).unwrap()).spawn().unwrap();
        let terminal = Self { script, shown };
        wait_for("a picture", || terminal.text().contains("collection"));
        terminal
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.shown).unwrap()).into_owned()
    }

    fn press(&mut self, key: &[u8]) {
        self.script.stdin.as_mut().unwrap().write_all(key).unwrap();
    }

    /// Waits for its end, which must leave the terminal as it was; gives all that was shown.
    fn end(mut self) -> String {
        let mut status = None;
        wait_for("the end of top", || {
            status = self.script.try_wait().unwrap();
            status.is_some()
        });
        let text = self.text();
        assert_eq!(status.unwrap().code(), Some(0), "{text}");
        assert!(text.contains("\u{1b}[?1049l") && text.contains("\u{1b}[?25h"), "{text}");
        text
    }
}

impl Drop for Terminal {
    /// After a failed test.
    fn drop(&mut self) {
        if self.script.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.script.kill();
            let _ = self.script.wait();
        }
    }
}

#[test]
fn keys_pause_and_end_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    for quit in ["q", "\u{3}"] {
        let mut terminal = Terminal::watch(&image);
        terminal.press(b"p");
        wait_for("a pause", || terminal.text().contains("PAUSED"));
        terminal.press(quit.as_bytes());
        assert!(!terminal.end().contains("not mounted"), "{quit:?}");
    }
    mount.unmount();
}

#[test]
fn the_end_of_the_mount_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let terminal = Terminal::watch(&image);
    mount.unmount();
    let said = terminal.end();
    assert!(said.trim_end().ends_with("flash.img: not mounted any more"), "{said}");
    let mount = Mount::new(&image);
    let terminal = Terminal::watch(&image);
    mount.kill();
    assert!(terminal.end().contains("not mounted any more"));
}

#[test]
fn a_running_experiment_is_watched_and_its_rows_are_printed_then() {
    let dir = tempfile::tempdir().unwrap();
    let text = Terminal::run("repro fig8 --top", dir.path().join("shown")).end();
    assert!(text.contains("fig8.") && text.contains("an emulated chip"), "{text}");
    assert!(text.contains("Figure 8") && text.contains("ok"), "{text}");
}

#[test]
fn an_experiment_is_watched_in_a_terminal_alone() {
    let refused = output(&mut flexfs(["repro", "fig8", "--top"]));
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(is_one_line(said.as_bytes()) && said.contains("not a terminal"), "{said}");
}
