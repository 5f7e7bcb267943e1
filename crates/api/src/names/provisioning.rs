//! Keys and name rules of making and deleting volumes.

use alloc::format;
use alloc::string::String;

/// Claim: the node the scheduler chose, under its oldest name.
pub const SELECTED_NODE_ALPHA: &str = "volume.alpha.kubernetes.io/selected-node";
/// Snapshot finalizer: stays while a volume is being made from it.
pub const SNAPSHOT_SOURCE_PROTECTION: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";
/// Claim finalizer: stays while a volume is being made from its volume.
pub const CLONE_PROTECTION: &str = "provisioner.storage.kubernetes.io/cloning-protection";
/// Snapshot content: its volume mode may change when it is restored.
pub const ALLOW_MODE_CHANGE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";
/// Attribute of a volume: the provisioner process that made it.
pub const PROVISIONER_IDENTITY: &str = "storage.kubernetes.io/csiProvisionerIdentity";
/// Capacity: the driver it is about.
pub const CAPACITY_DRIVER: &str = "csi.storage.k8s.io/drivername";
/// Capacity: who keeps it up to date.
pub const CAPACITY_MANAGER: &str = "csi.storage.k8s.io/managed-by";

/// Journal: what the names of its entries begin with.
pub const JOURNAL_ENTRY: &str = "intent.longshore.dev/";

/// The name of a driver's journal; with a node's name if there is one per node. It is a Lease's: in lower case, of letters,
/// digits, dots and dashes, and not too long.
pub fn journal(driver: &str, node: Option<&str>) -> String {
    const LONGEST: usize = 253;
    let plain = |c: char| if c == '.' || c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let whole = match node {
        None => ["longshore-journal-", driver].concat(),
        Some(node) => ["longshore-journal-", driver, "-", node].concat(),
    };
    if whole.len() <= LONGEST && !whole.ends_with(['-', '.']) && whole.chars().all(|c| plain(c) == c) {
        return whole;
    }
    let name: String = whole.chars().map(plain).collect();
    // Another driver or node may look the same in plain letters, so its hash makes the difference.
    let short: String = name.chars().take(LONGEST - 9).collect();
    format!("{short}-{:08x}", fnv1a_32(&whole))
}

/// The name of the volume made for a claim, for the object and for CreateVolume alike: the prefix and the claim's uid, or
/// so many characters of the uid without its dashes.
pub fn volume_name(prefix: &str, length: Option<usize>, claim_uid: &str) -> String {
    match length {
        None => [prefix, "-", claim_uid].concat(),
        Some(length) => {
            let short: String = claim_uid.chars().filter(|c| *c != '-').take(length).collect();
            format!("{prefix}-{short}")
        }
    }
}

/// The label value by which a provisioner knows its capacity objects again; with a node's name if there is one per node.
/// At most 63 characters: the base is cut and replaced by its hash before the node's name is.
pub fn capacity_manager(node: Option<&str>) -> String {
    const BASE: &str = "external-provisioner";
    const LONGEST: usize = 63;
    let Some(node) = node else { return BASE.into() };
    let whole = format!("{BASE}-{node}");
    if whole.len() <= LONGEST {
        return whole;
    }
    let room = LONGEST.saturating_sub(10 + node.len()).min(BASE.len());
    if room > 0 {
        return format!("{}-{:08x}-{node}", &BASE[..room], fnv1a_32(BASE));
    }
    let mut short = format!("{BASE}-{:08x}", fnv1a_32(&whole));
    short.truncate(LONGEST);
    short
}

const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// FNV-1: multiply, then mix in. Spreads claims over topologies.
pub fn fnv1_32(text: &str) -> u32 {
    text.bytes().fold(FNV_BASIS, |hash, byte| hash.wrapping_mul(FNV_PRIME) ^ u32::from(byte))
}

/// FNV-1a: mix in, then multiply.
pub fn fnv1a_32(text: &str) -> u32 {
    fnv1a_32_of(&[text])
}

/// The same of several texts, one after the other.
pub fn fnv1a_32_of(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(FNV_BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME))
}

/// A name without dots: at most 63 lower-case letters, digits and dashes, a letter or digit at both ends.
pub fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().last().is_some_and(plain);
    ends && name.len() <= 63 && name.bytes().all(|byte| plain(byte) || byte == b'-')
}

/// A name with dots: at most 253 characters, each part a name without dots, but of any length.
pub fn is_subdomain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        part.bytes().next().is_some_and(plain)
            && part.bytes().last().is_some_and(plain)
            && part.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    // P1, P2.
    #[test]
    fn volumes_are_named_after_the_uid_of_their_claim() {
        let uid = "11111111-2222-3333-4444-555555555555";
        assert_eq!(volume_name("pvc", None, uid), "pvc-11111111-2222-3333-4444-555555555555");
        assert_eq!(volume_name("vol", Some(10), uid), "vol-1111111122");
        assert_eq!(volume_name("vol", Some(99), uid), "vol-11111111222233334444555555555555");
    }

    // P86; vectors of sidecars 8.
    #[test]
    fn the_manager_of_capacities_fits_into_a_label() {
        assert_eq!(capacity_manager(None), "external-provisioner");
        assert_eq!(capacity_manager(Some("node-a")), "external-provisioner-node-a");
        let long = "x".repeat(43);
        assert_eq!(capacity_manager(Some(&long)), format!("external-p-53f40b57-{long}"));
        assert_eq!(capacity_manager(Some(&"n".repeat(60))), "external-provisioner-68181516");
    }

    // Vectors of sidecars 8: the spread hash is FNV-1, not 1a.
    #[test]
    fn the_spread_hash_agrees_with_kubernetes() {
        for (text, hash) in [("web", 1_181_096_325), ("db", 1_836_525_763), ("a", 84_696_446), ("x", 84_696_423)] {
            assert_eq!(fnv1_32(text), hash, "{text}");
        }
        assert_eq!(fnv1_32("my-claim"), 2_574_695_748);
        assert_eq!(fnv1_32("x-4294967296"), 1_954_540_022);
        assert_eq!(fnv1_32("testset"), 1_633_848_515);
    }

    #[test]
    fn names_are_judged_as_kubernetes_judges_them() {
        assert!(is_label("a-1") && is_subdomain("a-1.b"));
        for bad in ["", "-a", "a-", "A", "a_b", "a.b"] {
            assert!(!is_label(bad), "{bad}");
        }
        for bad in ["", "a..b", ".a", "a.-b", "A.b"] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        assert!(!is_label(&"a".repeat(64)) && is_subdomain(&"a".repeat(64)) && !is_subdomain(&"a".repeat(254)));
    }
}
