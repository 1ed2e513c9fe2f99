//! One copy of a toolbox, from its file to its list of tools.
//!
//! Owns what has to go well before a copy may be put into its place. Read [`load`], then [`open`].

use std::sync::Arc;

use futures_util::FutureExt;
use ovos_toolbox_wire::Failure;

use crate::contract::services::Origin;
use crate::contract::tools::ToolSet;
use crate::ffi::load::Library;
use crate::ffi::plugin::Open;
use crate::lifecycle::book::{Slot, Source};
use crate::lifecycle::code::Code;
use crate::lifecycle::examine::Candidate;
use crate::lifecycle::manager::{Inner, rest};
use crate::lifecycle::settings::{Isolation, ToolboxConfig};
use crate::lifecycle::status::State;
use crate::process::confine::Confine;
use crate::transport::child::ProcessSettings;
use crate::transport::hosted::Hosted;

/// Loads a candidate's library, unless these contents are loaded already.
pub(crate) async fn load(manager: &Arc<Inner>, candidate: &Candidate) -> Result<Source, String> {
    let Candidate {
        id,
        path,
        staged,
        code,
        manifest,
        config,
    } = candidate;
    let code = match code {
        Some(code) => code.clone(),
        None if config.isolation == Isolation::Process => {
            Code::Staged(staged.file.clone(), Arc::clone(manifest))
        }
        None => {
            let max = manager.settings.max_generations;
            {
                let mut book = manager.book();
                if book.loaded >= max {
                    return Err(format!(
                        "restart needed: {max} plugin libraries were loaded since the service started, and none can be \
                         unloaded; restart the service to load {} (`service.max_generations`)",
                        path.display()
                    ));
                }
                book.loaded += 1;
            }
            let (file, shown) = (staged.file.clone(), path.clone());
            let loaded =
                manager.blocking(move || Library::load(file.path(), &shown).map_err(|e| e.to_string()));
            Code::Loaded {
                library: Arc::new(loaded.await?),
                _file: staged.file.clone(),
            }
        }
    };
    if code.manifest().id != *id {
        return Err(format!(
            "{} called itself `{id}` when it was probed and `{}` when it was loaded",
            path.display(),
            code.manifest().id
        ));
    }
    let source = Source {
        code,
        path: path.clone(),
        sha256: staged.sha256.clone(),
        fingerprint: staged.fingerprint,
    };
    manager.book().spares.insert(id.clone(), source.clone());
    Ok(source)
}

/// Opens a copy and asks for its tools. A copy that fails is closed, and so is one that is not ready when the service ends.
pub(crate) async fn open(
    manager: &Arc<Inner>,
    source: &Source,
    config: &ToolboxConfig,
) -> Result<Slot, String> {
    let id = source.code.manifest().id.clone();
    let (generation, stop_epoch) = {
        let mut book = manager.book();
        (book.next_generation(&id), book.stop_epoch(&id))
    };
    let section = serde_json::to_string(&config.section).map_err(|e| e.to_string())?;
    let open = Open {
        generation,
        config: section,
        stop_epoch,
        limits: config.limits.clone(),
    };
    let services = manager.services.clone();
    let opening = match &source.code {
        Code::Loaded { library, .. } => Hosted::in_process(Arc::clone(library), open, services).boxed(),
        Code::Staged(file, manifest) => {
            let missed = config.confine.as_ref().and_then(Confine::missed);
            if let Some(why) = missed {
                tracing::warn!(toolbox = id, why, "the toolbox runs without its confinement");
            }
            let process = ProcessSettings {
                program: manager.settings.probe.program(),
                file: Arc::clone(file),
                env: config.env.clone(),
                memory_mb: config.memory_mb,
                confine: config.confine.clone().filter(|_| missed.is_none()),
                hello: manager.settings.probe.limit,
            };
            Hosted::in_child(process, Arc::clone(manifest), open, services).boxed()
        }
    };
    let ending = || Failure::new("ToolboxClosed", "the service ends");
    let opened = tokio::select! {
        opened = opening => opened,
        () = manager.stop.cancelled() => Err(ending()),
    };
    let instance = Arc::new(opened.map_err(|e| format!("toolbox `{id}` does not open: {e}"))?);
    let origin = instance.origin().clone();
    manager
        .book()
        .instances
        .insert(origin.clone(), Arc::downgrade(&instance));
    let tools = tokio::select! {
        tools = instance.tools() => tools,
        () = manager.stop.cancelled() => Err(ending()),
    };
    match tools {
        Ok(tools) => {
            name_dropped(&origin, &tools);
            Ok(Slot {
                source: source.clone(),
                config: config.clone(),
                instance,
                tools: Arc::new(tools),
                state: State::Ready,
            })
        }
        Err(failure) => {
            manager.book().forget(&origin);
            let stays = manager.tracker.clone();
            stays.spawn(async move { rest(&instance).await });
            Err(format!("toolbox `{id}` does not list its tools: {failure}"))
        }
    }
}

/// Logs which tools cannot be used.
pub(crate) fn name_dropped(origin: &Origin, tools: &ToolSet) {
    let Origin {
        toolbox_id,
        generation,
    } = origin;
    for dropped in &tools.dropped {
        tracing::warn!(toolbox = &**toolbox_id, generation, "{dropped}; it is left out");
    }
}
