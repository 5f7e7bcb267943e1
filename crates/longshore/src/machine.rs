//! Who we are on this machine.

use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

/// The longest value of a label.
const LONGEST_NODE_NAME: usize = 63;

/// We may mount.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// The machine's name, as a node may be called: lower case, nothing but letters, digits, dashes and dots.
pub fn host_name() -> Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .context("cannot read the machine's name; give the node one with --node-name")?;
    Ok(node_name(name.trim()))
}

/// Whether a node that we introduce can have this name (DNS-1123 subdomain): its hostname label has the same value,
/// which is why it is no longer than a label's value. An error is a sentence.
pub fn check_node_name(name: &str) -> Result<(), String> {
    check_name_of_node(name, LONGEST_NODE_NAME)
}

/// Whether any node can have this name.
pub fn check_name_of_node(name: &str, longest: usize) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part =
        |part: &str| part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-');
    if name.len() <= longest && name.split('.').all(part) {
        return Ok(());
    }
    Err(format!(
        "{name:?} cannot be the name of a node; write at most {longest} lower-case letters, digits, '-' and '.', \
         beginning and ending with a letter or digit, such as {}",
        node_name(name)
    ))
}

fn node_name(name: &str) -> String {
    let safe: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let parts = safe.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty());
    let whole = parts.collect::<Vec<_>>().join(".");
    let end = whole.len().min(LONGEST_NODE_NAME);
    let short = whole[..end].trim_end_matches(['-', '.']);
    if short.is_empty() { "node".into() } else { short.into() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_host_name_makes_a_node_name() {
        for (host, node) in
            [("vm", "vm"), ("My_Laptop.local", "my-laptop.local"), ("-x-", "x"), ("(none)", "none"), ("", "node")]
        {
            assert_eq!(super::node_name(host), node);
        }
        for host in ["a.-.b", "..", "x".repeat(70).as_str(), &format!("{}.b", "x".repeat(62)), "Ä"] {
            let name = super::node_name(host);
            assert_eq!(super::check_node_name(&name), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_name_that_no_node_can_have_is_refused_with_one_that_it_can() {
        for good in ["vm", "a.b-c.d", "1", &"x".repeat(63)] {
            assert_eq!(super::check_node_name(good), Ok(()));
        }
        for bad in ["", "Bad Name", "a_b", "-a", "a.", "a..b", &"x".repeat(64)] {
            assert!(super::check_node_name(bad).is_err(), "{bad}");
        }
        let told = super::check_node_name("Bad Name").unwrap_err();
        assert!(told.ends_with("such as bad-name"), "{told}");
    }
}
