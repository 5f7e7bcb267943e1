//! References to variables in texts: `$(NAME)`, as Kubernetes reads them.

use alloc::string::String;

/// The text with every reference to a known variable replaced. `$$` stands for `$`; what is no reference, and
/// references to variables that are not known, stay as they are.
pub(super) fn expand<'a>(text: &str, known: &mut impl FnMut(&str) -> Option<&'a str>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        let inner = rest.strip_prefix("$(").and_then(|inner| inner.split_once(')'));
        if let Some((name, after)) = inner {
            match known(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.push_str(&rest[..name.len() + 3]),
            }
            rest = after;
        } else if let Some(after) = rest.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_as_kubernetes_replaces_them() {
        let mut known = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            "LIKE" => Some("$(A)"),
            _others => None,
        };
        for (text, expanded) in [
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(EMPTY)-", "-"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$", "$$"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
            // What a variable holds is not looked at again.
            ("$(LIKE)", "$(A)"),
            ("ä$(A)ö", "ä1ö"),
        ] {
            assert_eq!(expand(text, &mut known), expanded, "{text}");
        }
    }
}
