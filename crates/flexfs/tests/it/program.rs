//! What the program says about itself: help by groups, completions that shells take, manual pages of the same words.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{self, flexfs, run};

const COMMANDS: [&str; 18] = [
    "serve",
    "mkfs",
    "mount",
    "info",
    "top",
    "fsck",
    "dump",
    "ls",
    "get",
    "put",
    "mkdir",
    "rm",
    "bench",
    "torture",
    "repro",
    "replay",
    "completions",
    "man",
];

#[test]
fn the_help_lists_every_command_in_its_group() {
    let help = run(&mut flexfs(["--help"]));
    for command in COMMANDS {
        assert_eq!(help.matches(&format!("\n  {command} ")).count(), 1, "{command}: {help}");
    }
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let order = [
        "Usage:",
        "\nVolumes:",
        "\n  fsck",
        "\nFiles, without mounting:",
        "\n  ls",
        "\nMeasuring:",
        "Options:",
        "Examples:",
    ];
    assert!(order.map(at).is_sorted(), "{help}");
    assert!(!help.contains('\u{1b}'), "colour without a terminal");
    // What is no order at all is answered with the same.
    let said = common::output(&mut flexfs([""; 0])).stderr;
    assert!(String::from_utf8_lossy(&said).contains("Volumes:"));
}

#[test]
fn every_shell_gets_completions_with_all_commands() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&mut flexfs(["completions", shell]));
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
        assert!(script.contains("compress") && !script.contains("detached"), "{shell}");
        fs::write(dir.path().join(shell), script).unwrap();
    }
    run(Command::new("bash").arg("-n").arg(dir.path().join("bash")));
    let completes = |typed: &[&str]| {
        let (words, script) = (typed.join(" "), dir.path().join("bash"));
        let ask = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={}; _flexfs flexfs '{}' '{}'; echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            typed.len() - 1,
            typed[typed.len() - 1],
            typed[typed.len() - 2],
        );
        run(Command::new("bash").args(["-c", &ask]))
    };
    assert_eq!(completes(&["flexfs", "mo"]), "mount\n");
    assert_eq!(completes(&["flexfs", "mount", "-o", "rel"]), "relatime\n");
    assert_eq!(
        completes(&["flexfs", "mount", "-o", "ro,compress=lz4,com"]),
        "ro,compress=lz4,commit= ro,compress=lz4,compress=\n"
    );
    for command in ["mkfs", "mount", "bench"] {
        let all = "flexfs-mlc flexfs-slc codesign-mlc8 tlc-3d k9f5608u0m k9k8g08u0m\n";
        assert_eq!(completes(&["flexfs", command, "--profile", ""]), all);
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    run(flexfs(["man", "--dir"]).arg(&pages));
    let made: BTreeSet<String> =
        fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected = BTreeSet::from(["flexfs.1".to_owned()]);
    expected.extend(COMMANDS.map(|command| format!("flexfs-{command}.1")));
    assert_eq!(made, expected);
    for command in COMMANDS {
        let page = fs::read_to_string(pages.join(format!("flexfs-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH flexfs-{command} 1")) && page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
        // An example is a line of its own, with its spaces.
        assert!(page.lines().any(|line| line.starts_with(&format!("  flexfs {command} "))), "{page}");
        let examples = page.split(".nf\n").nth(1).and_then(|rest| rest.split("\n.fi").next()).unwrap();
        let widest = examples.lines().map(|line| line.replace("\\*(Aq", "'").replace('\\', "").len()).max();
        assert!(widest <= Some(73), "a page has 80 columns, the first 7 empty: {examples}");
    }
    let mount = fs::read_to_string(pages.join("flexfs-mount.1")).unwrap();
    for entry in ["mlc\\-only", ".TP\n\\fBcommit=SECONDS\\fR\nhow old a change"] {
        assert!(mount.contains(entry), "{entry}: {mount}");
    }
    let main = run(&mut flexfs(["man"]));
    assert!(main == fs::read_to_string(pages.join("flexfs.1")).unwrap());
    assert!(main.contains("flexfs\\-mount(1)"), "{main}");
}
