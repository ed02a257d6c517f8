import type { Settings } from '../src/config/settings.ts';
import type { RunSteps } from '../src/decisions/run_steps.ts';
import type { Destination, DestinationFault } from '../src/destination/destination.ts';
import { manifestOf } from '../src/destination/manifest.ts';
import type { OpenDestination } from '../src/destination/open_destination.ts';
import { requireActive, type ExportedFile, type OpenedRun } from '../src/domain/run.ts';
import type { EncodedBlock, EncoderPool, FileEncoder } from '../src/encoding/encoder.ts';
import type { RowRange, Source } from '../src/source/source.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { currentActivity, withHeartbeats, type ActivityContext } from './activity_context.ts';
import { withFailures } from './failures.ts';
import { createFileWriter } from './file_writer.ts';

/** What the export activities work with. */
export interface ExportDependencies {
  readonly runSteps: RunSteps;
  readonly source: Source;
  readonly encoders: EncoderPool;
  readonly openDestination: OpenDestination;
  readonly logger: Logger;
  readonly settings: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT_MS' | 'EXPORTD_ENCODER_THREADS'>;
  /** Temporal's context of the running activity, unless a test brings its own. */
  readonly context?: () => ActivityContext;
}

/** Which run; everything else is read from the journal, so that no config and no row enters a history. */
export interface RunInput {
  readonly run_id: string;
}

/** What of an exported interval travels through a history: numbers alone. */
export interface ExportOutcome {
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/** What of a published manifest travels through a history. */
export interface PublishOutcome {
  readonly generation: number;
  readonly rows: number;
  readonly manifest_key: string;
}

/**
 * The data plane: rows go from the source to the destination, and every fact is recorded through `runSteps`, which
 * decides whether this attempt may still go on.
 */
export function createExportActivities(dependencies: ExportDependencies) {
  const { logger, settings, context = currentActivity } = dependencies;
  const alive = <Result>(progress: () => unknown, work: (signal: AbortSignal) => Promise<Result>) =>
    withHeartbeats(context(), settings.EXPORTD_HEARTBEAT_TIMEOUT_MS, progress, work);

  return withFailures(
    {
      /** Exports every row of the run's interval; a repeat after the last row returns what was recorded. */
      exportInterval: async ({ run_id }: RunInput): Promise<ExportOutcome> => {
        const progress = { rows: 0 };
        return alive(
          () => progress,
          (signal) => exportInterval(dependencies, run_id, progress, signal),
        );
      },

      /** Puts the manifest of an exported run, which makes its rows visible, and completes the run. */
      publishManifest: async ({ run_id }: RunInput): Promise<PublishOutcome> =>
        alive(
          () => undefined,
          (signal) => publishManifest(dependencies, run_id, signal),
        ),
    },
    logger,
  );
}

async function exportInterval(
  dependencies: ExportDependencies,
  runId: string,
  progress: { rows: number },
  signal: AbortSignal,
): Promise<ExportOutcome> {
  const { runSteps } = dependencies;
  const loaded = await runSteps.load(runId);
  if (loaded.finished) return outcomeOf(loaded);
  const begun = await runSteps.beginExport(runId);
  return withDestination(dependencies, runId, begun, async (destination) => {
    if (begun.upload) await abandon(destination, begun.upload, signal);
    signal.throwIfAborted();
    // Every attempt writes a generation of its own, so one that only seems dead never shares a key with another.
    const run = await runSteps.reserveGeneration(runId);
    const { encoder, file } = await exportRows(dependencies, runId, run, destination, progress, signal);
    const source_rows = await dependencies.source.countRows(rangeOf(run), signal);
    await logDifference(runSteps, runId, run, file?.rows ?? 0, source_rows);
    const facts = { source_rows, encoder: encoder.identity };
    return outcomeOf(await runSteps.finishExport(runId, run.generation, facts));
  });
}

async function exportRows(
  { runSteps, source, encoders, settings }: ExportDependencies,
  runId: string,
  run: OpenedRun,
  destination: Destination,
  progress: { rows: number },
  signal: AbortSignal,
): Promise<{ encoder: FileEncoder; file: ExportedFile | null }> {
  const { generation, subject } = run;
  const encoder = encoders.fileEncoder(destination.encoding, await source.columns(subject.model));
  const key = destination.fileKey(subject, generation, encoder.extension);
  await runSteps.log(run, runId, 'INFO', `Exporting ${intervalOf(run)} to ${destination.nameOf(key)}.`);
  const failed = new AbortController();
  const writer = createFileWriter({
    destination,
    encoder,
    key,
    signal: AbortSignal.any([signal, failed.signal]),
    recordUpload: (uploadId) => runSteps.recordUpload(runId, generation, key, uploadId),
    planPart: (part) => runSteps.planPart(runId, generation, key, part),
  });
  try {
    const pages = source.pages(rangeOf(run), null, signal);
    for await (const block of encodeInOrder(pages, encoder, settings.EXPORTD_ENCODER_THREADS)) {
      await writer.append(block);
      progress.rows += block.rows;
    }
    const file = await writer.finish();
    if (file) await runSteps.recordFile(runId, generation, file);
    const result = file
      ? `Wrote ${file.rows} records, ${file.bytes} bytes, to ${destination.nameOf(key)}.`
      : `There are no records in ${intervalOf(run)}; no file is written.`;
    await runSteps.log(run, runId, 'INFO', result);
    return { encoder, file };
  } catch (error) {
    failed.abort(error);
    await writer.discard();
    throw error;
  }
}

/** Encodes pages in the pool's threads, as many at once as it has, and gives the blocks out in the pages' order. */
async function* encodeInOrder(
  pages: ReturnType<Source['pages']>,
  encoder: FileEncoder,
  pagesInFlight: number,
): AsyncGenerator<EncodedBlock> {
  const encoding: Promise<EncodedBlock>[] = [];
  for await (const page of pages) {
    const block = encoder.encode(page);
    // Its turn to be awaited may never come when an earlier one fails.
    block.catch(() => undefined);
    encoding.push(block);
    const next = encoding.length >= pagesInFlight ? encoding.shift() : undefined;
    if (next) yield await next;
  }
  for (const block of encoding) yield await block;
}

async function publishManifest(
  dependencies: ExportDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  const { runSteps, source } = dependencies;
  const found = await runSteps.read(runId);
  const run =
    found.status === 'Completed'
      ? found
      : await runSteps.startPublish(runId, requireActive(found).generation);
  return withDestination(dependencies, runId, run, async (destination) => {
    const manifest_key = destination.manifestKey(run.subject);
    const manifest = manifestOf(runId, run, await source.columns(run.subject.model));
    if (run.status !== 'Completed') {
      const { verified } = await destination.putManifest(manifest_key, manifest, signal);
      if (!verified)
        await runSteps.log(
          run,
          runId,
          'WARNING',
          'The manifest could not be read back: the credentials may write to the bucket but not read from it.',
        );
      await runSteps.complete(runId, run.generation, manifest_key);
    }
    return { generation: run.generation, rows: manifest.rows, manifest_key };
  });
}

/** Opens the run's destination for one activity; waits for it are told to the export's log, each kind once. */
async function withDestination<Result>(
  { runSteps, openDestination, logger }: ExportDependencies,
  runId: string,
  run: OpenedRun,
  work: (destination: Destination) => Promise<Result>,
): Promise<Result> {
  const told = new Set<string>();
  const onWaiting = ({ type, message }: DestinationFault): void => {
    if (told.has(type)) return;
    told.add(type);
    runSteps
      .log(run, runId, 'WARNING', `${message} Trying again.`)
      .catch(() => logger.warn({ run_id: runId }, 'A line of the log of an export could not be written.'));
  };
  const destination = await openDestination(run.subject, onWaiting);
  try {
    return await work(destination);
  } finally {
    destination.close();
  }
}

/** Throws the upload of an attempt that died away. It is not worth failing for: the journal still knows of it. */
async function abandon(
  destination: Destination,
  upload: NonNullable<OpenedRun['upload']>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await destination.abandonFile(upload.key, upload.upload_id, signal);
  } catch {
    signal.throwIfAborted();
  }
}

async function logDifference(
  runSteps: RunSteps,
  runId: string,
  run: OpenedRun,
  rows: number,
  sourceRows: number,
): Promise<void> {
  // Persons are mutable: one that changed since then belongs to a later interval, which is no difference to report.
  if (rows === sourceRows || run.subject.model !== 'events') return;
  await runSteps.log(
    run,
    runId,
    'WARNING',
    `The source now has ${sourceRows} records in ${intervalOf(run)}, but ${rows} were exported; rows arrived late or were deleted.`,
  );
}

const rangeOf = ({ subject }: OpenedRun): RowRange => ({
  model: subject.model,
  team_id: subject.team_id,
  interval: { start: subject.data_interval_start, end: subject.data_interval_end },
});

const intervalOf = ({ subject }: OpenedRun): string =>
  `${subject.data_interval_start} to ${subject.data_interval_end}`;

function outcomeOf(run: OpenedRun): ExportOutcome {
  const total = (value: (file: ExportedFile) => number) =>
    run.files.reduce((sum, file) => sum + value(file), 0);
  return {
    generation: run.generation,
    rows: total(({ rows }) => rows),
    bytes: total(({ bytes }) => bytes),
    source_rows: run.finished?.source_rows ?? 0,
  };
}
