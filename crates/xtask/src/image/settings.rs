//! What `xtask image` is asked for.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::layout::Name;
use super::{Platform, VERSION, failed, sbom};

/// What is to be made.
pub struct Settings {
    /// A static binary for each platform.
    pub binaries: Vec<(Platform, PathBuf)>,
    /// The C library that each binary was linked with, as the archive it was taken from.
    pub libraries: Vec<(Platform, PathBuf)>,
    /// Where layouts, archives and bills go.
    pub out: PathBuf,
    /// Before the images' names.
    pub prefix: String,
    /// Every time in the images, in seconds since 1970.
    pub date: u64,
    /// The list of Debian's packages; without one there is no image of the driver.
    pub debian: Option<PathBuf>,
    /// Where packages are kept once they are fetched.
    pub cache: PathBuf,
}

impl Settings {
    /// From the command line.
    pub fn read(options: &[&str]) -> io::Result<Settings> {
        let mut settings = Settings {
            binaries: Vec::new(),
            libraries: Vec::new(),
            out: PathBuf::new(),
            prefix: "docker.io/library/".into(),
            date: 0,
            debian: None,
            cache: std::env::temp_dir().join("longshore-packages"),
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or_else(|| io::Error::other(format!("{option} wants a value")))?;
            let of_platform = || {
                let (platform, file) = value.split_once('=').ok_or_else(|| {
                    io::Error::other(format!("{option} {value} names no platform; write linux/amd64=FILE"))
                })?;
                Ok::<_, io::Error>((Platform::read(platform)?, PathBuf::from(file)))
            };
            match *option {
                "--binary" => settings.binaries.push(of_platform()?),
                "--libc" => settings.libraries.push(of_platform()?),
                "--out" => settings.out = value.into(),
                "--prefix" => settings.prefix = (*value).into(),
                "--date" => {
                    let wrong = |_| io::Error::other(format!("--date {value} is no number of seconds since 1970"));
                    settings.date = value.parse().map_err(wrong)?;
                }
                "--debian" => settings.debian = Some(value.into()),
                "--cache" => settings.cache = value.into(),
                _ => return Err(io::Error::other(format!("there is no option {option}"))),
            }
        }
        if settings.binaries.is_empty() || settings.out.as_os_str().is_empty() {
            return Err(io::Error::other("name at least --binary linux/amd64=FILE and --out FOLDER"));
        }
        Ok(settings)
    }

    /// What the binary of a platform is made of: its crates, and what is linked in beside them.
    pub(super) fn made_of(&self, platform: &Platform, binary: &[u8], report: &mut String) -> io::Result<Vec<Value>> {
        let mut parts = sbom::crates(platform)?;
        parts.push(sbom::binary(platform, binary));
        parts.extend(sbom::standard_library(binary));
        match self.libraries.iter().find(|(of, _)| of == platform) {
            Some((_, file)) => {
                let archive = fs::read(file).map_err(|error| failed("read", file, error))?;
                let library = sbom::c_library(&archive);
                parts.push(library.ok_or_else(|| {
                    io::Error::other(format!("{} does not say which glibc it is of; name its libc.a", file.display()))
                })?);
            }
            None => {
                let Platform { os, architecture } = platform;
                let _ = writeln!(
                    report,
                    "image: the bill of {os}/{architecture} names no C library; name the one that the binary was \
                     linked with: --libc {os}/{architecture}=FILE"
                );
            }
        }
        Ok(parts)
    }

    /// What an image is called.
    pub(super) fn name(&self, image: &str) -> Name {
        Name { repository: format!("{}{image}", self.prefix), tag: VERSION.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_options_is_told() {
        let wrong = |words: &[&str]| Settings::read(words).err().unwrap().to_string();
        assert!(wrong(&[]).contains("--binary"));
        assert!(wrong(&["--binary", "x"]).contains("linux/amd64=FILE"));
        assert!(wrong(&["--binary", "plan9/mips=x"]).contains("is not known"));
        assert!(wrong(&["--libc", "/usr/lib/libc.a"]).contains("--libc /usr/lib/libc.a names no platform"));
        assert!(wrong(&["--date", "soon"]).contains("seconds"));
        assert!(wrong(&["--out"]).contains("wants a value"));
    }
}
