//! The proxy to the server, if any: the one the kubeconfig names, or else the one the environment names.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::config::Kubeconfig;

/// Why there is no usable proxy. The messages leave the URL out: it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The `proxy-url` in the kubeconfig is not the URL of a supported proxy.
    #[error(
        "the proxy-url of the cluster names no proxy that can be used; write http://host:port or socks5://host:port"
    )]
    Kubeconfig,
    /// The environment variable is not the URL of a supported proxy.
    #[error("HTTPS_PROXY or HTTP_PROXY names no proxy that can be used; write http://host:port or socks5://host:port")]
    Environment,
}

/// The `proxy-url` of the cluster that the current context names.
pub(crate) fn named(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == *current)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

/// The proxy for a server. The proxy of the kubeconfig takes precedence over the environment.
pub(crate) fn find(
    to: &Uri,
    named: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Intercept>, ProxyError> {
    let either = |upper: &str, lower: &str| variable(upper).or_else(|| variable(lower)).unwrap_or_default();
    let (proxy, except) = match named {
        Some(url) => (url.to_string(), String::new()),
        // As in every program written in Go, no proxy is used for this machine itself.
        None if is_loopback(to) => return Ok(None),
        None if to.scheme_str() == Some("https") => {
            (either("HTTPS_PROXY", "https_proxy"), either("NO_PROXY", "no_proxy"))
        }
        None => (either("HTTP_PROXY", "http_proxy"), either("NO_PROXY", "no_proxy")),
    };
    if proxy.is_empty() {
        return Ok(None);
    }
    let wrong = if named.is_some() { ProxyError::Kubeconfig } else { ProxyError::Environment };
    let usable = Matcher::builder().all(proxy.clone()).build().intercept(to).ok_or(wrong)?;
    if !matches!(usable.uri().scheme_str(), Some("http" | "socks5" | "socks5h")) {
        return Err(wrong);
    }
    Ok(Matcher::builder().all(proxy).no(except).build().intercept(to))
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(to: &str, named: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<String>, ProxyError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_string());
        let found = find(&to.parse().unwrap(), named, variable)?;
        Ok(found.map(|proxy| proxy.uri().to_string()))
    }

    #[test]
    fn the_environment_names_a_proxy_unless_the_server_is_excepted_or_here() {
        let env = [("HTTPS_PROXY", "http://p:3128"), ("NO_PROXY", "10.0.0.0/8,.internal")];
        let through = Ok(Some("http://p:3128/".to_string()));
        assert_eq!(chosen("https://api.example:6443", None, &env), through);
        for near in ["https://10.1.2.3", "https://api.internal", "https://127.0.0.1:6443", "https://[::1]:6443"] {
            assert_eq!(chosen(near, None, &env), Ok(None), "{near}");
        }
        assert_eq!(chosen("https://localhost:6443", None, &env), Ok(None));
        assert_eq!(chosen("http://api.example", None, &env), Ok(None), "HTTPS_PROXY is for https");
        assert_eq!(chosen("https://api.example", None, &[("https_proxy", "p:3128")]), through);
        assert_eq!(chosen("https://api.example", None, &[]), Ok(None));
    }

    #[test]
    fn what_the_kubeconfig_names_counts_whatever_the_environment_says() {
        let env = [("HTTPS_PROXY", "http://other:1"), ("NO_PROXY", "*")];
        let through = Ok(Some("http://p:3128/".to_string()));
        assert_eq!(chosen("https://127.0.0.1:6443", Some("http://user:secret@p:3128"), &env), through);
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_one_sentence_without_its_password() {
        for wrong in ["https://me:secret@p", "ftp://me:secret@p", "http://me:secret@", "a b"] {
            let said = chosen("https://api.example", Some(wrong), &[]).unwrap_err().to_string();
            assert!(said.contains("proxy-url") && !said.contains("secret"), "{said}");
        }
    }
}
