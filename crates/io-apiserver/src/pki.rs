//! Certificates: two authorities (who serves, who may ask), a serving certificate and the administrator's.
//!
//! Each certificate lies with its key in one file, so that no crash can leave a pair that does not match.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::auth::{Identity, MASTERS};
use crate::{Error, files};

const DAY: i64 = 86_400;
const AUTHORITY_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;
/// A leaf is renewed when the process starts this close to its end.
const RENEW_DAYS: i64 = 60;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub certificate: String,
    pub key: String,
}

/// All certificates of one server.
#[derive(Clone)]
pub(crate) struct Pki {
    pub server_authority: Pair,
    pub client_authority: Pair,
    pub server: Pair,
    pub admin: Pair,
}

/// What a leaf is for.
struct Leaf<'a> {
    file: &'a str,
    common_name: &'a str,
    organization: Option<&'a str>,
    names: &'a [String],
    usage: ExtendedKeyUsagePurpose,
}

impl Pki {
    /// Reads the certificates in this directory, making those that are missing or about to end.
    pub(crate) fn open(directory: &Path, extra_names: &[String]) -> Result<Pki, Error> {
        files::private_directory(directory)?;
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        names.extend(extra_names.iter().filter(|n| !n.is_empty()).cloned());
        Workshop { directory, now: unix_now() }.prepare(&names).map_err(|problem| match problem {
            Problem::File(error) => error,
            Problem::Certificate(reason) => Error::Certificates { path: directory.to_owned(), reason },
        })
    }
}

enum Problem {
    File(Error),
    Certificate(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::File(error)
    }
}

impl From<rcgen::Error> for Problem {
    fn from(error: rcgen::Error) -> Problem {
        Problem::Certificate(error.to_string())
    }
}

struct Workshop<'a> {
    directory: &'a Path,
    now: i64,
}

impl Workshop<'_> {
    fn prepare(&self, names: &[String]) -> Result<Pki, Problem> {
        let serving = Leaf {
            file: "server.pem",
            common_name: "longshore",
            organization: None,
            names,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        };
        let admin = Leaf {
            file: "admin.pem",
            common_name: "admin",
            organization: Some(MASTERS),
            names: &[],
            usage: ExtendedKeyUsagePurpose::ClientAuth,
        };
        let server_authority = self.authority("server-ca.pem", "longshore-server-ca", &serving)?;
        let client_authority = self.authority("client-ca.pem", "longshore-client-ca", &admin)?;
        let server = self.leaf(&server_authority, &serving)?;
        let admin = self.leaf(&client_authority, &admin)?;
        Ok(Pki { server_authority, client_authority, server, admin })
    }

    fn authority(&self, file: &str, common_name: &str, below: &Leaf<'_>) -> Result<Pair, Problem> {
        if let Some(pair) = self.read(file)? {
            // An authority must outlive every leaf it may sign today.
            if expiry(&pair.certificate)? > self.now + (LEAF_DAYS + RENEW_DAYS) * DAY {
                return Ok(pair);
            }
        }
        // The leaf goes first: a crash after this line leaves no leaf of an authority that is gone.
        self.remove(below.file)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = self.params(&[], AUTHORITY_DAYS)?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.pem();
        self.write(file, Pair { certificate, key: key.serialize_pem() })
    }

    fn leaf(&self, authority: &Pair, leaf: &Leaf<'_>) -> Result<Pair, Problem> {
        if let Some(pair) = self.read(leaf.file)?
            && expiry(&pair.certificate)? > self.now + RENEW_DAYS * DAY
            && covers(&pair.certificate, leaf.names)?
        {
            return Ok(pair);
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = self.params(leaf.names, LEAF_DAYS)?;
        params.distinguished_name.push(DnType::CommonName, leaf.common_name);
        if let Some(organization) = leaf.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![leaf.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        self.write(leaf.file, Pair { certificate, key: key.serialize_pem() })
    }

    fn params(&self, names: &[String], days: i64) -> Result<CertificateParams, Problem> {
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = DistinguishedName::new();
        // A day back, for clocks that disagree.
        let (year, month, day) = civil_date(self.now - DAY);
        params.not_before = rcgen::date_time_ymd(year, month, day);
        let (year, month, day) = civil_date(self.now + days * DAY);
        params.not_after = rcgen::date_time_ymd(year, month, day);
        Ok(params)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    fn read(&self, file: &str) -> Result<Option<Pair>, Problem> {
        let path = self.path(file);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", path, error).into()),
        };
        files::narrow_rights(&path)?;
        let unreadable = || Problem::Certificate(format!("{file} is not a certificate followed by its key"));
        let start = text.find("-----BEGIN PRIVATE KEY").ok_or_else(unreadable)?;
        let (certificate, key) = text.split_at(start);
        let pair = Pair { certificate: certificate.to_owned(), key: key.to_owned() };
        certificate_der(&pair).and_then(|_| key_der(&pair)).map_err(|_| unreadable())?;
        Ok(Some(pair))
    }

    fn write(&self, file: &str, pair: Pair) -> Result<Pair, Problem> {
        files::write_private(&self.path(file), format!("{}{}", pair.certificate, pair.key).as_bytes())?;
        Ok(pair)
    }

    fn remove(&self, file: &str) -> Result<(), Problem> {
        let path = self.path(file);
        match fs::remove_file(&path) {
            Ok(()) => Ok(files::sync_parent(&path)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::file("remove", path, error).into()),
        }
    }
}

/// Why a certificate or its key is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PairError {
    #[error("the certificate cannot be read: {0}")]
    Certificate(#[from] pem::Error),
    /// The parser's own words are withheld: they could repeat what stood in the file.
    #[error("the private key cannot be read")]
    Key,
}

/// The certificate of a pair, in the form TLS wants.
pub(crate) fn certificate_der(pair: &Pair) -> Result<CertificateDer<'static>, PairError> {
    Ok(CertificateDer::from_pem_slice(pair.certificate.as_bytes())?)
}

/// The key of a pair, in the form TLS wants.
pub(crate) fn key_der(pair: &Pair) -> Result<PrivateKeyDer<'static>, PairError> {
    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|_| PairError::Key)
}

/// Whom a client certificate names, and until when (seconds after 1970) it holds.
pub(crate) fn identity_of(certificate: &CertificateDer<'_>) -> Option<(Identity, i64)> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let user = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> = parsed.subject().iter_organization().filter_map(|o| o.as_str().ok()).collect();
    Some((Identity::new(user, &groups), parsed.validity().not_after.timestamp()))
}

fn expiry(pem: &str) -> Result<i64, Problem> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| Problem::Certificate(e.to_string()))?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|e| Problem::Certificate(e.to_string()))?;
    Ok(parsed.validity().not_after.timestamp())
}

fn covers(pem: &str, names: &[String]) -> Result<bool, Problem> {
    use x509_parser::extensions::GeneralName;
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| Problem::Certificate(e.to_string()))?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|e| Problem::Certificate(e.to_string()))?;
    let alternative = parsed.subject_alternative_name().map_err(|e| Problem::Certificate(e.to_string()))?;
    let held: Vec<String> = alternative
        .iter()
        .flat_map(|extension| extension.value.general_names.iter())
        .filter_map(|name| match name {
            GeneralName::DNSName(dns) => Some((*dns).to_owned()),
            GeneralName::IPAddress(bytes) => ip_text(bytes),
            _ => None,
        })
        .collect();
    Ok(names.iter().all(|name| held.contains(name)))
}

fn ip_text(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|b| std::net::Ipv4Addr::from(b).to_string()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|b| std::net::Ipv6Addr::from(b).to_string()),
        _ => None,
    }
}

/// Seconds after 1970.
pub(crate) fn unix_now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

// Certificates are dated by whole days; the calendar is that of the vocabulary crate.
fn civil_date(seconds: i64) -> (i32, u8, u8) {
    let text = api::Time::from_unix_millis(u64::try_from(seconds).unwrap_or(0) * 1000).0;
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(|p| p.parse::<u16>().ok()).unwrap_or(1);
    (i32::from(number(0..4)), u8::try_from(number(5..7)).unwrap_or(1), u8::try_from(number(8..10)).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificates_are_made_once_private_and_kept() {
        // reliability 122
        let dir = tempfile::tempdir().unwrap();
        let first = Pki::open(dir.path(), &[]).unwrap();
        let second = Pki::open(dir.path(), &[]).unwrap();
        assert_eq!(first.server.certificate, second.server.certificate);
        assert_eq!(first.admin.certificate, second.admin.certificate);
        for entry in fs::read_dir(dir.path()).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_new_name_renews_only_the_serving_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let first = Pki::open(dir.path(), &[]).unwrap();
        let second = Pki::open(dir.path(), &["10.1.2.3".into(), "box.example".into()]).unwrap();
        assert_ne!(first.server.certificate, second.server.certificate);
        assert_eq!(first.server_authority.certificate, second.server_authority.certificate);
        assert_eq!(first.admin.certificate, second.admin.certificate);
    }

    #[test]
    fn a_leaf_about_to_end_is_renewed_and_an_old_authority_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let now = unix_now();
        let at = |now| Workshop { directory: dir.path(), now }.prepare(&["localhost".to_owned()]).ok().unwrap();
        let first = at(now);
        let later = at(now + (LEAF_DAYS - RENEW_DAYS + 2) * DAY);
        assert_ne!(first.admin.certificate, later.admin.certificate);
        assert_eq!(first.client_authority.certificate, later.client_authority.certificate);
        let much_later = at(now + (AUTHORITY_DAYS - LEAF_DAYS) * DAY);
        assert_ne!(first.client_authority.certificate, much_later.client_authority.certificate);
    }

    #[test]
    fn the_administrator_is_named_in_the_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::open(dir.path(), &[]).unwrap();
        let (identity, _) = identity_of(&certificate_der(&pki.admin).unwrap()).unwrap();
        assert_eq!(identity, Identity::new("admin", &[MASTERS]));
    }

    #[test]
    fn a_spoilt_file_is_one_sentence_without_its_content() {
        let dir = tempfile::tempdir().unwrap();
        Pki::open(dir.path(), &[]).unwrap();
        fs::write(dir.path().join("admin.pem"), "-----BEGIN PRIVATE KEY-----\nhunter2\n").unwrap();
        let sentence = Pki::open(dir.path(), &[]).err().unwrap().to_string();
        assert!(sentence.contains("admin.pem") && !sentence.contains("hunter2"), "{sentence}");
    }
}
