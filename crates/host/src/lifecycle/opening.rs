//! One copy of a toolbox, from its file to its list of tools.
//!
//! Takes every step that has to succeed before a copy may become the live one. Read [`open`].

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use ovos_toolbox_wire::{Failure, FailureKind};

use crate::artifact::file::PluginFile;
use crate::contract::services::{Open, Origin};
use crate::contract::tools::ToolSet;
use crate::lifecycle::code::{Code, Source};
use crate::lifecycle::content::private_folder;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::settings::ToolboxSettings;
use crate::lifecycle::shared::{Shared, rest};
use crate::lifecycle::status::State;
use crate::process::confine::why_unconfined;
use crate::transport::child::ProcessSettings;
use crate::transport::hosted::Hosted;

/// How long the service waits for the disk to make a toolbox's content folder.
const FOLDER_PATIENCE: Duration = Duration::from_secs(1);

/// Opens a copy and asks for its tools. A copy that fails, or is not ready when the service ends, is closed.
pub(crate) async fn open(
    manager: &Arc<Shared>,
    source: &Source,
    config: &ToolboxSettings,
) -> Result<Slot, String> {
    let id = source.id().to_owned();
    let (generation, stop_epoch) = {
        let mut copies = manager.copies();
        (copies.next_generation(&id), copies.stop_epoch(&id))
    };
    let section = serde_json::to_string(&config.toolbox.own).map_err(|e| e.to_string())?;
    let open = Open {
        generation,
        config: section,
        stop_epoch,
        limits: config.limits.clone(),
    };
    let content = match source.code.common() {
        // The process was confined before any of its toolboxes was known, so it cannot write to such a folder.
        Some(program) if program.is_confined() => None,
        _ => content_folder(manager, &id).await,
    };
    let shutting_down = || Failure::new(FailureKind::ToolboxClosed, "the service is shutting down");
    let origin = Origin {
        toolbox_id: id.as_str().into(),
        generation,
    };
    let content_dir = content
        .clone()
        .and_then(|folder| folder.into_os_string().into_string().ok());
    let list = |opened: Hosted| {
        let (manager, origin) = (Arc::clone(manager), origin.clone());
        let instance = Arc::new(opened.with_content_dir(content_dir.clone()));
        async move {
            let weak = Arc::downgrade(&instance);
            manager.copies().instances.insert(origin, weak);
            let tools = tokio::select! {
                tools = instance.tools() => tools,
                () = manager.stop.cancelled() => Err(shutting_down()),
            };
            (instance, tools)
        }
    };
    let services = manager.services.clone();
    let has_process = matches!(source.code, Code::Staged(..));
    let opening = match &source.code {
        Code::Common(program, manifest) => {
            let (program, manifest) = (Arc::clone(program), Arc::clone(manifest));
            let allowed = config.toolbox.allow_sha256.clone();
            async move {
                let file = program.file.clone();
                // The process may have been started again since the hash was compared.
                let checked = manager.blocking(move || file.check_again(&allowed)).await;
                checked.map_err(|reason| Failure::new(FailureKind::ToolboxError, reason))?;
                program.open(manifest, open, services, list).await
            }
            .boxed()
        }
        Code::Staged(file, manifest) => {
            let unconfined = config.toolbox.confine.as_ref().and_then(why_unconfined);
            if let Some(why) = unconfined {
                tracing::warn!(toolbox = id, why, "the toolbox runs unconfined");
            }
            let process = process_of(manager, file, config, content.clone());
            let opened = Hosted::in_child(process, Arc::clone(manifest), open, services);
            async move { Ok(list(opened.await?).await) }.boxed()
        }
    };
    // Entered before the toolbox opens, because it may report changed tools as soon as it has begun to.
    manager.copies().instances.insert(origin.clone(), Weak::new());
    let opened = tokio::select! {
        opened = opening => opened,
        // A toolbox with a process of its own ends its opening by itself, after the process has ended.
        () = manager.stop.cancelled(), if !has_process => Err(shutting_down()),
    };
    let (instance, tools) = opened.map_err(|e| {
        manager.copies().forget(&origin);
        format!("toolbox `{id}` does not open: {e}")
    })?;
    match tools {
        Ok(tools) => {
            log_dropped(&origin, &tools);
            Ok(Slot {
                source: source.clone(),
                config: config.clone(),
                instance,
                tools: Arc::new(tools),
                state: State::Ready,
            })
        }
        Err(failure) => {
            manager.copies().forget(&origin);
            manager.tracker.spawn(async move { rest(&instance).await });
            Err(format!("toolbox `{id}` does not list its tools: {failure}"))
        }
    }
}

/// How the process of a copy is started.
pub(crate) fn process_of(
    manager: &Shared,
    file: &Arc<PluginFile>,
    config: &ToolboxSettings,
    content: Option<PathBuf>,
) -> ProcessSettings {
    let confine = config.toolbox.confine.clone();
    ProcessSettings {
        program: manager.settings.greeter.program.clone(),
        file: Arc::clone(file),
        env: config.toolbox.env.clone(),
        memory_mb: config.memory_mb,
        confine: confine
            .filter(|confine| why_unconfined(confine).is_none())
            .map(|mut confine| {
                confine.paths_rw.extend(content);
                confine
            }),
        hello: manager.settings.greeter.hello,
        allow_sha256: config.toolbox.allow_sha256.clone(),
        stop: manager.stop.clone(),
    }
}

/// Makes the folder for a toolbox's content, which has to exist before its process is confined.
async fn content_folder(manager: &Shared, id: &str) -> Option<PathBuf> {
    let root = manager.settings.content_dir.clone()?;
    let (folder, name) = (root.join(id), id.to_owned());
    let making = tokio::task::spawn_blocking(move || private_folder(&root, &name));
    let result = match tokio::time::timeout(FOLDER_PATIENCE, making).await {
        Ok(Ok(result)) => result.map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the disk does not respond".to_owned()),
    };
    match result {
        Ok(()) => Some(folder),
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(toolbox = id, %folder, %error, "the toolbox has no content folder and can return no files");
            None
        }
    }
}

/// Logs which tools cannot be used.
pub(crate) fn log_dropped(origin: &Origin, tools: &ToolSet) {
    let Origin {
        toolbox_id,
        generation,
    } = origin;
    for dropped in &tools.dropped {
        tracing::warn!(toolbox = &**toolbox_id, generation, "{dropped}; it is left out");
    }
}
