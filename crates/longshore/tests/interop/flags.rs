//! Every flag that the Go programs print is in our table, for the same program.

use std::process::Command;

/// The flags a Go program lists in its help, in the style of either of Go's flag packages.
fn printed(program: &str) -> Vec<String> {
    let path = prove_cluster::peer(program).unwrap();
    let output = Command::new(path).arg("--help").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let flag = |line: &str| {
        let word = line.split_whitespace().find(|word| word.starts_with('-') && !word.ends_with(','))?;
        let begins = line.trim_start().starts_with('-') && line.len() - line.trim_start().len() <= 6;
        begins.then(|| word.trim_start_matches('-').to_string())
    };
    text.lines().filter_map(flag).collect()
}

#[test]
fn every_flag_of_the_go_programs_is_known() {
    let page = include_str!("../../../../docs/flags.md");
    for (program, role) in [("csi-provisioner", "provisioner"), ("csi-resizer", "resizer")] {
        let flags = printed(program);
        assert!(flags.len() > 20, "{program} prints {flags:?}");
        for flag in flags {
            let row = page.lines().find(|line| line.starts_with(&format!("| `--{flag}` |")));
            let known = row.and_then(|row| row.split('|').nth(2)).is_some_and(|programs| programs.contains(role));
            assert!(known, "--{flag} of {program} is not in docs/flags.md for the {role}");
        }
    }
}
