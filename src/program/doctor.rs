//! `ovos-tools doctor`: shows what is missing on this machine, what needs it, and the command that repairs it.
//!
//! It changes nothing. The running service is asked first, because it knows what it has read and loaded. Without one,
//! plugins are loaded in child processes, as `check` does. Read [`Finding`], then [`run`].

mod finding;
mod issuer;
mod machine;
mod pages;
mod peers;
mod service;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use finding::{Finding, State};

use ::config::{Activation, Config, Overrides, ProcessEnvironment};
use cli::{CliError, Context, Paint, Tone, address, count, plain};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools doctor
  ovos-tools doctor --json | jq -r '.findings[] | select(.state != \"good\") | .mend'

Exits with 1 when something keeps a part from working; what only limits a part does not affect the exit code.")]
pub(crate) struct Arguments {
    /// Where plugins are looked for when no service runs, instead of the configured folders; may be given several times
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    plugins: Vec<PathBuf>,
}

/// The answer.
#[derive(Serialize)]
struct Report {
    findings: Vec<Finding>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let mut findings = Vec::new();
    let overrides = Overrides {
        plugins: arguments.plugins.clone(),
        given_may_be_copy: true,
        ..context.overrides()
    };
    match Config::load(&ProcessEnvironment, &overrides, None) {
        Ok(config) => {
            findings.extend(machine::configuration(&config));
            let (of_bus, status) = peers::find_services(&address(&config), context.wait()).await;
            findings.extend(of_bus);
            findings.extend(pages::check_origin(&config.bus.url).await);
            findings.extend(issuer::check_issuer(config.doors.mcp.sign_in.as_ref()).await);
            match status {
                Some(status) => {
                    // What the files say and the service says, too, is said once.
                    let texts: Vec<String> = findings.iter().map(|finding| finding.found.clone()).collect();
                    let of_service = service::findings(&status).into_iter();
                    findings.extend(of_service.filter(|finding| !texts.contains(&finding.found)));
                    if config.bus.is_local() {
                        let loaded = status.toolboxes.iter();
                        let loaded = loaded.map(|toolbox| toolbox.toolbox_id.as_str()).collect();
                        findings.extend(machine::sections(&config, &loaded));
                    }
                }
                None => findings.extend(without_service(&config).await?),
            }
        }
        Err(error) => findings.push(Finding::broken(
            "configuration",
            error.to_string(),
            "correct the file; `ovos-tools config --all` lists the files that are read",
        )),
    }
    findings.push(machine::runtime_dir());
    let broken = findings
        .iter()
        .filter(|finding| finding.state == State::Broken)
        .count();
    let report = Report { findings };
    context
        .output
        .result(&report, |paint| render(&report.findings, paint))?;
    match broken {
        0 => Ok(()),
        _ => Err(CliError::Refused(format!(
            "{} to fix",
            count(broken, "thing", "things")
        ))),
    }
}

/// Looks at the files that a service would load.
async fn without_service(config: &Config) -> Result<Vec<Finding>, CliError> {
    let mut findings = Vec::new();
    let (files, unread) = host::scan(&config.service.plugins_dir);
    findings.extend(machine::unread(&unread));
    let mut plugins = machine::plugins(&files, config).await?;
    if plugins.is_empty() {
        findings.push(machine::no_plugins(config));
    }
    plugins.retain(|plugin| {
        let manifest = plugin.manifest.as_ref();
        let off = manifest.filter(|manifest| {
            let (id, path) = (&manifest.id, &plugin.path);
            manifest.simulated_by_default && config.activation(id, path) == Activation::No
                || manifest.needs_section && config.named(id, path) == Activation::No
        });
        findings.extend(off.map(machine::off));
        off.is_none()
    });
    findings.extend(plugins.iter().map(machine::tried));
    let installed = plugins.iter().filter_map(|plugin| plugin.manifest.as_ref());
    let installed: BTreeSet<&str> = installed.map(|manifest| manifest.id.as_str()).collect();
    if !files.is_empty() {
        findings.extend(machine::left_out(config, &files, &installed));
    }
    findings.extend(machine::pythons(config).await);
    findings.extend(machine::confined_programs(config));
    let configured = config.toolboxes.iter();
    let configured =
        configured.filter(|(_, section)| section.as_ref().is_ok_and(|section| section.toolbox.enabled));
    let configured = configured.map(|(id, _)| id.as_str());
    let named = installed.into_iter().chain(configured).collect();
    findings.extend(machine::sections(config, &named));
    Ok(findings)
}

fn render(findings: &[Finding], paint: Paint) -> String {
    let mut text = String::new();
    for finding in findings {
        let (tone, word) = match finding.state {
            State::Good => (Tone::Good, "good"),
            State::Limited => (Tone::Warning, "limited"),
            State::Broken => (Tone::Bad, "broken"),
        };
        // Padded before it is coloured, because escapes have no width.
        let word = paint.tone(tone, &format!("{word:<8}"));
        text += &format!("{word} {}: {}\n", plain(&finding.part), plain(&finding.found));
        if let Some(mend) = &finding.mend {
            text += &format!("         {}\n", plain(mend));
        }
    }
    text
}
