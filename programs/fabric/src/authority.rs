//! Makes the fabric's certificates: `init`, `invite`, `join`, `allow` and `revoke`. Read [`init`].

use std::fs;
use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

use crate::folder::{DAY, Folder, Identity, MachineFiles};
use crate::peers::Role;
use crate::private_file::write_private;

/// How long the authority is valid.
const AUTHORITY: Duration = Duration::from_secs(20 * 365 * DAY);

/// The longest time that a certificate is valid, in days.
const MOST_DAYS: f64 = 36_500.0;

/// How long before now certificates are valid: clocks of machines differ.
const SKEW: Duration = Duration::from_secs(DAY);

/// How long a certificate is to be valid, as it is written: days, and parts of them for a guest.
///
/// # Errors
/// It is no such number.
pub(crate) fn days(written: &str) -> Result<Duration, String> {
    let days = written.parse::<f64>().ok();
    let days = days.filter(|days| (0.0..=MOST_DAYS).contains(days) && *days > 0.0);
    let days =
        days.ok_or_else(|| format!("expected a number of days, more than 0 and at most {MOST_DAYS}"))?;
    Ok(Duration::from_secs_f64(days * DAY as f64))
}

/// Makes a fabric: its authority, and the certificate of this machine, its first member.
///
/// # Errors
/// There is one already, or a file cannot be written.
pub(crate) fn init(folder: &Folder, name: &str, valid: Duration) -> Result<String, String> {
    check_name(name)?;
    if folder.authority_key().exists() || folder.certificate().exists() {
        return Err(format!(
            "{} already belongs to a fabric. To make a new fabric, remove this folder first; every machine that trusts the old fabric \
             then has to join again",
            folder.path().display()
        ));
    }
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let params = authority_params(name);
    let certificate = params.self_signed(&key).map_err(|error| error.to_string())?;
    let issuer = Issuer::new(authority_params(name), key);
    let files = issue(&issuer, name, name, &certificate.pem(), valid)?;
    write_private(&folder.authority_key(), &issuer.key().serialize_pem())?;
    folder.install(&files)?;
    Ok(format!(
        "fabric made: this machine is `{name}`, its files are in {}\n\
         Keep {} safe: whoever has it can pose as any machine.\n\
         Next: ovos-tools fabric invite LAPTOP --role operator\n      ovos-tools fabric host\n",
        folder.path().display(),
        folder.authority_key().display(),
    ))
}

/// Makes the file with which another machine joins, and lets that machine reach this one; for this machine itself it is a new
/// certificate.
///
/// # Errors
/// The authority is not here, or a file cannot be written.
pub(crate) fn invite(
    folder: &Folder,
    name: &str,
    role: Role,
    valid: Duration,
    to: &Path,
) -> Result<String, String> {
    check_name(name)?;
    let identity = folder.identity().map_err(|error| error.to_string())?;
    let key = fs::read_to_string(folder.authority_key()).map_err(|error| {
        format!(
            "read {}: {error}; certificates are made on the machine where `ovos-tools fabric init` ran",
            folder.authority_key().display()
        )
    })?;
    let peers = folder.peers().load()?;
    if peers.revoked.iter().any(|revoked| revoked == name) {
        return Err(format!(
            "`{name}` was revoked here. Choose another name: the revoked certificate would count again under this one. If nobody else has \
             that certificate, `ovos-tools fabric allow {name}` takes the revocation back"
        ));
    }
    let key = KeyPair::from_pem(&key)
        .map_err(|error| format!("{} is not a key: {error}", folder.authority_key().display()))?;
    let issuer = Issuer::new(authority_params(&identity.authority), key);
    let authority = fs::read_to_string(folder.authority()).map_err(|error| error.to_string())?;
    let files = issue(&issuer, &identity.authority, name, &authority, valid)?;
    let text = serde_json::to_string_pretty(&files).map_err(|error| error.to_string())?;
    write_private(to, &(text + "\n"))?;
    if name == identity.name {
        return Ok(format!(
            "{} makes a new certificate for this machine: run\n  ovos-tools fabric join {}\nand delete it.\n",
            to.display(),
            to.display()
        ));
    }
    let allowed = allow(folder, name, role)?;
    Ok(format!(
        "{allowed}{} makes a machine `{name}`: carry it there over a way that you trust, run\n  ovos-tools fabric join {}\n\
         there, and delete it.\n",
        to.display(),
        to.file_name().unwrap_or_default().display()
    ))
}

/// Makes this machine the member that a file of [`invite`] is for.
///
/// # Errors
/// The file is something else, or this machine is a member already under another name.
pub(crate) fn join(folder: &Folder, file: &Path) -> Result<String, String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("read {shown}: {error}"))?;
    let files: MachineFiles = serde_json::from_str(&text)
        .map_err(|error| format!("{shown} is not a file of `ovos-tools fabric invite`: {error}"))?;
    check_name(&files.identity.name)?;
    KeyPair::from_pem(&files.key).map_err(|error| format!("{shown}: its key cannot be read: {error}"))?;
    let identity = folder.identity();
    if let Err(why) = &identity
        && folder.authority_key().exists()
    {
        return Err(format!(
            "this machine is the authority of a fabric, so it joins no other one; mend its files first: {why}"
        ));
    }
    if let Ok(identity) = identity {
        let own = fs::read_to_string(folder.authority()).map_err(|error| error.to_string())?;
        // Its peers are those of its fabric, by their names there.
        if identity.name != files.identity.name || own.trim() != files.authority.trim() {
            return Err(format!(
                "this machine is `{}` in the fabric of `{}` already, and {shown} makes it `{}` in that of `{}`; remove {} first if you \
                 mean that, with the list of machines that may reach this one",
                identity.name,
                identity.authority,
                files.identity.name,
                files.identity.authority,
                folder.path().display()
            ));
        }
    }
    folder.install(&files)?;
    Ok(format!(
        "joined: this machine is `{}` in the fabric of `{}`, its files are in {}\nDelete {shown}.\n",
        files.identity.name,
        files.identity.authority,
        folder.path().display()
    ))
}

/// Lets a machine reach the toolboxes of this one.
///
/// # Errors
/// The file cannot be changed.
pub(crate) fn allow(folder: &Folder, name: &str, role: Role) -> Result<String, String> {
    check_name(name)?;
    folder.peers().change(|list| {
        list.peers.insert(name.to_owned(), role);
        list.revoked.retain(|revoked| revoked != name);
    })?;
    Ok(format!("`{name}` may reach this machine as {}\n", role.as_str()))
}

/// Accepts the certificate of a machine no longer. A host that runs knows it at once.
///
/// # Errors
/// The file cannot be changed.
pub(crate) fn revoke(folder: &Folder, name: &str) -> Result<String, String> {
    check_name(name)?;
    folder.peers().change(|list| {
        list.peers.remove(name);
        if !list.revoked.iter().any(|revoked| revoked == name) {
            list.revoked.push(name.to_owned());
        }
    })?;
    Ok(format!(
        "`{name}` may not reach this machine any more; run this on every other host of the fabric, too\n"
    ))
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(&format!("ovos-tools fabric of {name}"), AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn issue(
    issuer: &Issuer<'_, KeyPair>,
    authority: &str,
    name: &str,
    authority_pem: &str,
    valid: Duration,
) -> Result<MachineFiles, String> {
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let mut params = params(name, valid);
    params.subject_alt_names = vec![rcgen::SanType::DnsName(
        name.try_into().map_err(|error: rcgen::Error| error.to_string())?,
    )];
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = params
        .signed_by(&key, issuer)
        .map_err(|error| error.to_string())?;
    let seconds = |time: OffsetDateTime| u64::try_from(time.unix_timestamp()).unwrap_or(0);
    Ok(MachineFiles {
        identity: Identity {
            name: name.to_owned(),
            authority: authority.to_owned(),
            valid_from: seconds(params.not_before),
            valid_until: seconds(params.not_after),
        },
        authority: authority_pem.to_owned(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

fn params(common_name: &str, valid: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = OffsetDateTime::now_utc();
    params.not_before = now - SKEW;
    params.not_after = now + valid;
    params
}

/// Names are parts of keys and of host names.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = !name.is_empty() && name.len() <= 63 && name.bytes().all(legal) && !name.starts_with('-');
    if is_name {
        return Ok(());
    }
    Err(format!(
        "{name:?} is not a name of a machine: use up to 63 of a-z, 0-9 and -"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: Duration = Duration::from_secs(30 * DAY);

    #[test]
    fn certificates_are_valid_for_days_and_parts_of_them() {
        for (written, expected) in [
            ("730", Some(730 * DAY)),
            ("0.5", Some(DAY / 2)),
            ("0", None),
            ("-1", None),
            ("40000", None),
            ("nan", None),
            ("a week", None),
        ] {
            assert_eq!(days(written).ok(), expected.map(Duration::from_secs), "{written}");
        }
    }

    #[test]
    fn machines_join_the_fabric_that_invited_them_and_no_other_way() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str| Folder::new(Some(dir.path().join(name)));
        let (robot, laptop) = (folder("robot"), folder("laptop"));
        let file = dir.path().join("laptop.fabric");
        assert!(
            invite(&robot, "laptop", Role::Operator, VALID, &file).is_err(),
            "no authority yet"
        );
        init(&robot, "robot1", VALID).unwrap();
        assert!(init(&robot, "robot1", VALID).is_err(), "twice");
        invite(&robot, "laptop", Role::Operator, VALID, &file).unwrap();
        join(&laptop, &file).unwrap();
        assert_eq!(laptop.valid_identity().unwrap().name, "laptop");
        assert_eq!(robot.peers().now().role("laptop"), Some(Role::Operator));
        assert!(join(&robot, &file).is_err(), "the authority is no other machine");
        let own = dir.path().join("own.fabric");
        invite(&robot, "robot1", Role::Operator, 2 * VALID, &own).unwrap();
        assert_eq!(
            robot.peers().now().role("robot1"),
            None,
            "it does not command itself"
        );
        let before = robot.valid_identity().unwrap().valid_until;
        join(&robot, &own).unwrap();
        let after = robot.valid_identity().unwrap().valid_until;
        assert!(after > before, "the authority has a new certificate");
        invite(&robot, "laptop", Role::Operator, VALID, &file).unwrap();
        join(&laptop, &file).unwrap();
        let third = dir.path().join("third.fabric");
        // Another name, and another fabric of the same names.
        invite(&robot, "third", Role::Operator, VALID, &third).unwrap();
        let refused = join(&laptop, &third).unwrap_err();
        assert!(refused.contains("already"), "{refused}");
        let other = folder("other");
        init(&other, "robot1", VALID).unwrap();
        invite(&other, "laptop", Role::Operator, VALID, &third).unwrap();
        let refused = join(&laptop, &third).unwrap_err();
        assert!(refused.contains("remove"), "{refused}");
        assert!(
            invite(&laptop, "third", Role::Viewer, VALID, &third).is_err(),
            "not the authority"
        );
        fs::write(&third, r#"{"code": "rm -rf /"}"#).unwrap();
        assert!(join(&laptop, &third).is_err(), "something else");
        revoke(&robot, "laptop").unwrap();
        assert_eq!(robot.peers().now().role("laptop"), None);
        let refused = invite(&robot, "laptop", Role::Operator, VALID, &file).unwrap_err();
        assert!(refused.contains("Choose another name"), "{refused}");
        assert_eq!(robot.peers().load().unwrap().role("laptop"), None);
        allow(&robot, "laptop", Role::Viewer).unwrap();
        assert_eq!(robot.peers().load().unwrap().role("laptop"), Some(Role::Viewer));
        for wrong in ["", "Robot", "a/b", "a*", "-a", "a.b"] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
