//! Outputs of every command, aimed at the image, at the same by other names, at other images and at other files: no chip
//! image is ever written over.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, detach, flexfs, is_one_line, mount_type, output, run, wait_for};

/// The name that the output gets in each case.
const NAME: &str = "out";

/// A command, its output, and what becomes of another file in its place.
struct Case {
    what: &'static str,
    /// Where it writes, below the directory of the case.
    place: &'static str,
    command: fn(&Scene) -> Command,
    gives_way: bool,
}

/// What stands where a command would write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum There {
    TheImage,
    ItsHardLink,
    ItsSymbolicLink,
    AnotherImage,
    TranslationLayer,
    AnotherFile,
}

/// The directory of a case.
struct Scene {
    dir: PathBuf,
    image: PathBuf,
    place: PathBuf,
}

fn replay(scene: &Scene, before: &str, lines: &str) -> Command {
    let trace = scene.dir.join("a.trace");
    let head = format!("{{\"flexfs_trace\":1,\"time_unit\":\"ns\",\"before\":[{before}]}}");
    fs::write(&trace, format!("{head}\n{lines}\n")).unwrap();
    let mut command = flexfs(["replay", "--no-pauses"]);
    command.arg(trace).arg(scene.place.parent().unwrap());
    command
}

/// By way of a shell, which opens the outputs.
fn appending(scene: &Scene, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_flexfs")]).args([&scene.image, &scene.place]);
    command
}

fn recording(scene: &Scene, option: &str) -> Command {
    let mut command = flexfs(["mount", "-b", option]);
    command.arg(&scene.place).arg(&scene.image).arg(scene.dir.join("mnt"));
    command
}

const CASES: [Case; 20] = [
    Case {
        what: "get of a file to a name",
        place: NAME,
        command: |scene| get(scene, "/hi", Some(&scene.place)),
        gives_way: true,
    },
    Case {
        what: "get of a file into a directory",
        place: "below/out",
        command: |scene| get(scene, "/out", scene.place.parent()),
        gives_way: true,
    },
    Case {
        what: "get to the default destination",
        place: NAME,
        command: |scene| get(scene, "/out", None),
        gives_way: true,
    },
    Case {
        what: "get of a tree",
        place: "below/tree/out",
        command: |scene| get(scene, "/", Some(&scene.dir.join("below"))),
        gives_way: true,
    },
    Case {
        what: "get of a symbolic link",
        place: NAME,
        command: |scene| get(scene, "/link", Some(&scene.place)),
        gives_way: true,
    },
    Case { what: "mount --record", place: NAME, command: |scene| recording(scene, "--record"), gives_way: false },
    Case {
        what: "mount --record-decisions",
        place: NAME,
        command: |scene| recording(scene, "--record-decisions"),
        gives_way: false,
    },
    Case { what: "mkfs", place: NAME, command: |scene| mkfs(&scene.place, None), gives_way: false },
    Case {
        what: "mkfs --from",
        place: NAME,
        command: |scene| mkfs(&scene.place, scene.place.parent()),
        gives_way: false,
    },
    Case { what: "man", place: "pages/flexfs-mkfs.1", command: |scene| man(scene), gives_way: true },
    Case {
        what: "repro --only",
        place: "results/table1.slc.json",
        command: |scene| out(flexfs(["repro", "--only", "table1.slc", "--out"]), scene),
        gives_way: true,
    },
    Case {
        what: "the page of repro",
        place: "report/index.html",
        command: |scene| out(flexfs(["repro", "table1", "--out"]), scene),
        gives_way: true,
    },
    Case {
        what: "a table of repro",
        place: "report/table1-times.csv",
        command: |scene| out(flexfs(["repro", "table1", "--out"]), scene),
        gives_way: true,
    },
    Case {
        what: "replay of a file that was there before",
        place: "played/out",
        command: |scene| replay(scene, "[\"out\",5000]", ""),
        gives_way: true,
    },
    Case {
        what: "replay of a write",
        place: "played/out",
        command: |scene| replay(scene, "", r#"{"at":0,"op":"write","file":"out","offset":0,"bytes":4096}"#),
        gives_way: true,
    },
    Case {
        what: "replay of a truncation",
        place: "played/out",
        command: |scene| replay(scene, "", r#"{"at":0,"op":"truncate","file":"out","bytes":0}"#),
        gives_way: true,
    },
    Case {
        what: "replay of a rename",
        place: "played/out",
        command: |scene| replay(scene, "[\"new\",10]", r#"{"at":0,"op":"rename","file":"new","to":"out"}"#),
        gives_way: true,
    },
    Case {
        what: "replay of a removal",
        place: "played/out",
        command: |scene| replay(scene, "", r#"{"at":0,"op":"remove","file":"out"}"#),
        gives_way: true,
    },
    Case {
        what: "standard output, appended",
        place: NAME,
        command: |scene| appending(scene, r#""$0" info "$1" >> "$2""#),
        gives_way: true,
    },
    Case {
        what: "standard error, appended",
        place: NAME,
        command: |scene| appending(scene, r#""$0" get "$1" /hi - 2>> "$2" && echo >> "$2""#),
        gives_way: true,
    },
];

fn get(scene: &Scene, path: &str, dest: Option<&Path>) -> Command {
    let mut command = flexfs(["get"]);
    command.arg(&scene.image).arg(path).args(dest).current_dir(&scene.dir);
    command
}

fn mkfs(place: &Path, from: Option<&Path>) -> Command {
    let mut command = flexfs(["mkfs", "--size", "8MiB"]);
    if let Some(from) = from {
        command.arg("--from").arg(from);
    }
    command.arg(place);
    command
}

fn man(scene: &Scene) -> Command {
    out(flexfs(["man", "--dir"]), scene)
}

/// With the directory of the output as the last argument.
fn out(mut command: Command, scene: &Scene) -> Command {
    command.arg(scene.place.parent().unwrap());
    command
}

/// The images that all cases begin with.
struct Originals {
    image: PathBuf,
    other: PathBuf,
    layer: PathBuf,
}

impl Originals {
    fn make(dir: &Path) -> Self {
        let [image, other, layer, tree] = ["image", "other", "layer", "tree"].map(|name| dir.join(name));
        fs::create_dir_all(tree.join("tree")).unwrap();
        fs::write(tree.join("hi"), "hi").unwrap();
        fs::write(tree.join(NAME), "what is in the image").unwrap();
        fs::write(tree.join("tree").join(NAME), "what is in the image").unwrap();
        symlink("nowhere", tree.join("link")).unwrap();
        run(flexfs(["mkfs", "--size", "8MiB", "--from"]).arg(&tree).arg(&image));
        run(flexfs(["mkfs", "--size", "8MiB"]).arg(&other));
        let small_pages = ["mkfs", "--size", "16MiB", "--profile", "k9f5608u0m", "--ftl", "page-greedy"];
        run(flexfs(small_pages).arg(&layer));
        Self { image, other, layer }
    }

    /// A directory with the image, and `there` in the place of the output.
    fn scene(&self, dir: &Path, place: &str, there: There) -> Scene {
        let (place, image) = (dir.join(place), dir.join("flash.img"));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::create_dir(dir.join("mnt")).unwrap();
        let image = if there == There::TheImage { place.clone() } else { image };
        fs::copy(&self.image, &image).unwrap();
        match there {
            There::TheImage => {}
            There::ItsHardLink => fs::hard_link(&image, &place).unwrap(),
            There::ItsSymbolicLink => symlink(&image, &place).unwrap(),
            There::AnotherImage => drop(fs::copy(&self.other, &place).unwrap()),
            There::TranslationLayer => drop(fs::copy(&self.layer, &place).unwrap()),
            There::AnotherFile => fs::write(&place, "what was there").unwrap(),
        }
        Scene { dir: dir.to_path_buf(), image, place }
    }
}

/// Runs a command that must not leave a mount behind.
fn run_to_its_end(scene: &Scene, mut command: Command) -> std::process::Output {
    let ended = output(&mut command);
    let mnt = scene.dir.join("mnt");
    if mount_type(&mnt).is_some() {
        detach(&mnt);
        wait_for("the server's end", || output(flexfs(["ls"]).arg(&scene.image)).status.success());
    }
    ended
}

#[test]
fn no_output_of_any_command_is_written_over_a_chip_image() {
    let dir = tempfile::tempdir().unwrap();
    let originals = Originals::make(dir.path());
    for Case { what, place, command, .. } in &CASES {
        for there in
            [There::TheImage, There::ItsHardLink, There::ItsSymbolicLink, There::AnotherImage, There::TranslationLayer]
        {
            let below = tempfile::tempdir_in(dir.path()).unwrap();
            let scene = originals.scene(below.path(), place, there);
            let look = |path: &Path| (fs::metadata(path).unwrap().ino(), fs::read(path).unwrap());
            let before = [&scene.image, &scene.place].map(|path| look(path));
            let ended = run_to_its_end(&scene, command(&scene));
            let said = String::from_utf8_lossy(&ended.stderr);
            if what.starts_with("replay") && there == There::ItsSymbolicLink {
                // A trace leaves its directory by no link, and may take one away.
                assert!(look(&scene.image) == before[0], "{what}: {said}");
                continue;
            }
            assert!([&scene.image, &scene.place].map(|path| look(path)) == before, "{what}, {there:?}: {said}");
            assert!(!ended.status.success(), "{what}, {there:?}: {said}");
            if !what.starts_with("standard error") {
                assert!(is_one_line(&ended.stderr), "{what}, {there:?}: {said}");
                let named =
                    if what.starts_with("standard") { "standard output" } else { scene.place.to_str().unwrap() };
                let named = if *what == "get to the default destination" { "./out" } else { named };
                assert!(said.contains(named) && said.contains("; "), "{what}, {there:?}: {said}");
            }
            let left: Vec<_> = common::listing(below.path()).into_iter().map(|(path, _)| path).collect();
            assert!(!left.iter().any(|path| path.to_str().unwrap().contains(".flexfs-")), "{what}: {left:?}");
        }
    }
}

#[test]
fn another_file_gives_way_to_what_replaces_as_cp_does_and_to_nothing_that_is_to_be_new() {
    let dir = tempfile::tempdir().unwrap();
    let originals = Originals::make(dir.path());
    for Case { what, place, command, gives_way } in &CASES {
        let below = tempfile::tempdir_in(dir.path()).unwrap();
        let scene = originals.scene(below.path(), place, There::AnotherFile);
        let ended = run_to_its_end(&scene, command(&scene));
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.success(), *gives_way, "{what}: {said}");
        let kept = fs::read(&scene.place).is_ok_and(|bytes| bytes == b"what was there");
        assert_eq!(kept, !gives_way, "{what}: {said}");
        assert!(
            *gives_way || said.contains("exists") && said.contains(scene.place.to_str().unwrap()),
            "{what}: {said}"
        );
    }
}

/// The name would be taken by an empty file at the next try.
#[test]
fn a_mount_that_fails_leaves_no_recording_behind() {
    let dir = tempfile::tempdir().unwrap();
    let image = common::image(dir.path(), "8MiB");
    let bytes = fs::read(&image).unwrap();
    let [one, other, mnt] = ["one", "other", "mnt"].map(|name| dir.path().join(name));
    fs::create_dir(&mnt).unwrap();
    let fails = |command: &mut Command| {
        let ended = output(command);
        assert!(ended.status.code() == Some(1) && is_one_line(&ended.stderr), "{command:?}");
        assert!(!one.exists() && !other.exists() && fs::read(&image).unwrap() == bytes, "{command:?}");
    };
    let args = ["mount", "--ro", "--record"];
    fails(flexfs(args).arg(&one).arg("--record-decisions").arg(&other).arg(&image).arg(&mnt));
    fails(flexfs(["mount", "--record"]).arg(&one).arg("--record-decisions").arg(&one).arg(&image).arg(&mnt));
    fails(flexfs(["mount", "--record"]).arg(&one).arg(dir.path().join("no.img")).arg(&mnt));
    let made = dir.path().join("new.img");
    fails(flexfs(["mount", "--create", "8MiB", "--record"]).arg(&made).arg(&made).arg(&mnt));
    assert!(!made.exists());
}
