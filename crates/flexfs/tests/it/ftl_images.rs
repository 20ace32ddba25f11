//! Images that hold a flash translation layer: made, looked at, checked, and refused where files are asked for.
//!
//! Invariant of every look: not a byte of the image changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{flexfs, info, is_one_line, output, run};
use emulator::{Chip, Corruption};
use ftl::{BlockDevice, Device, Options, PageState, Scheme, Volume};
use nand::{Cause, Nand};
use serde_json::Value;

const CHIP: [&str; 4] = ["--size", "16MiB", "--profile", "k9f5608u0m"];
/// Sectors of a usual layer on it: 32 blocks of 32 pages hold none.
const SECTORS: u64 = (1024 - 32) * 32;
const SECTOR_BYTES: usize = 512;

fn make(dir: &Path, scheme: Scheme) -> PathBuf {
    let image = dir.join(format!("{scheme}.img"));
    let said = run(flexfs(["mkfs", "--ftl", scheme.name()]).args(CHIP).arg(&image));
    let end = format!("a {scheme} translation layer, 31,744 sectors of 512 B (15.5 MiB)\n");
    assert!(said.ends_with(&end) && said.lines().count() == 1, "{said}");
    image
}

/// Opens the translation layer as its user does, and has it changed.
fn change(image: &Path, change: impl FnOnce(&mut Device<Chip>)) {
    let mut device = Device::open(Chip::open_image(image, false).unwrap(), Options::default()).unwrap();
    change(&mut device);
    device.into_chip().sync_image().unwrap();
}

/// Damages the newest page of a sector.
fn damage(image: &Path, sector: u32) {
    let mut chip = Chip::open_image(image, false).unwrap();
    let volume = Volume::find(&mut chip).unwrap();
    let mut newest = None;
    for block in 2..chip.geometry().blocks {
        let visit = &mut |page, state| {
            if let PageState::Holds(tag) = state
                && tag.logical == sector
                && tag.kind != "map"
            {
                newest = newest.max(Some((tag.stamp, block, page)));
            }
            true
        };
        volume.pages(&mut chip, block, visit).unwrap();
    }
    let (_, block, page) = newest.unwrap();
    chip.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
    chip.sync_image().unwrap();
}

/// Runs a command that must end with this status; its standard output and standard error.
fn ends(status: i32, command: &mut Command) -> (String, String) {
    let output = output(command);
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{command:?}: {out}{said}");
    assert!(said.is_empty() || is_one_line(&output.stderr), "{said}");
    (out.into_owned(), said.into_owned())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_scheme_is_made_and_shown_and_clean_and_no_look_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    for scheme in Scheme::ALL {
        let image = make(dir.path(), scheme);
        change(&image, |device| device.write(33, &[0x5a; SECTOR_BYTES]).unwrap());
        let before = fs::read(&image).unwrap();

        let told = info(&image);
        let known = [&told["scheme"], &told["letters"], &told["profile"]].map(|value| value.as_str().unwrap());
        assert_eq!(known, [scheme.name(), scheme.letters(), "k9f5608u0m"]);
        assert_eq!((&told["sectors"], &told["sector_bytes"]), (&SECTORS.into(), &SECTOR_BYTES.into()));
        let blocks: u64 = told["blocks"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(blocks, 1024);
        assert!(told["ram_bytes"].as_u64() > Some(0) && told["opening_reads"].as_u64() > Some(0), "{told}");
        let text = run(flexfs(["info"]).arg(&image));
        assert!(text.contains(&format!("{scheme}, {} in the paper", scheme.letters())), "{text}");
        assert!(text.contains("31,744 of 512 B (15.5 MiB)") && text.contains("##"), "{text}");

        let clean = run(flexfs(["fsck"]).arg(&image));
        assert!(clean.contains(": clean: ") && clean.contains(scheme.name()), "{clean}");
        let report = json(&run(flexfs(["fsck", "--json"]).arg(&image)));
        assert_eq!((&report["clean"], &report["sectors"]), (&true.into(), &SECTORS.into()));
        assert_eq!(report["scheme"], scheme.name());

        let overview = json(&run(flexfs(["dump", "--json"]).arg(&image)));
        assert_eq!(overview["anchor"]["scheme"], scheme.name());
        let used = match scheme {
            Scheme::LogBlock | Scheme::LogBlockScanned => "log",
            Scheme::Replacement => "data",
            Scheme::Fast => "pages",
            Scheme::Dftl | Scheme::PageGreedy | Scheme::PageCostBenefit => "open",
        };
        let mut blocks = overview["blocks"].as_array().unwrap().iter();
        let block = blocks.find(|block| block["used_as"] == used).unwrap()["block"].to_string();
        let map = run(flexfs(["dump"]).arg(&image));
        assert!(map.contains("       0  aa") && map.ends_with("x bad   ? unknown\n"), "{map}");
        let pages = run(flexfs(["dump", "--block", &block]).arg(&image));
        assert!(pages.lines().any(|line| line.ends_with("sector 33  end")) && pages.contains("-31  blank"), "{pages}");
        let lines = run(flexfs(["dump", "--json", "--block", &block]).arg(&image));
        let lines: Vec<Value> = lines.lines().map(json).collect();
        assert!(lines.len() == 33 && lines[0]["used_as"] == used, "{lines:?}");
        assert!(lines.iter().any(|line| line["logical"] == 33 && line["end"] == true), "{lines:?}");
        assert!(fs::read(&image).unwrap() == before, "{scheme}: a look changed the image");
    }
}

#[test]
fn a_sector_that_cannot_be_read_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let image = make(dir.path(), Scheme::LogBlock);
    change(&image, |device| device.write(32, &[7; 32 * SECTOR_BYTES]).unwrap());
    damage(&image, 37);
    let before = fs::read(&image).unwrap();
    let (out, said) = ends(4, flexfs(["fsck"]).arg(&image));
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        said.is_empty() && lines.len() == 4 && lines[0].ends_with("log-block.img: sector 37 cannot be read"),
        "{out}"
    );
    assert!(lines[2].contains("1 error, left as it is: a log-block translation layer"), "{out}");
    assert!(lines[3].contains("--size 16MiB --profile k9f5608u0m --ftl log-block --force"), "{out}");
    let report = json(&ends(4, flexfs(["fsck", "--json"]).arg(&image)).0);
    assert_eq!((&report["clean"], &report["repair"]), (&false.into(), &Value::Null));
    assert_eq!(report["findings"], serde_json::json!(["sector 37 cannot be read"]));
    let overview = json(&run(flexfs(["dump", "--json"]).arg(&image)));
    let mut blocks = overview["blocks"].as_array().unwrap().iter();
    let block = blocks.find(|block| block["data_block"] == 1).unwrap()["block"].to_string();
    let pages = run(flexfs(["dump", "--block", &block]).arg(&image));
    assert!(pages.lines().nth(6).unwrap().ends_with(" 5  UNREADABLE"), "{pages}");
    assert!(fs::read(&image).unwrap() == before);
    // What is lost stays lost.
    let (out, _) = ends(4, flexfs(["fsck", "-y"]).arg(&image));
    assert!(out.contains("opened, which undoes what a power cut left undone") && out.contains("sector 37"), "{out}");
    assert_eq!(info(&image)["scheme"], "log-block");
}

/// Which sector it held nobody can tell: its tag is lost with it.
#[test]
fn a_page_that_cannot_be_read_is_told_though_no_sector_misses_it() {
    let dir = tempfile::tempdir().unwrap();
    for scheme in Scheme::ALL {
        let image = make(dir.path(), scheme);
        change(&image, |device| {
            [40, 33, 400].into_iter().for_each(|sector| device.write(sector, &[7; SECTOR_BYTES]).unwrap());
        });
        assert!(!run(flexfs(["fsck"]).arg(&image)).contains("cannot be read"));
        damage(&image, 33);
        let told = run(flexfs(["fsck"]).arg(&image));
        assert!(told.contains(": 1 page of a block in use cannot be read: "), "{told}");
        let report = json(&run(flexfs(["fsck", "--json"]).arg(&image)));
        assert_eq!((&report["clean"], &report["unreadable_pages"]), (&true.into(), &1.into()));
    }
}

#[test]
fn a_layer_whose_map_is_gone_is_damaged_and_still_shown() {
    let dir = tempfile::tempdir().unwrap();
    let image = make(dir.path(), Scheme::LogBlock);
    let mut chip = Chip::open_image(&image, false).unwrap();
    for block in Volume::find(&mut chip).unwrap().map_blocks {
        chip.erase(block, Cause::Metadata).unwrap();
    }
    chip.sync_image().unwrap();
    drop(chip);
    let before = fs::read(&image).unwrap();
    let (out, _) = ends(4, flexfs(["fsck"]).arg(&image));
    assert!(
        out.contains("it cannot be opened: ") && out.contains("a log-block translation layer, no sectors"),
        "{out}"
    );
    let (_, said) = ends(1, flexfs(["info"]).arg(&image));
    assert!(said.contains("that cannot be opened") && said.contains("flexfs fsck"), "{said}");
    let (out, _) = ends(0, flexfs(["dump"]).arg(&image));
    assert!(out.contains("it cannot be opened") && out.contains("????"), "{out}");
    assert!(fs::read(&image).unwrap() == before);
    for repair in ["-p", "-y"] {
        ends(4, flexfs(["fsck", repair]).arg(&image));
    }
}

#[test]
fn fsck_opens_a_layer_after_a_power_cut_if_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let image = make(dir.path(), Scheme::LogBlock);
    let mut device = Device::open(Chip::open_image(&image, false).unwrap(), Options::default()).unwrap();
    device.write(5, &[1; SECTOR_BYTES]).unwrap();
    device.chip_mut().faults_mut().cut_power_at(1);
    device.write(5, &[2; 2 * SECTOR_BYTES]).unwrap_err();
    device.into_chip().sync_image().unwrap();
    let report = json(&run(flexfs(["fsck", "-p", "--json"]).arg(&image)));
    assert_eq!((&report["clean"], &report["repair"]["kind"]), (&true.into(), &"opened".into()));
    assert!(report["repair"]["programs"].as_u64() > Some(0), "{report}");
    change(&image, |device| {
        let mut sectors = [0; 2 * SECTOR_BYTES];
        device.read(5, &mut sectors).unwrap();
        let (nothing, all) = ([[1; SECTOR_BYTES], [0; SECTOR_BYTES]].concat(), [2; 2 * SECTOR_BYTES]);
        assert!(sectors[..] == nothing || sectors == all, "a request that was cut is there in part");
    });
}

#[test]
fn who_asks_for_files_is_told_what_the_image_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mountpoint = dir.path().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    for scheme in [Scheme::LogBlock, Scheme::PageGreedy] {
        let image = make(dir.path(), scheme);
        let before = fs::read(&image).unwrap();
        let target = mountpoint.to_str().unwrap();
        let commands: [(&[&str], &[&str]); 7] = [
            (&["ls"], &[]),
            (&["get"], &["/", "-"]),
            (&["put"], &[target, "/"]),
            (&["mkdir"], &["/x"]),
            (&["rm"], &["/x"]),
            (&["mount"], &[target]),
            (&["mount", "-o", "ro"], &[target]),
        ];
        for (command, rest) in commands {
            let (out, said) = ends(1, flexfs(command).arg(&image).args(rest));
            let what = format!("{scheme}.img: it holds a {scheme} translation layer, not a file system; `flexfs serve");
            assert!(out.is_empty() && said.contains(&what) && said.contains("flexfs mkfs"), "{command:?}: {said}");
        }
        for index in [["--index"].as_slice(), &["--ino", "1"]] {
            let (_, said) = ends(1, flexfs(["dump"]).args(index).arg(&image));
            assert!(said.contains("which has no index"), "{said}");
        }
        let (_, said) = ends(1, flexfs(["dump", "--block", "1024"]).arg(&image));
        assert!(said.contains("the last one is 1023"), "{said}");
        assert!(fs::read(&image).unwrap() == before);
    }
}

#[test]
fn a_layer_that_does_not_fit_is_refused_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let refused = |status: i32, scheme: &str, options: &[&str], why: &str| {
        let (out, said) = ends(status, flexfs(["mkfs", "--ftl", scheme]).args(CHIP).args(options).arg(&image));
        assert!(out.is_empty() && said.contains(why), "{options:?}: {said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{options:?}");
    };
    refused(1, "log-block", &["--extra-blocks", "8"], "choose other --extra-blocks, --logs and --map-blocks");
    refused(1, "page-greedy", &["--extra-blocks", "4294967295"], "the chip has 1,024 blocks");
    refused(1, "replacement", &["--logs", "4"], "leave out --logs");
    refused(1, "log-block-scanned", &["--map-blocks", "4"], "leave out --map-blocks");
    refused(2, "log-block", &["--map-blocks", "1"], "1 is not in 2..");
    refused(1, "log-block", &["--map-blocks", "700"], "choose other --extra-blocks, --logs and --map-blocks");
    refused(2, "log-blocks", &[], "page-cost-benefit");
    for (option, value) in [("--from", "/"), ("--lifetime", "3y"), ("--label", "x"), ("--volume-id", &"0".repeat(32))] {
        refused(2, "log-block", &[option, value], "cannot be used with");
    }
    let (_, said) = ends(2, flexfs(["mkfs", "--logs", "4"]).args(CHIP).arg(&image));
    assert!(said.contains("--ftl"), "{said}");
    let (_, said) = ends(1, flexfs(["mkfs", "--size", "16MiB", "--ftl", "log-block"]).arg(&image));
    assert!(said.contains("take another --size or another --profile"), "{said}");
}

#[test]
fn a_layer_gets_the_blocks_that_are_asked_for_and_takes_the_place_of_a_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    run(flexfs(["mkfs", "--size", "16MiB"]).arg(&image));
    let asked =
        ["--ftl", "log-block", "--extra-blocks", "128", "--logs", "20", "--map-blocks", "66", "--force", "--json"];
    let made = json(&run(flexfs(["mkfs"]).args(CHIP).args(asked).arg(&image)));
    let told = info(&image);
    for key in ["image", "profile", "scheme", "volume", "sectors", "sector_bytes", "capacity_bytes"] {
        assert_eq!(made[key], told[key], "{key}");
    }
    assert_eq!(made["sectors"], (1024 - 128) * 32);
    assert_eq!((&told["logs_max"], &told["blocks"]["map"]), (&20.into(), &66.into()));
    run(flexfs(["mkfs", "--size", "16MiB", "--force"]).arg(&image));
    assert_eq!(info(&image)["label"], "");
}
