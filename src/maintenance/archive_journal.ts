/** Old events go to the operator's bucket as Parquet, are read back, and leave the control database. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { Settings } from '../config/settings.ts';
import { parseS3Config } from '../destination/config.ts';
import { DestinationError } from '../destination/destination.ts';
import { deleteObject, openObject, putSmallObject } from '../destination/objects.ts';
import { createS3Requests } from '../destination/requests.ts';
import type { ArchivedEvent, ArchivedRange, ReadArchive } from '../journal/archives.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { readSettledPosition } from '../journal/journal.ts';
import { projectionLock } from '../projections/rebuild.ts';

/** The operator's bucket. Its methods throw DestinationError. */
export interface ArchiveStore {
  /** Writes an object, unless it is there already. */
  readonly put: (name: string, bytes: Buffer, contentType: string) => Promise<void>;
  readonly read: (name: string) => Promise<Buffer>;
  /** Deletes an object with its versions, if it is there. @returns whether nothing of it stays */
  readonly delete: (name: string) => Promise<boolean>;
  /** `s3://bucket/key`. */
  readonly locationOf: (name: string) => string;
  readonly close: () => void;
}

const archiveError = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false });

/** Opens the bucket that the settings name; undefined without one. */
export function openArchive(settings: Settings, signal: AbortSignal): ArchiveStore | undefined {
  if (settings.EXPORTD_ARCHIVE_BUCKET === undefined) return undefined;
  // The operator chose it: what restricts the destinations of projects does not apply.
  const trusted: Settings = {
    ...settings,
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true,
    EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true,
  };
  const config = parseS3Config(
    {
      bucket_name: settings.EXPORTD_ARCHIVE_BUCKET,
      region: settings.EXPORTD_ARCHIVE_REGION,
      prefix: settings.EXPORTD_ARCHIVE_PREFIX,
      endpoint_url: settings.EXPORTD_ARCHIVE_ENDPOINT_URL ?? null,
      aws_access_key_id: settings.EXPORTD_ARCHIVE_ACCESS_KEY_ID ?? null,
      aws_secret_access_key: settings.EXPORTD_ARCHIVE_SECRET_ACCESS_KEY ?? null,
    },
    trusted,
  );
  const requests = createS3Requests(config, { settings: trusted, onError: () => undefined });
  const prefix = config.prefix.replace(/\/?$/, '/').replace(/^\/$/, '');
  const locationOf = (name: string): string => `s3://${requests.bucket}/${prefix}${name}`;
  return {
    put: async (name, bytes, ContentType) => {
      if (!(await putSmallObject(requests, prefix + name, bytes, { ContentType }, signal)))
        throw archiveError('ArchiveTaken', `${locationOf(name)} exists with another content.`);
    },
    read: async (name) => {
      const object = await openObject(requests, prefix + name, signal);
      if (!object) throw archiveError('ArchiveMissing', `${locationOf(name)} does not exist.`);
      const chunks: Buffer[] = [];
      for await (const chunk of object.chunks) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
    delete: async (name) => (await deleteObject(requests, prefix + name, signal)) === 'erased',
    locationOf,
    close: requests.close,
  };
}

const columns = [
  ['global_position', 'INT64'],
  ['stream_type', 'STRING'],
  ['stream_id', 'STRING'],
  ['stream_version', 'INT64'],
  ['event_id', 'STRING'],
  ['cause', 'STRING'],
  ['event_type', 'STRING'],
  ['schema_version', 'INT32'],
  ['data', 'STRING'],
  ['recorded_at', 'STRING'],
] as const;

/** An event as its row in the file: text as PostgreSQL writes it. */
type FileRow = Readonly<Record<(typeof columns)[number][0], string | number>>;

const encode = (rows: readonly FileRow[]): Buffer =>
  Buffer.from(
    parquetWriteBuffer({
      columnData: columns.map(([name, type]) => ({
        name,
        type,
        nullable: false,
        data: rows.map((row) => (type === 'INT64' ? BigInt(row[name]) : row[name])),
      })),
    }),
  );

async function decode(bytes: Buffer): Promise<FileRow[]> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  const rows = await parquetReadObjects({ file, compressors });
  return rows.map(
    (row) =>
      Object.fromEntries(
        columns.map(([name]) => [name, typeof row[name] === 'bigint' ? Number(row[name]) : row[name]]),
      ) as FileRow,
  );
}

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Reads ranges from the bucket, for a rebuild. */
export const createArchiveReader =
  ({ read, locationOf }: ArchiveStore): ReadArchive =>
  async (range) =>
    (await decode(await readRange({ read, locationOf }, range))).map(
      ({ event_type, data, recorded_at, ...event }) =>
        ({
          ...event,
          type: event_type,
          data: JSON.parse(String(data)) as object,
          recorded_at: new Date(recorded_at).toISOString(),
          // The columns are those of the journal.
        }) as unknown as ArchivedEvent,
    );

async function readRange(
  { read, locationOf }: Pick<ArchiveStore, 'read' | 'locationOf'>,
  { name, sha256 }: ArchivedRange,
): Promise<Buffer> {
  const bytes = await read(name);
  if (digestOf(bytes) !== sha256)
    throw archiveError(
      'ArchiveDamaged',
      `${locationOf(name)} is not what was archived: its SHA-256 differs.`,
    );
  return bytes;
}

/** Whether the newest range can be read; why not, or null. */
export async function findArchiveProblem(pool: Pool, settings: Settings): Promise<string | null> {
  const { rows } = await pool.query<ArchivedRange>(
    'select * from exportd.journal_archives order by last_position desc limit 1',
  );
  const store = rows[0] && openArchive(settings, AbortSignal.timeout(checkTimeoutMs));
  if (!rows[0] || !store) return null;
  try {
    await createArchiveReader(store)(rows[0]);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    store.close();
  }
}

const checkTimeoutMs = 10_000;

/** What a step of an archive has just done. */
export type ArchiveStep = 'file' | 'manifest' | 'recorded' | 'deleted';

interface ArchiveOptions {
  /** Events older than this many milliseconds are archived. */
  readonly historyMs: number;
  /** How many events a file has; by default 10,000. The journal keeps those that fill no file yet. */
  readonly eventsPerFile?: number;
  /** Called after each step, for tests. */
  readonly onStep?: (step: ArchiveStep) => void;
}

/** What a call has archived. */
interface ArchivedCounts {
  readonly ranges: number;
  readonly events: number;
}

/** Advisory lock of the session that archives. */
export const archiveLock = 7_116_203;
const defaultEventsPerFile = 10_000;

/**
 * Archives ranges of old events, in the order of the journal, until the rest fills no file or `isOver`. It can be killed anywhere
 * and repeated: a range is recorded after its file was read back, and no event is deleted before.
 * @throws DestinationError
 */
export async function archiveJournal(
  pool: Pool,
  store: ArchiveStore,
  { historyMs, eventsPerFile = defaultEventsPerFile, onStep = () => undefined }: ArchiveOptions,
  isOver: () => boolean,
): Promise<ArchivedCounts> {
  const counts = { ranges: 0, events: 0 };
  await withArchiveLock(pool, async (connection) => {
    await emptyRanges(connection, onStep, isOver);
    while (!isOver()) {
      const events = await readNextRange(connection, { historyMs, eventsPerFile });
      if (!events) break;
      await archiveRange(connection, store, events, onStep);
      counts.ranges += 1;
      counts.events += events.length;
      await emptyRanges(connection, onStep, isOver);
    }
  });
  return counts;
}

/** Does `work` on a connection whose session has the archive for itself. @returns null while another process has it */
async function withArchiveLock<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result | null> {
  const connection = await pool.connect();
  try {
    const { rows } = await connection.query<{ locked: boolean }>(
      'select pg_try_advisory_lock($1) as locked',
      [archiveLock],
    );
    return rows[0]?.locked === true ? await work(connection) : null;
  } finally {
    // At once: PostgreSQL notices the end of a session a little later.
    await connection.query('select pg_advisory_unlock($1)', [archiveLock]).catch(() => undefined);
    connection.release(true);
  }
}

/** Reads the next events that fill a file and are all old enough; undefined if there are not so many. */
async function readNextRange(
  connection: Connection,
  { historyMs, eventsPerFile }: { readonly historyMs: number; readonly eventsPerFile: number },
): Promise<readonly FileRow[] | undefined> {
  const settled = await readSettledPosition(connection, projectionLock);
  const { rows } = await connection.query<FileRow>(
    `select ${columns.map(([name]) => (name === 'data' || name === 'recorded_at' ? `${name}::text` : name)).join(', ')}
     from exportd.journal_events
     where global_position > (select coalesce(max(last_position), 0) from exportd.journal_archives) and global_position < $1
     order by global_position limit $2`,
    // The newest event stays, by which others find the end of the journal.
    [settled, eventsPerFile],
  );
  const isOld = ({ recorded_at }: FileRow) => Date.parse(String(recorded_at)) <= Date.now() - historyMs;
  return rows.length === eventsPerFile && rows.every(isOld) ? rows : undefined;
}

/** Writes a file and its manifest, reads them back, and records the range. */
async function archiveRange(
  connection: Connection,
  store: ArchiveStore,
  rows: readonly FileRow[],
  onStep: (step: ArchiveStep) => void,
): Promise<void> {
  const positions = rows.map(({ global_position }) => Number(global_position));
  const { rows: former } = await connection.query<{ last: number }>(
    'select coalesce(max(last_position), 0) as last from exportd.journal_archives',
  );
  const range = await writeRange(
    store,
    { first_position: (former[0]?.last ?? 0) + 1, last_position: positions.at(-1) ?? 0 },
    rows,
    onStep,
  );
  await connection.query(
    `insert into exportd.journal_archives (first_position, last_position, name, location, events, bytes, sha256)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      ...[range.first_position, range.last_position, range.name, range.location],
      ...[range.events, range.bytes, range.sha256],
    ],
  );
  onStep('recorded');
}

async function writeRange(
  store: ArchiveStore,
  { first_position, last_position }: Pick<ArchivedRange, 'first_position' | 'last_position'>,
  rows: readonly FileRow[],
  onStep: (step: ArchiveStep) => void,
): Promise<ArchivedRange> {
  const bytes = encode(rows);
  const sha256 = digestOf(bytes);
  const padded = (position: number) => String(position).padStart(12, '0');
  // The content is part of the name: what a killed process has left is either the same, or in nobody's way.
  const name = `journal/${padded(first_position)}-${padded(last_position)}-${sha256.slice(0, 16)}`;
  const range: ArchivedRange = {
    ...{
      first_position,
      last_position,
      name: `${name}.parquet`,
      location: store.locationOf(`${name}.parquet`),
    },
    ...{ events: rows.length, bytes: bytes.length, sha256 },
  };
  const manifest = Buffer.from(
    `${JSON.stringify({ format: 'exportd journal', version: 1, ...range, columns: columns.map(([column]) => column) }, null, 2)}\n`,
  );
  await store.put(range.name, bytes, 'application/vnd.apache.parquet');
  onStep('file');
  await store.put(`${name}.json`, manifest, 'application/json');
  onStep('manifest');
  const stored = await store.read(range.name);
  if (!stored.equals(bytes) || !(await store.read(`${name}.json`)).equals(manifest))
    throw archiveError('ArchiveDamaged', `${range.location} or its manifest was not stored as it was sent.`);
  if (!isDeepStrictEqual(await decode(stored), rows))
    throw archiveError('ArchiveDamaged', `${range.location} does not have the events of the journal.`);
  return range;
}

/** What an erasure has done in the archive. */
export interface ForgottenInArchive {
  readonly ranges: number;
  /** The ranges that are written again, without the ids. */
  readonly rewritten: number;
  /** The locations of former files that may not be deleted. */
  readonly held: readonly string[];
}

/**
 * Replaces ids in archived events, as `forgetKeys` does in the journal: of runs of a project, and of runs that a digest has
 * replaced, whose events nothing reads. A range is written anew, recorded, and its former file deleted; it can be killed anywhere
 * and repeated. No new range has the ids.
 * @param replacements the ids, and what names them instead
 * @returns null while another process archives
 * @throws DestinationError
 */
export async function forgetInArchive(
  pool: Pool,
  store: ArchiveStore,
  { team_id, replacements }: { readonly team_id: number; readonly replacements: ReadonlyMap<string, string> },
  onRange: () => void,
): Promise<ForgottenInArchive | null> {
  return withArchiveLock(pool, async (connection) => {
    const { rows: texts } = await connection.query<{ of: string; to: string }>(
      `select '"id": ' || to_jsonb(id)::text as of, '"id": ' || to_jsonb(replacement)::text as to
       from unnest($1::text[], $2::text[]) as replaced (id, replacement)`,
      [[...replacements.keys()], [...replacements.values()]],
    );
    const { rows: ranges } = await connection.query<ArchivedRange>(
      'select * from exportd.journal_archives order by last_position',
    );
    let rewritten = 0;
    for (const range of ranges) {
      onRange();
      const bytes = await readRange(store, range);
      if (await forgetInRange(connection, store, { range, events: await decode(bytes), team_id, texts }))
        rewritten += 1;
    }
    return { ranges: ranges.length, rewritten, held: await deleteFormerFiles(connection, store) };
  });
}

async function forgetInRange(
  connection: Connection,
  store: ArchiveStore,
  {
    range,
    events,
    team_id,
    texts,
  }: {
    readonly range: ArchivedRange;
    readonly events: readonly FileRow[];
    readonly team_id: number;
    readonly texts: readonly { readonly of: string; readonly to: string }[];
  },
): Promise<boolean> {
  const hasId = ({ stream_type, data }: FileRow): boolean =>
    stream_type === 'run' && texts.some(({ of }) => String(data).includes(of));
  const found = events.filter(hasId);
  const { rows: others } = await connection.query<{ id: string }>(
    'select id from exportd.batch_export_runs where id = any($1) and team_id <> $2',
    [found.map(({ stream_id }) => stream_id), team_id],
  );
  const ofOthers = new Set(others.map(({ id }) => id));
  const isMeant = (event: FileRow): boolean => hasId(event) && !ofOthers.has(String(event.stream_id));
  if (!found.some(isMeant)) return false;
  const written = await writeRange(
    store,
    range,
    events.map((event) =>
      isMeant(event)
        ? {
            ...event,
            data: texts.reduce((text, { of, to }) => text.replaceAll(of, () => to), String(event.data)),
          }
        : event,
    ),
    () => undefined,
  );
  await connection.query(
    `update exportd.journal_archives set name = $2, location = $3, bytes = $4, sha256 = $5, former_names = former_names || name
     where last_position = $1`,
    [range.last_position, written.name, written.location, written.bytes, written.sha256],
  );
  return true;
}

/** Deletes the files of ranges that were written anew. @returns the locations of those that stay */
async function deleteFormerFiles(connection: Connection, store: ArchiveStore): Promise<string[]> {
  const held: string[] = [];
  const { rows } = await connection.query<{ last_position: number; name: string }>(
    'select last_position, unnest(former_names) as name from exportd.journal_archives order by last_position',
  );
  for (const { last_position, name } of rows) {
    const objects = [name, name.replace(/\.parquet$/, '.json')];
    const stays = (
      await Promise.all(objects.map(async (one) => ((await store.delete(one)) ? null : one)))
    ).find((one) => one !== null);
    if (stays === undefined)
      await connection.query(
        'update exportd.journal_archives set former_names = array_remove(former_names, $2) where last_position = $1',
        [last_position, name],
      );
    else held.push(store.locationOf(stays));
  }
  return held;
}

/** Positions that one statement looks at, and events that it deletes at most: appends do not wait for it. */
const deletedEvents = 1_000;

/**
 * Deletes the digests and steps of the schedule that are archived, except the newest step of each export and those
 * before a skipped range, which others read. Nothing reads the rest, and there is one for each run. What people changed stays, and so do runs that were not collapsed.
 */
async function emptyRanges(
  connection: Connection,
  onStep: (step: ArchiveStep) => void,
  isOver: () => boolean,
): Promise<void> {
  const { rows: ranges } = await connection.query<ArchivedRange>(
    'select first_position, last_position from exportd.journal_archives where emptied_at is null order by 1',
  );
  for (const { first_position, last_position } of ranges) {
    for (let after = first_position - 1; after < last_position;) {
      if (isOver()) return;
      const { rows } = await connection.query<{ last: number }>(
        `with part as materialized (
           select global_position, stream_id, event_type, data from exportd.journal_events
           where global_position > $1 and global_position <= $2 order by global_position limit ${deletedEvents}
         ), gone as (
           delete from exportd.journal_events event using part
           where event.global_position = part.global_position and (part.event_type = 'HistoryCollapsed'
             or part.event_type = 'IntervalScheduled' and exists (
               select from exportd.batch_exports export
               where export.id = part.stream_id and export.scheduled_until <> (part.data ->> 'end')::timestamptz)
             and not exists (
               select from exportd.journal_events skipped where skipped.stream_id = part.stream_id
                 and skipped.event_type = 'IntervalsSkipped' and skipped.data ->> 'start' = part.data ->> 'end'))
         )
         select coalesce(max(global_position), $2) as last from part`,
        [after, last_position],
      );
      after = rows[0]?.last ?? last_position;
      onStep('deleted');
    }
    await connection.query(
      'update exportd.journal_archives set emptied_at = clock_timestamp() where last_position = $1',
      [last_position],
    );
  }
}
