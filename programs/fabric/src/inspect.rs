//! `ovos-tools fabric status` and `doctor`: what is between two machines, and what is wrong there. Read [`look`].

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use config::{Config, Overrides, ProcessEnvironment};
use protocol::Answer;

use crate::folder::{DAY, Folder, Identity, wall_clock};
use crate::messages::{Ask, Hello, Right, Versions};
use crate::mount::line::Line;
use crate::mount::shared::failure_of;
use crate::session::endpoint;

/// How long a connection, or an answer, may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Clocks that differ by more than this are told: certificates depend on them, and people who compare logs.
const CLOCKS: u64 = 60;

/// A certificate that ends within so many days is told.
const ENDS_SOON: u64 = 30;

/// A host, as the configuration or the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAddress {
    pub(crate) host: String,
    pub(crate) address: String,
}

/// The hosts of the mounts in the configuration, each once.
///
/// # Errors
/// The configuration cannot be read.
pub(crate) fn configured(file: Option<PathBuf>) -> Result<Vec<HostAddress>, String> {
    let overrides = Overrides {
        config: file,
        ..Overrides::default()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None).map_err(|errors| errors.to_string())?;
    let mut hosts = Vec::new();
    for program in &config.programs {
        let found = mounted(&program.args);
        if let Some(found) = found.filter(|found| !hosts.contains(found)) {
            hosts.push(found);
        }
    }
    Ok(hosts)
}

/// The host that the arguments of a program name, if it is a mount.
fn mounted(args: &[String]) -> Option<HostAddress> {
    let at = args.iter().position(|arg| arg == "mount")?;
    let rest = args.get(at + 1..)?;
    let address = rest
        .iter()
        .position(|arg| arg == "--at")
        .and_then(|at| rest.get(at + 1));
    let address = address.cloned().or_else(|| {
        let joined = rest.iter().find_map(|arg| arg.strip_prefix("--at="));
        joined.map(str::to_owned)
    });
    let mut skip = false;
    let host = rest.iter().find(|arg| {
        let is_value = std::mem::replace(&mut skip, ["--at", "--id"].contains(&arg.as_str()));
        !is_value && !arg.starts_with("--")
    });
    Some(HostAddress {
        host: host?.clone(),
        address: address?,
    })
}

/// What was found, as text, and whether all is well.
pub(crate) struct Findings {
    pub(crate) text: String,
    pub(crate) is_well: bool,
}

impl Findings {
    fn good(&mut self, what: &str) {
        _ = writeln!(self.text, "  ok   {what}");
    }

    fn remark(&mut self, what: &str) {
        _ = writeln!(self.text, "  note {what}");
    }

    fn bad(&mut self, what: &str) {
        self.is_well = false;
        _ = writeln!(self.text, "  BAD  {what}");
    }
}

/// Looks at this machine's place in the fabric, and at each host: its port, its certificate, whether it lets this machine in, its
/// version and its clock.
pub(crate) fn look(folder: &Folder, hosts: &[HostAddress]) -> Findings {
    let mut found = Findings {
        text: String::new(),
        is_well: true,
    };
    let identity = match folder.identity() {
        Ok(identity) => identity,
        Err(error) => {
            found.bad(&error.to_string());
            return found;
        }
    };
    _ = writeln!(
        found.text,
        "this machine: {} (fabric of {}, {})",
        identity.name,
        identity.authority,
        folder.path().display()
    );
    look_at_validity(&mut found, &identity);
    let peers = folder.peers().load().unwrap_or_else(|why| {
        found.bad(&format!("peers.json: {why}"));
        crate::peers::PeerList::default()
    });
    for (name, role) in &peers.peers {
        _ = writeln!(found.text, "  peer {name}: {}", role.as_str());
    }
    for name in &peers.revoked {
        _ = writeln!(found.text, "  peer {name}: revoked");
    }
    for HostAddress { host, address } in hosts {
        _ = writeln!(found.text, "host {host} at {address}:");
        look_at_host(&mut found, folder, &identity, host, address);
    }
    found
}

fn look_at_validity(found: &mut Findings, identity: &Identity) {
    match identity.validity(wall_clock()) {
        Ok(days) if days < ENDS_SOON => found.remark(&format!(
            "the certificate of this machine ends in {days} days: make a new one with `ovos-tools fabric invite {}`",
            identity.name
        )),
        Ok(days) => found.good(&format!("the certificate of this machine is valid for {days} more days")),
        Err(why) => found.bad(&why),
    }
}

fn look_at_host(found: &mut Findings, folder: &Folder, identity: &Identity, host: &str, address: &str) {
    let endpoint = match endpoint(address) {
        Ok(endpoint) => endpoint,
        Err(why) => return found.bad(&why),
    };
    let socket = endpoint.trim_start_matches("tls/").to_owned();
    let line = Line::new(folder.clone(), identity.clone(), host.to_owned(), endpoint);
    // The port is tried alone only where the session fails: the host logs a connection without a handshake as a broken one.
    if let Err(why) = line.open() {
        if let Err(why) = reach(&socket) {
            return found.bad(&why);
        }
        found.good(&format!("something listens on {socket}"));
        return found.bad(&format!(
            "{why}\n       the two machines do not accept each other: both certificates have to be of one fabric and valid by the \
             clock of the other machine, and {socket} has to be a host (`ovos-tools fabric status` on both sides shows them)"
        ));
    }
    found.good(&format!("something listens on {socket}"));
    found.good("the certificates of both sides are accepted");
    let asked = Instant::now();
    let answer = line.answer::<Hello>(Right::Read, PATIENCE, &Ask::Hello(Versions::own()));
    let took = asked.elapsed();
    match answer {
        None => found.bad(&format!(
            "`{host}` does not answer: it does not know `{name}`, or has revoked it. To let it in, run on {host}\n       ovos-tools \
             fabric allow {name} --role ROLE\n       where ROLE is viewer, commander or operator",
            name = identity.name
        )),
        Some(Answer::Ok(hello)) => look_at_hello(found, identity, host, &hello, took),
        Some(refused) => found.bad(&failure_of(refused).message),
    }
    line.close();
}

/// Whether a host's port answers.
fn reach(socket: &str) -> Result<(), String> {
    let addresses = socket.to_socket_addrs().map_err(|error| {
        format!("{socket}: {error}; the name is not known on this network, use the address of the machine")
    })?;
    let mut why = format!("{socket} has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => {
                why = match error.kind() {
                    ErrorKind::ConnectionRefused => format!(
                        "nothing listens on {address}: start `ovos-tools fabric host` there, or correct the port; a host whose \
                         certificate has ended does not listen either, and its log says so"
                    ),
                    ErrorKind::TimedOut | ErrorKind::WouldBlock => format!(
                        "{address} does not answer within {} s: the machine is off, or a firewall drops the port",
                        PATIENCE.as_secs()
                    ),
                    _ => format!("{address}: {error}"),
                }
            }
        }
    }
    Err(why)
}

fn look_at_hello(found: &mut Findings, identity: &Identity, host: &str, hello: &Hello, took: Duration) {
    let own = Versions::own();
    match own.agree(&identity.name, &hello.versions, host) {
        Ok(version) => found.good(&format!(
            "release {} there and {} here speak version {version} of the fabric",
            hello.versions.release, own.release
        )),
        Err(why) => found.bad(&why),
    }
    found.good(&format!(
        "this machine is {} there; an answer took {:.1} ms",
        hello.role.as_str(),
        took.as_secs_f64() * 1000.0
    ));
    let (here, there) = (wall_clock(), hello.wall_clock);
    let differ = here.abs_diff(there);
    if differ > CLOCKS {
        found.remark(&format!(
            "the clock of `{host}` is {differ} s {} that of this machine: nothing here depends on it but the days of certificates; \
             set one of them",
            if there > here { "ahead of" } else { "behind" }
        ));
    }
    let days = hello.valid_until.saturating_sub(here) / DAY;
    if days < ENDS_SOON {
        found.remark(&format!("the certificate of `{host}` ends in {days} days"));
    }
    if hello.strangers > 0 {
        found.remark(&format!(
            "{} connections of machines that `{host}` does not know, since it started; its log names them",
            hello.strangers
        ));
    }
    if let Some(closed) = &hello.closed {
        found.bad(&format!("`{host}` {closed}"));
    }
    for toolbox in &hello.toolboxes {
        let commander = toolbox.commander.as_deref().unwrap_or("nobody");
        let stop = toolbox
            .stop
            .as_ref()
            .map(|stop| format!(", in EMERGENCY STOP {} ({})", stop.stop_id, stop.reason));
        found.good(&format!(
            "toolbox {}: {} tools, {}, commanded by {commander}{}",
            toolbox.id,
            toolbox.tools,
            toolbox.state,
            stop.unwrap_or_default()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_mounts_are_read_from_their_arguments() {
        let of = |text: &str| {
            let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
            mounted(&args).map(|found| (found.host, found.address))
        };
        let expected = Some(("robot1".to_owned(), "10.0.0.2".to_owned()));
        for text in [
            "mount robot1 arm --at 10.0.0.2",
            "mount --at 10.0.0.2 robot1 arm",
            "--folder /x mount --id robot1_arm --at=10.0.0.2 robot1 arm",
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        for text in ["host", "mount robot1 arm", "mount"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
