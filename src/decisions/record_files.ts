import type { RunInterval } from '../contract/workflow_inputs.ts';
import {
  areInSameBucket,
  ConfigVersionNotFound,
  createMayShrink,
  readConfigVersions,
  readPublicConfig,
} from '../destination/config_versions.ts';
import type { Manifest } from '../destination/manifest.ts';
import { configsOfBucket, foreignBecause } from '../destination/own_keys.ts';
import {
  adoptedFiles,
  type AdoptedManifest,
  type CompletedFile,
  type EarlierGenerations,
  type ExportedFile,
  type ExportRange,
  type FileTotals,
  inKeyOrder,
  type PlannedPart,
  type RecordedFile,
  type SortKey,
} from '../domain/exported_files.ts';
import { type Fingerprint, rowsOfFingerprint, subtractFingerprint } from '../domain/fingerprint.ts';
import {
  adoptedRun,
  earlierGenerationsOf,
  isCoveredByRows,
  type ReplacedRun,
} from '../domain/replaced_generation.ts';
import {
  decideFile,
  GenerationSuperseded,
  recordedPart,
  requireAttempt,
  requireGeneration,
  runDecider,
  RunEnded,
  type RunEvent,
  type RunEventData,
} from '../domain/run.ts';
import {
  backfillOf,
  type ExistingRun,
  filesOf,
  isActiveStatus,
  type RangeAttempt,
  type RunSpec,
  type RunState,
} from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import {
  type Journal,
  type JournalTransaction,
  type LockedStream,
  readState,
  writeLogLine,
} from '../journal/journal.ts';
import { dayOf, storeNotification } from './notifications.ts';

type RunStream = LockedStream<RunState, RunEvent>;

/** The steps of runs. Each is one transaction under the lock of the run's stream, and returns the run after it. */
export type RunSteps = ReturnType<typeof createRunSteps>;

export function createRunSteps(journal: Journal) {
  const step = async (
    runId: string,
    work: (stream: RunStream, transaction: JournalTransaction) => Promise<void>,
  ): Promise<ExistingRun> =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      await work(stream, transaction);
      const state = stream.state();
      if (state.status === 'Absent') throw new RunEnded('Absent');
      return state;
    });
  /** A step of the newest generation. `cause` identifies it within the generation. */
  const generationStep = (
    runId: string,
    generation: number,
    cause: string,
    decide: (run: ExistingRun) => RunEvent[],
  ): Promise<ExistingRun> =>
    step(runId, async (stream) => {
      const run = requireGeneration(stream.state(), generation);
      await stream.append(`generation:${generation}/${cause}`, decide(run));
    });
  /** A step of the latest attempt at a range. */
  const attemptStep = (
    runId: string,
    attempt: RangeAttempt,
    cause: string,
    decide: (range: ExportRange, run: ExistingRun) => RunEvent[],
  ): Promise<ExistingRun> =>
    generationStep(runId, attempt.generation, cause, (run) =>
      decide(requireAttempt(run, attempt).range, run),
    );
  return { step, generationStep, attemptStep };
}

/** Reserves the interval's next generation. */
export async function reserveNextGeneration(
  stream: RunStream,
  transaction: JournalTransaction,
  run: ExistingRun,
  more: { late_rows?: true; fingerprint?: Fingerprint } = {},
): Promise<void> {
  const generation = await nextGeneration(transaction, run);
  await stream.append(`reserve:${generation}`, [
    { type: 'RunGenerationReserved', data: { generation, ...more } },
  ]);
}

/**
 * An interval has at most one active run, so the maximum over all of its runs is the last reserved generation, unless the
 * bucket had a manifest of which the journal knew nothing.
 */
export async function nextGeneration(transaction: JournalTransaction, run: ExistingRun): Promise<number> {
  if (!isActiveStatus(run.status)) throw new RunEnded(run.status);
  const { batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const { rows } = await transaction.connection.query<{ next: number }>(
    `select greatest(max(greatest(generation, adopted_generation)), (
         select collapsed_generation from exportd.intervals
         where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3), 0) + 1 as next
     from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, data_interval_start, data_interval_end],
  );
  return rows[0]?.next ?? 1;
}

/** The range of a step, as its event has it. */
const rangeStepOf = ({ generation, range }: RangeAttempt) => ({ generation, range });

/** The ids of a run's log lines and notifications. */
export const logIdsOf = (run: ExistingRun, runId: string) => ({
  team_id: run.spec.team_id,
  batch_export_id: run.spec.batch_export_id,
  run_id: runId,
});

/** A file that starts, and the encoder of its bytes. */
interface StartedFile {
  /** The file's number within its range. */
  readonly file: number;
  readonly key: string;
  readonly upload_token: string;
  readonly encoder: string;
}

/** Records what an attempt writes: uploads, parts and files, each before it is sent or after it is complete. */
export const createFileRecorder = ({ step, generationStep, attemptStep }: RunSteps) => ({
  /** `part_bytes`: the size of every part but the last, if the destination requires one size; else null. */
  recordUpload: (
    runId: string,
    attempt: RangeAttempt,
    upload: StartedFile & { readonly upload_id: string; readonly part_bytes: number | null },
  ) =>
    attemptStep(runId, attempt, `upload:${upload.upload_id}`, () => [
      { type: 'RunUploadCreated', data: { ...rangeStepOf(attempt), ...upload } },
    ]),
  /** Records a file of one part before it is written in one request. */
  planWholeFile: (runId: string, attempt: RangeAttempt, file: StartedFile, part: PlannedPart) =>
    attemptStep(runId, attempt, `whole:${file.upload_token}`, (_, run) => {
      const written = { ...file, upload_id: null, part_bytes: null, part: recordedPart(run, part) };
      return [{ type: 'RunUploadCreated', data: { ...rangeStepOf(attempt), ...written } }];
    }),
  /**
   * Records that another object has the key of a file. Reserves the next generation, unless files of this one are
   * complete: then the next file has the next number.
   */
  recordTakenKey: (runId: string, attempt: RangeAttempt, { file, key }: Pick<StartedFile, 'file' | 'key'>) =>
    step(runId, async (stream, transaction) => {
      const { run } = requireAttempt(stream.state(), attempt);
      await appendTakenKey(stream, transaction, run, { ...rangeStepOf(attempt), file, key });
      if (filesOf(run).count === 0) await reserveNextGeneration(stream, transaction, run);
    }),
  /** Records that another object has the key of the file of rejected rows, and reserves the next generation. */
  recordTakenRejectedKey: (runId: string, generation: number, key: string) =>
    step(runId, async (stream, transaction) => {
      const run = requireGeneration(stream.state(), generation);
      await appendTakenKey(stream, transaction, run, { generation, range: null, file: null, key });
      await reserveNextGeneration(stream, transaction, run);
    }),
  /** Resumes the range's open upload with the parts that exist in S3. */
  resumeUpload: (runId: string, attempt: RangeAttempt, key: string, partNumbers: readonly number[]) =>
    attemptStep(runId, attempt, `resume:${key}/${attempt.attempt}`, ({ upload }) => {
      const parts = (upload?.parts ?? []).filter((part) => partNumbers.includes(part.part_number));
      return [
        {
          type: 'RunUploadResumed',
          data: {
            ...rangeStepOf(attempt),
            key,
            part_numbers: parts.map((part) => part.part_number),
            rows: parts.reduce((sum, part) => sum + part.rows, 0),
            bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
          },
        },
      ];
    }),
  /** Records a part before it is sent. Part numbers cannot be reused, so that no part is ever replaced. */
  planPart: async (runId: string, attempt: RangeAttempt, key: string, part: PlannedPart): Promise<void> => {
    await attemptStep(runId, attempt, `part:${key}/${part.part_number}`, ({ upload }, run) => {
      if (upload?.key !== key || part.part_number <= upload.highest_part_number)
        throw new GenerationSuperseded(`Part ${part.part_number} of ${key} was already planned.`);
      const data = { ...rangeStepOf(attempt), key, part: recordedPart(run, part) };
      return [{ type: 'RunPartPlanned', data }];
    });
  },
  /** Returns the run if `attempt` is the latest. */
  requireAttempt: (runId: string, attempt: RangeAttempt) => attemptStep(runId, attempt, 'checked', () => []),
  /** Records a complete file. `finishesRange`: with it the files contain every row of the range. `line`: of the export's log. */
  recordFile: (
    runId: string,
    attempt: RangeAttempt,
    file: CompletedFile,
    { finishesRange = false, line }: { finishesRange?: boolean; line?: string } = {},
  ) =>
    step(runId, async (stream, { connection }) => {
      const { run } = requireAttempt(requireGeneration(stream.state(), attempt.generation), attempt);
      await stream.append(`generation:${attempt.generation}/file:${file.key}`, [
        decideFile(run, { ...rangeStepOf(attempt), file }, { finishesRange }),
      ]);
      if (line !== undefined)
        await writeLogLine(connection, { ...logIdsOf(run, runId), level: 'INFO', message: line });
    }),
  /** Records that the files contain every row of the range. */
  finishRange: (runId: string, attempt: RangeAttempt) =>
    attemptStep(runId, attempt, `range:${attempt.range}`, ({ finished }) =>
      finished ? [] : [{ type: 'RunRangeFinished', data: rangeStepOf(attempt) }],
    ),
  /** Records the file of the generation's rejected rows before it is written. Idempotent. */
  planRejectedFile: (runId: string, generation: number, file: ExportedFile) =>
    generationStep(runId, generation, 'rejected', (run) =>
      run.rejected_file ? [] : [{ type: 'RunRejectedFilePlanned', data: { generation, file } }],
    ),
});

/** Appends that a key is taken, and notifies of it. */
async function appendTakenKey(
  stream: RunStream,
  { connection, now }: JournalTransaction,
  run: ExistingRun,
  taken: RunEventData<'RunKeyTaken'>,
): Promise<void> {
  await stream.append(`taken:${taken.generation}/${taken.key}`, [{ type: 'RunKeyTaken', data: taken }]);
  const { data_interval_start, data_interval_end } = run.spec;
  await storeNotification(connection, {
    ...logIdsOf(run, stream.id),
    type: 'run.key_taken',
    // A prefix with the objects of another export has thousands of them.
    cause: dayOf(now),
    backfill_id: backfillOf(run.spec),
    status: run.status,
    latest_error: null,
    data_interval_start,
    data_interval_end,
  });
}

/** A completed file and the index of its range. */
export interface RangeFile extends CompletedFile {
  readonly range: number;
}

/** Reads the completed files of a run's generation, in key order. The state of the run has only their totals. */
export const readFiles = (
  database: Pool | Connection,
  runId: string,
  run: Pick<ExistingRun, 'generation' | 'ranges'>,
): Promise<RangeFile[]> => readFilesOf(database, runId, run.generation, filesOf(run));

async function readFilesOf(
  database: Pool | Connection,
  runId: string,
  generation: number,
  totals: FileTotals,
): Promise<RangeFile[]> {
  const { rows } = await database.query<{ range: number; key: string; file: StoredFile }>({
    name: 'read-files',
    text: `select range, key, file from exportd.destination_objects
      where run_id = $1 and generation = $2 and file is not null order by range, position`,
    values: [runId, generation],
  });
  const known = rows.flatMap(({ file: { fingerprint } }) => fingerprint ?? []);
  const files = rows.map(({ range, key, file }) => ({
    ...file,
    key,
    range,
    fingerprint: file.fingerprint ?? remainingRows(file, totals, known),
  }));
  return files.some((file) => file.generation !== undefined) ? inKeyOrder(files) : files;
}

/** A completed file as its row has it, beside its key. */
export type StoredFile = Omit<RecordedFile, 'key'>;

/** What the files of a run have more than those whose fingerprints are known: the rows of the only other file. */
function remainingRows(file: StoredFile, totals: FileTotals, known: readonly Fingerprint[]): Fingerprint {
  const remaining = totals.fingerprint && known.reduce(subtractFingerprint, totals.fingerprint);
  if (remaining === null || totals.count !== known.length + 1 || rowsOfFingerprint(remaining) !== file.rows)
    throw new Error(`${known.length + 1} files do not add up to the ${totals.count} files of their run.`);
  return remaining;
}

/** Reads the files of a run that publishes, and its base, in key order. */
export async function readPublishedFiles(
  database: Pool | Connection,
  runId: string,
  run: ExistingRun,
): Promise<readonly CompletedFile[]> {
  const own = await readFiles(database, runId, run);
  if (!run.replacement?.base) return own;
  const { run_id, generation } = run.replacement.replaced;
  const base = await readFilesOf(database, run_id, generation, run.replacement.base.files);
  return inKeyOrder<CompletedFile>([...base.map((file) => ({ generation, ...file })), ...own]);
}

/** Reads the keys of the late rows that a run adds to a manifest; undefined for a run that exports all rows. */
export async function readLateKeys(
  database: Pool | Connection,
  { replacement }: ExistingRun,
): Promise<readonly SortKey[] | undefined> {
  if (!replacement?.base) return undefined;
  const { rows } = await database.query<{ late_keys: readonly SortKey[] }>(
    `select data -> 'late_keys' as late_keys from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type = 'RunReplacementChecked' and data ? 'late_keys'
     order by stream_version desc limit 1`,
    [replacement.base.listed_by],
  );
  return rows[0]?.late_keys ?? [];
}

/** Reads the files of the manifest that a run replaces, in key order. */
export async function readReplacedFiles(
  database: Pool | Connection,
  { run_id, run, adopted_by }: ReplacedRun,
): Promise<readonly CompletedFile[]> {
  if (adopted_by === null) return readFiles(database, run_id, run);
  // Some of them may belong to a run of the journal that ended after it had published.
  const { rows } = await database.query<{ data: AdoptedManifest }>(
    `select data from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type = 'RunManifestAdopted'
     order by stream_version desc limit 1`,
    [adopted_by],
  );
  return rows[0] ? adoptedFiles(rows[0].data) : [];
}

/** Decides which files of earlier generations stay when a run publishes. @throws ConfigVersionNotFound */
export async function readEarlierGenerations(
  connection: Connection,
  runId: string,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<EarlierGenerations> {
  const isCovered = isCoveredByRows(run, replaced);
  const files = isCovered
    ? { own: [], replaced: [] }
    : {
        own: await readFiles(connection, runId, run),
        replaced: await readReplacedFiles(connection, replaced),
      };
  // Nothing can stay, so that the configs need not be read.
  const { kept, earlier, elsewhere } = replaced.run.earlier_generations;
  if (isCovered && [kept, earlier, elsewhere].every(({ length }) => length === 0))
    return earlierGenerationsOf(run, replaced, { mayShrink: false, isSameBucket: true, files });
  return earlierGenerationsOf(run, replaced, {
    mayShrink: await createMayShrink(connection)(run.spec),
    isSameBucket: await areInSameBucket(connection, run.spec, replaced.run.spec),
    files,
  });
}

/** Whether a run is a Completed one of the interval. */
export async function hasPublished(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs where id::text = $1 and batch_export_id = $2 and data_interval_start = $3
     and data_interval_end = $4 and status = 'Completed'`,
    [runId, spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  return rowCount === 1;
}

/** Whether another run of the interval than this one has claimed publishing, so that its manifest may be stored. */
export async function mayHavePublished(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs run
     join exportd.stream_states folded on folded.stream_type = 'run' and folded.stream_id = run.id
     where run.batch_export_id = $1 and run.data_interval_start = $2 and run.data_interval_end = $3 and run.id <> $4
       and folded.state->>'publish_started_at' is not null limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, runId],
  );
  return rowCount === 1;
}

/** Whether a manifest of an interval is that of a run whose history was collapsed. */
export async function isCollapsedRun(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.intervals where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
       and collapsed_generation is not null and manifest_run_id::text = $4`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, runId],
  );
  return rowCount === 1;
}

/**
 * Reads the run whose manifest another run of its interval would replace: the newest Completed one, or the one whose
 * manifest a newer run found in the bucket and adopted. Null if there is none. An interval has at most one active run, so
 * the result changes only when that run adopts a manifest.
 */
export async function findReplacedRun(
  journal: Pick<Journal, 'pool' | 'projector'>,
  spec: RunInterval,
): Promise<ReplacedRun | null> {
  const { rows } = await journal.pool.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and (status = 'Completed' or adopted_generation is not null)
     order by position desc limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  const [found] = rows;
  if (!found) return null;
  const run = await readState(journal, runDecider, found.id);
  if (run.status === 'Absent') return null;
  if (run.status !== 'Completed' && run.adopted) return adoptedRun(run.adopted, run.spec, found.id);
  return { run_id: found.id, run, adopted_by: null };
}

/** Returns why exportd cannot have written a manifest of a run's interval, as a sentence; null if it may have. */
export async function foreignManifestBecause(
  pool: Pool,
  spec: RunSpec,
  manifest: Manifest,
): Promise<string | null> {
  const { config } = await readPublicConfig(pool, spec.batch_export_id, spec.config_version);
  const versions = await readConfigVersions(pool, spec.batch_export_id);
  return foreignBecause(manifest, spec, configsOfBucket(versions, config));
}

/** The facts of a manifest of the bucket that a run adopts. */
export async function readAdoptedManifest(
  pool: Pool,
  spec: RunSpec,
  manifest: Manifest,
): Promise<Omit<AdoptedManifest, 'raised_to'>> {
  const { run_id, generation, model, settled, source_rows, fingerprint, encoder, created_at } = manifest;
  const { files, rejected_file, kept, earlier } = manifest;
  const facts = { run_id, generation, model, settled, source_rows, fingerprint, encoder, created_at };
  const config_version = await findConfigVersion(pool, spec, manifest.config_version);
  return { ...facts, config_version, files, rejected_file, kept, earlier };
}

/**
 * The config version of the manifest, or the run's. The journal may lack it, or have given its number to another config,
 * but the manifest was found in the bucket of the run.
 */
async function findConfigVersion(pool: Pool, spec: RunSpec, configVersion: number): Promise<number> {
  try {
    const isSameBucket = await areInSameBucket(pool, spec, { config_version: configVersion });
    return isSameBucket ? configVersion : spec.config_version;
  } catch (error) {
    if (error instanceof ConfigVersionNotFound) return spec.config_version;
    throw error;
  }
}
