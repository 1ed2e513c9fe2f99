//! TLS for the page beyond this machine, with the owner's certificate or one that the console makes. Read [`acceptor`].

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{ConsoleDoor, StagedFile};
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::{gate, reach};

/// Why the page has no TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{path}: {cause}; expected a file in PEM, as service.doors.console.{key} names it")]
    File {
        path: PathBuf,
        cause: String,
        key: &'static str,
    },
    #[error("no certificate can be made: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error(
        "cannot write {path}: {cause}; make its folder writable, or name another file in service.doors.console.{key}"
    )]
    Write {
        path: PathBuf,
        cause: std::io::Error,
        key: &'static str,
    },
    #[error(
        "{there} exists but {missing} does not: add {missing}, or move {there} away to have the console make both"
    )]
    Half { there: PathBuf, missing: PathBuf },
    #[error("every user of this machine can read the key {path}: run `chmod 600 {path}`")]
    Open { path: PathBuf },
    #[error(
        "the certificate {certificate} and the key {key} do not work together: {cause}; move both away, and the console makes new ones"
    )]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        cause: String,
    },
}

/// What a browser and a person check.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The SHA-256 of the certificate, as browsers show it.
    pub(crate) fingerprint: String,
    /// The names under which others reach the page and which the certificate lacks: browsers refuse it there.
    pub(crate) missing_names: Vec<String>,
}

/// Reads the certificate and its key, and makes both where both are missing.
pub(crate) fn acceptor(config: &ConsoleDoor) -> Result<Tls, TlsError> {
    let (certificate, key) = (&config.certificate_file, &config.key_file);
    match (certificate.exists(), key.exists()) {
        (false, false) => make(config)?,
        (true, true) => {}
        (has, _) => {
            let (there, missing) = if has {
                (certificate, key)
            } else {
                (key, certificate)
            };
            return Err(TlsError::Half {
                there: there.clone(),
                missing: missing.clone(),
            });
        }
    }
    let metadata = fs::metadata(key).map_err(of_key(key))?;
    if metadata.mode() & 0o007 != 0 {
        return Err(TlsError::Open { path: key.clone() });
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(of_certificate(certificate));
    let chain = chain?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(of_key(key))?;
    let pair = |cause: rustls::Error| TlsError::Pair {
        certificate: certificate.clone(),
        key: key.clone(),
        cause: cause.to_string(),
    };
    let first = chain.first().ok_or("it has no certificate");
    let first = first.map_err(of_certificate(certificate))?;
    let fingerprint = fingerprint(first);
    let parsed = ParsedCertificate::try_from(first).map_err(of_certificate(certificate))?;
    let lacks = |name: &String| {
        let name = ServerName::try_from(name.as_str());
        name.is_ok_and(|name| verify_server_name(&parsed, &name).is_err())
    };
    let missing_names: Vec<String> = public_names(config).into_iter().filter(lacks).collect();
    let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(pair)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls {
        acceptor: TlsAcceptor::from(Arc::new(server)),
        fingerprint,
        missing_names,
    })
}

/// The names under which others reach the page: those of the configuration, else the address of this machine.
fn public_names(config: &ConsoleDoor) -> Vec<String> {
    let hosts = config.hosts.iter().filter_map(|host| gate::named(host));
    let names: Vec<String> = hosts.map(|host| gate::name_of(&host).to_owned()).collect();
    if names.is_empty() {
        return vec![reach::own_address(config.address).to_string()];
    }
    names
}

/// A certificate that only its owner vouches for: a browser asks once whether to trust it.
fn make(config: &ConsoleDoor) -> Result<(), TlsError> {
    let (certificate, key) = (&config.certificate_file, &config.key_file);
    let mut names = vec![
        "localhost".to_owned(),
        reach::own_address(config.address).to_string(),
    ];
    for name in public_names(config) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "the ovos-tools console");
    let made = params.self_signed(&pair)?;
    let failed = |path: &Path, key| {
        let path = path.to_owned();
        move |cause| TlsError::Write { path, cause, key }
    };
    let (of_key, of_certificate) = (failed(key, "key_file"), failed(certificate, "certificate_file"));
    // Both are on the disk before either has its name: the console does not start with one of them.
    let staged_key = StagedFile::write(key, pair.serialize_pem().as_bytes(), None).map_err(of_key)?;
    let readable = Permissions::from_mode(0o644);
    let staged = StagedFile::write(certificate, made.pem().as_bytes(), Some(readable));
    let staged = staged.map_err(of_certificate)?;
    staged_key.replace().map_err(failed(key, "key_file"))?;
    staged.replace().map_err(failed(certificate, "certificate_file"))
}

fn of_certificate<E: ToString>(path: &Path) -> impl Fn(E) -> TlsError {
    of(path, "certificate_file")
}

fn of_key<E: ToString>(path: &Path) -> impl Fn(E) -> TlsError {
    of(path, "key_file")
}

fn of<E: ToString>(path: &Path, key: &'static str) -> impl Fn(E) -> TlsError {
    move |cause| TlsError::File {
        path: path.to_owned(),
        cause: cause.to_string(),
        key,
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let bytes = Sha256::digest(certificate);
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tests::door_in;

    #[test]
    fn a_certificate_is_made_once_and_a_wrong_one_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let config = door_in(folder.path());
        let first = acceptor(&config).unwrap().fingerprint;
        assert_eq!(acceptor(&config).unwrap().fingerprint, first);
        assert_eq!(first.len(), 32 * 3 - 1);
        let text = || acceptor(&config).err().unwrap().to_string();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(
            (mode(&config.key_file), mode(&config.certificate_file)),
            (0o600, 0o644)
        );

        fs::set_permissions(&config.key_file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(text().contains("run `chmod 600"), "{}", text());
        fs::set_permissions(&config.key_file, fs::Permissions::from_mode(0o600)).unwrap();

        let other = KeyPair::generate().unwrap().serialize_pem();
        fs::write(&config.key_file, other).unwrap();
        assert!(text().contains("do not work together"), "{}", text());
        fs::write(&config.certificate_file, "").unwrap();
        assert!(
            text().contains("service.doors.console.certificate_file"),
            "{}",
            text()
        );
        fs::write(&config.key_file, "no key").unwrap();
        assert!(text().contains("service.doors.console.key_file"), "{}", text());

        fs::remove_file(&config.key_file).unwrap();
        assert!(text().contains("console-key.pem does not"), "{}", text());
        fs::remove_file(&config.certificate_file).unwrap();
        assert_ne!(acceptor(&config).unwrap().fingerprint, first);
    }
    /// A file where a folder has to be: not even root can write below it.
    #[test]
    fn files_that_cannot_be_made_are_told_as_that_and_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("blocked");
        fs::write(&blocked, "").unwrap();
        for key in ["key_file", "certificate_file"] {
            let mut config = door_in(folder.path());
            let file = match key {
                "key_file" => &mut config.key_file,
                _ => &mut config.certificate_file,
            };
            *file = blocked.join("it.pem");
            let text = acceptor(&config).err().unwrap().to_string();
            let setting = format!("service.doors.console.{key}");
            assert!(text.contains("cannot write") && text.contains(&setting), "{text}");
            assert!(!config.key_file.exists() && !config.certificate_file.exists());
        }
    }

    #[test]
    fn a_certificate_has_every_name_of_the_page_and_one_that_lacks_a_name_says_so() {
        for host in [
            "robot.test",
            "robot.test:8770",
            "[fd00::5]:8770",
            "fd00::5",
            "192.0.2.7:1",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut config = door_in(folder.path());
            config.hosts = vec![host.to_owned()];
            assert_eq!(
                acceptor(&config).unwrap().missing_names,
                Vec::<String>::new(),
                "{host}"
            );
            config.hosts.push("later.test:1".to_owned());
            assert_eq!(acceptor(&config).unwrap().missing_names, ["later.test"], "{host}");
        }
    }
}
