//! The files a control plane needs before it starts: a signing key, tokens, kubeconfigs.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A user the server knows by its token.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    token: String,
}

impl User {
    pub(crate) fn new(name: &str, groups: &[String]) -> Result<User, Error> {
        Ok(User { name: name.to_string(), groups: groups.to_vec(), token: random_token()? })
    }

    /// A line of kube-apiserver's token file: token, name, uid, groups.
    fn line(&self) -> String {
        format!("{},{},{},\"{}\"\n", self.token, self.name, self.name, self.groups.join(","))
    }
}

fn random_token() -> Result<String, Error> {
    let mut bytes = [0_u8; 24];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(Error::io("read random bytes from /dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key that service-account tokens are signed with.
pub(crate) fn write_signing_key(directory: &Path) -> Result<PathBuf, Error> {
    let path = directory.join("service-accounts.key");
    let made = Command::new("openssl")
        .args(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out"])
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("make a signing key with openssl; install it with: apt-get install openssl"))?;
    if !made.status.success() {
        let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
        return Err(Error::Command { command: "openssl ecparam".to_string(), stderr });
    }
    Ok(path)
}

pub(crate) fn write_tokens(directory: &Path, users: &[User]) -> Result<PathBuf, Error> {
    let path = directory.join("tokens.csv");
    write_private(&path, &users.iter().map(User::line).collect::<String>())?;
    Ok(path)
}

/// A kubeconfig that trusts the server's own certificate.
pub(crate) fn write_kubeconfig(directory: &Path, server: &str, user: &User) -> Result<PathBuf, Error> {
    let path = directory.join(format!("{}.kubeconfig", user.name));
    let authority = directory.join("certs/apiserver.crt");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster:\n    server: {server}\n    certificate-authority: {}\n\
         contexts:\n- name: test\n  context:\n    cluster: test\n    user: {name}\n\
         users:\n- name: {name}\n  user:\n    token: {token}\n",
        authority.display(),
        name = user.name,
        token = user.token,
    );
    write_private(&path, &text)?;
    Ok(path)
}

fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io(format!("write {}", path.display())))
}

/// Makes a directory for the owner only.
pub(crate) fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir(path).map_err(Error::io(format!("make the directory {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tokens_differ_and_are_for_the_owner_only() {
        let scratch = Scratch::new("tokens").unwrap();
        let users = [
            User::new("admin", &["system:masters".to_string()]).unwrap(),
            User::new("attacher", &["a".to_string(), "b".to_string()]).unwrap(),
        ];
        assert_ne!(users[0].token, users[1].token);
        let path = write_tokens(scratch.path(), &users).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(",attacher,attacher,\"a,b\"\n"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
