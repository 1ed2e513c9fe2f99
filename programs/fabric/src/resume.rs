//! `ovos-tools fabric resume-all`: lifts a stop that holds all of a host. Read [`resume_all`].

use std::time::Duration;

use protocol::Answer;

use crate::folder::Folder;
use crate::messages::{Ask, ResumeAnswer, Right};
use crate::mount::line::Line;
use crate::mount::shared::failure_of;
use crate::session::endpoint;

/// How long the host may take: each of its toolboxes has to agree.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lifts a stop wherever it holds on a host.
///
/// # Errors
/// The host is not reached, does not let this machine do that, or another stop holds it.
pub(crate) fn resume_all(
    folder: &Folder,
    host: String,
    address: &str,
    stop_id: String,
) -> Result<String, String> {
    let identity = folder.valid_identity().map_err(|error| error.to_string())?;
    let line = Line::new(folder.clone(), identity, host, endpoint(address)?);
    line.open()?;
    let ask = Ask::ResumeAll {
        stop_id: stop_id.clone(),
    };
    let answer = line.answer::<ResumeAnswer>(Right::Resume, PATIENCE, &ask);
    line.close();
    match answer {
        Some(Answer::Ok(_)) => Ok(format!(
            "{stop_id} is lifted on `{}`; each service that is latched because of it resumes for itself\n",
            line.host
        )),
        Some(refused) => Err(failure_of(refused).message),
        None => Err(format!(
            "host `{host}` did not answer. If it is reachable (`ovos-tools fabric doctor`), `{name}` lacks the role operator there: run \
             `ovos-tools fabric allow {name} --role operator` on that host",
            host = line.host,
            name = line.identity.name
        )),
    }
}
