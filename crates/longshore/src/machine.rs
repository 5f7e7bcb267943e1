//! Who we are on this machine.

use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

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

fn node_name(name: &str) -> String {
    let safe: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let trimmed = safe.trim_matches(['-', '.']);
    if trimmed.is_empty() { "node".into() } else { trimmed.into() }
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
    }
}
