//! The facts on the control socket: first those of the record after the last known one, then those that happen.
//!
//! What is no longer in the memory is read from the record; what is not there either was lost, and the stream says so. Read
//! [`FactRecord::stream`].

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::fact_files;
use super::fact_record::{FactRecord, line};
use client::payload::{FactLine, FactPosition, LostFacts};
use engine::Followed;

/// How long facts are gathered for one write.
const GATHER: Duration = Duration::from_millis(10);

/// The largest write, in bytes, but for its last fact.
const BATCH: usize = 256 << 10;

/// How long the record may take to catch up, and to be read.
const RECORD: Duration = Duration::from_secs(1);
const READ: Duration = Duration::from_secs(10);

/// How many lines of the record are read ahead.
const AHEAD: usize = 64;

/// Where a stream is.
struct Stream<'a, W> {
    record: &'a FactRecord,
    out: &'a mut W,
    /// How long a write may take.
    patience: Duration,
    /// The last fact that was sent.
    sent: Option<FactPosition>,
    /// The run of which a line was sent, and its first fact.
    run: Option<(String, u64)>,
    batch: Vec<u8>,
}

impl FactRecord {
    /// Sends the facts after one until the other end closes its connection, or takes longer than `patience` to read.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn stream(
        &self,
        after: Option<FactPosition>,
        input: &mut (impl AsyncReadExt + Unpin),
        out: &mut (impl AsyncWriteExt + Unpin),
        patience: Duration,
    ) -> io::Result<()> {
        let mut follower = self.facts.follow();
        let mut stream = Stream {
            record: self,
            out,
            patience,
            sent: after,
            run: None,
            batch: Vec::new(),
        };
        stream.catch_up(follower.next_number()).await?;
        stream.send().await?;
        let mut ignored = [0; 256];
        loop {
            let followed = tokio::select! {
                followed = follower.next() => followed,
                read = input.read(&mut ignored) => match read? {
                    0 => return Ok(()),
                    _ => continue,
                },
            };
            let Some(mut followed) = followed else {
                return Ok(());
            };
            tokio::time::sleep(GATHER).await;
            loop {
                match followed {
                    Followed::Fact(fact) => {
                        stream.in_run();
                        stream.sends(fact.number, fact.number);
                        serde_json::to_writer(&mut stream.batch, &fact)?;
                        stream.batch.push(b'\n');
                    }
                    Followed::Lost { to, .. } => stream.catch_up(to + 1).await?,
                }
                match follower.ready() {
                    Some(next) if stream.batch.len() < BATCH => followed = next,
                    Some(next) => {
                        stream.send().await?;
                        followed = next;
                    }
                    None => break,
                }
            }
            stream.send().await?;
        }
    }
}

impl<W: AsyncWriteExt + Unpin> Stream<'_, W> {
    /// Notes that the fact of this number is sent next, or the last of those that are lost, and says which before it were lost.
    fn sends(&mut self, from: u64, to: u64) {
        let Some((run, first)) = &self.run else { return };
        let next = match &self.sent {
            Some(sent) if sent.start == *run => sent.number + 1,
            _ => *first,
        };
        self.sent = Some(FactPosition {
            start: run.clone(),
            number: to,
        });
        if next < from {
            let lost = LostFacts {
                from: next,
                to: from - 1,
            };
            self.batch.extend(line(&FactLine::Lost { lost }));
        }
    }

    /// Says that the next facts are of this run, if that was not said.
    fn in_run(&mut self) {
        let own = &self.record.start;
        if self.run.as_ref().is_none_or(|(run, _)| *run != own.id) {
            self.run = Some((own.id.clone(), own.first));
            let start = self.record.start.clone();
            self.batch.extend(line(&FactLine::Start { start }));
        }
    }

    /// Sends the facts before this number from the record.
    async fn catch_up(&mut self, before: u64) -> io::Result<()> {
        if let Some(path) = self.record.path.clone() {
            self.record.recorded_before(before, RECORD).await;
            let (after, run) = (self.sent.clone(), self.record.start.id.clone());
            let (give, mut lines) = mpsc::channel(AHEAD);
            // It ends with the receiver. A disk that does not respond holds up this thread alone.
            let reading = tokio::task::spawn_blocking(move || {
                let mut of_run = false;
                fact_files::read_after(&path, after.as_ref(), |text, head| {
                    if let Some(start) = &head.start {
                        of_run = start.id == run;
                    }
                    let beyond = of_run && head.number.is_some_and(|number| number >= before);
                    !beyond && give.blocking_send((text, head)).is_ok()
                })
            });
            while let Ok(Some((text, head))) = timeout(READ, lines.recv()).await {
                self.take(&text, &head);
                if self.batch.len() >= BATCH {
                    self.send().await?;
                }
            }
            drop(lines);
            drop(reading);
        }
        self.in_run();
        if before > self.record.start.first {
            // What was not in the record.
            self.sends(before, before - 1);
        }
        Ok(())
    }

    /// Takes a line of the record.
    fn take(&mut self, text: &str, head: &fact_files::Head) {
        if let Some(start) = &head.start {
            // Each file begins with the run of its facts.
            if self.run.as_ref().is_some_and(|(run, _)| *run == start.id) {
                return;
            }
            self.run = Some((start.id.clone(), start.first));
        } else if let Some(number) = head.number {
            self.sends(number, number);
        } else if let Some(lost) = head.lost {
            self.sends(lost.from, lost.to);
        }
        self.batch.extend(text.as_bytes());
    }

    async fn send(&mut self) -> io::Result<()> {
        timeout(self.patience, self.out.write_all(&self.batch)).await??;
        self.batch.clear();
        Ok(())
    }
}
