//! What the page speaks beyond this machine: TLS, with the owner's certificate or one that the console makes. Read [`acceptor`].

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::ConsoleDoor;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::reach;

/// Why the page has no TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{path}: {cause}; expected a file in PEM, as service.doors.console.{key} names it")]
    File {
        path: PathBuf,
        cause: String,
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
    let fingerprint = fingerprint(first.map_err(of_certificate(certificate))?);
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
    })
}

/// A certificate that only its owner vouches for: a browser asks once whether to trust it.
fn make(config: &ConsoleDoor) -> Result<(), TlsError> {
    let (certificate, key) = (&config.certificate_file, &config.key_file);
    let mut names: Vec<String> = vec![
        "localhost".to_owned(),
        reach::own_address(config.address).to_string(),
    ];
    for host in &config.hosts {
        let (name, _) = host.split_once(':').unwrap_or((host, ""));
        names.push(name.trim().to_owned());
    }
    names.dedup();
    let pair = KeyPair::generate().map_err(of_key(key))?;
    let mut params = CertificateParams::new(names).map_err(of_certificate(certificate))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "the ovos-tools console");
    let made = params.self_signed(&pair).map_err(of_certificate(certificate))?;
    write(key, 0o600, &pair.serialize_pem()).map_err(of_key(key))?;
    write(certificate, 0o644, &made.pem()).map_err(of_certificate(certificate))
}

fn write(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
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
}
