import { type Bound, boundText } from '../config/bounds.ts';
import type { Settings } from '../config/settings.ts';
import { selectionOfConfig } from '../destination/config_versions.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { applicationName } from '../source/postgres_source.ts';
import { relationsOf } from '../source/relations.ts';
import { selectsAllRows } from '../source/row_selection.ts';
import { describeStrayRows, findStrayRows } from '../source/stray_rows.ts';
import { connectToSource, type SourceConnections } from '../source/source_connection.ts';
import { checkInterval, type IntervalCheck, summarize } from './check_interval.ts';
import type { CheckContext } from './check_manifest.ts';
import { findCoverage } from './covered_time.ts';
import { findOverlaps, reportMisplacedRows } from './cross_manifest_checks.ts';
import { createExpirations, findGaps, sortIntervals, type TimeRange } from './gaps.ts';
import {
  createVersionFinder,
  type ExportDefinition,
  intervalOf,
  type LocationDependencies,
  type OpenedLocations,
  openLocations,
  readDefinition,
} from './locations.ts';
import { readKeptDifferences } from './kept_findings.ts';
import { findUnknownManifests, type IntervalManifests, listManifests } from './manifests.ts';
import { owedTime, readHistory } from './owed_time.ts';
import { CannotVerify, type Finding, type Note, type VerificationReport } from './report.ts';
import { createSourceRows } from './source_rows.ts';

const hourMs = 3_600_000;

/**
 * How long after its end an interval may lack a manifest: the longest delay of its run, the longest wait for open
 * transactions, and once its length for the export.
 */
const gracePeriodMs =
  (
    settings: Pick<
      Settings,
      'EXPORTD_JITTER_LONG' | 'EXPORTD_JITTER_SHORT_FRACTION' | 'EXPORTD_SETTLE_TIMEOUT'
    >,
  ) =>
  ({ start, end }: DataInterval): number => {
    const length = Date.parse(end) - Date.parse(start);
    const jitter =
      length >= hourMs ? settings.EXPORTD_JITTER_LONG : length * settings.EXPORTD_JITTER_SHORT_FRACTION;
    return jitter + Math.min(length, settings.EXPORTD_SETTLE_TIMEOUT) + length;
  };

/** Number of intervals that are checked concurrently. Small ones mostly wait for responses. */
const concurrency = 4;

/**
 * Dependencies for verifying. The control database says what an export owes and which objects have expired, never
 * what exists.
 */
interface VerifyDependencies extends LocationDependencies {
  readonly sourceUrl: string;
  /** What else is compared with the manifests. */
  readonly targets: readonly TargetCheck[];
}

/**
 * Compares what gets the files of an export besides its manifests, such as a table, with the current ones. `since`: the time of the
 * database before they were read; `range`: only what overlaps it is compared.
 */
export type TargetCheck = (
  dependencies: LocationDependencies,
  context: Pick<CheckContext, 'definition' | 'signal'> & {
    readonly since: string;
    readonly range: TimeRange;
  },
  manifests: readonly Manifest[],
) => Promise<Finding[]>;

/** Options for verifying. */
export interface VerifyOptions {
  readonly batchExportId: string;
  /** Times that JavaScript can parse. Only intervals that overlap [from, to) are verified. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Whether all values are compared with the source, not only the presence of rows. */
  readonly deep?: boolean | undefined;
  /** Whether only manifests are read, and their fingerprints compared with the source. */
  readonly fast?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How many manifests there may be, and their bytes together, because memory holds them; unlimited by default. */
  readonly manifestBounds?: { readonly count: Bound; readonly bytes: Bound } | undefined;
  /** Called after each interval. */
  readonly onProgress?: ((checked: number, intervals: number) => void) | undefined;
}

/**
 * Compares the output of an export with the source, using only manifests and objects, like a reader.
 * @throws CannotVerify when the export does not exist; DestinationError when its bucket cannot be read;
 * SecretUnreadable, InvalidRelationName, RelationNotFound; errors of the databases
 */
export async function verifyBatchExport(
  dependencies: VerifyDependencies,
  options: VerifyOptions,
): Promise<VerificationReport> {
  const { sourceUrl, settings } = dependencies;
  const definition = await readDefinition(dependencies.pool, options.batchExportId);
  const opened = await openLocations(dependencies, definition);
  const connections = connectToSource({
    sourceUrl,
    applicationName,
    maxConnections: concurrency,
    statementTimeoutMs: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT,
  });
  try {
    return await verify(definition, opened, connections, options, dependencies);
  } finally {
    for (const { reader } of opened.locations) reader.close();
    await connections.close();
  }
}

async function verify(
  definition: ExportDefinition,
  { locations, notes }: OpenedLocations,
  connections: SourceConnections,
  options: VerifyOptions,
  dependencies: VerifyDependencies,
): Promise<VerificationReport> {
  const { pool, settings } = dependencies;
  const { deep = false, fast = false, signal = new AbortController().signal } = options;
  if (deep && fast) throw new CannotVerify('Values are not compared with fast; use either deep or fast.');
  const range = { from: timeOf(options.from), to: timeOf(options.to) };
  if (range.from !== null && range.to !== null && range.from >= range.to)
    throw new CannotVerify('The range is empty: --from must be before --to.');
  const source = createSourceRows(connections, relationsOf(settings), signal);
  const findVersion = createVersionFinder(pool, definition);
  // Before manifests are listed, so that what is owed by now can be in the list.
  const { now, ...history } = await readHistory(pool, definition.batch_export_id);
  const owed = owedTime(history, { now, graceMs: gracePeriodMs(settings) });
  const expirations = createExpirations(pool, definition, now);
  const countManifest = manifestCounter(options.manifestBounds?.bytes);
  const kept = await readKeptDifferences(pool, definition.batch_export_id, range);
  const context: CheckContext = {
    source,
    kept,
    definition,
    findVersion,
    expirations,
    deep,
    fast,
    countManifest,
    signal,
  };
  const list = () => listManifests(locations, range, signal, options.manifestBounds?.count);
  const listing = await list();
  const intervals = await checkAll(context, sortIntervals(listing.intervals), options.onProgress);
  const checks = intervals.flatMap(({ check }) => check ?? []);
  const relist = async () => (await list()).intervals;
  const covered = checks.map(({ found }) => intervalOf(found.manifest));
  const known = new Set(intervals.map(({ interval }) => `${interval.start} ${interval.end}`));
  const gaps = await findGaps({ ...context, owed }, covered, range, async () =>
    (await relist()).filter(({ start, end }) => !known.has(`${start} ${end}`)),
  );
  const crossChecks = [
    ...(await findOverlaps(context, checks)),
    ...(await reportMisplacedRows(context, checks)),
    ...(await findUnknownManifests(
      pool,
      checks.map(({ found }) => found),
    )),
  ];
  const current = checks.filter(({ found }) => found.location.current).map(({ found }) => found.manifest);
  const inTargets = await Promise.all(
    dependencies.targets.map((check) =>
      check(dependencies, { definition, signal, since: now.toISOString(), range }, current),
    ),
  );
  const { coverage, findings: uncovered } = await findCoverage(
    context,
    pool,
    // An interval that was exported meanwhile is not among those that were checked.
    gaps.covered,
    range,
  );
  // A part of the time has no rows without one.
  const isWhole = range.from === null && range.to === null;
  const stray = isWhole ? await findRowsWithoutInterval(definition, connections, settings, signal) : null;
  return summarize(
    definition.batch_export_id,
    { deep, fast, ...range, coverage },
    intervals,
    {
      findings: [
        ...listing.findings,
        ...gaps.findings,
        ...uncovered,
        ...crossChecks,
        ...inTargets.flat(),
        ...(stray?.findings ?? []),
      ],
      notes: [...notes, ...listing.notes, ...gaps.notes, ...(stray?.notes ?? [])],
    },
    kept,
  );
}

/**
 * Finds rows that no interval will ever have. They are missing if the export selects all rows; whether another one selects them is
 * not known. Rows ahead of the clock are exported later.
 */
async function findRowsWithoutInterval(
  definition: ExportDefinition,
  connections: SourceConnections,
  settings: VerifyDependencies['settings'],
  signal: AbortSignal,
): Promise<{ readonly findings: readonly Finding[]; readonly notes: readonly Note[] }> {
  const current = definition.versions.find(({ version }) => version === definition.config_version);
  const selectsAll = current !== undefined && selectsAllRows(selectionOfConfig(current));
  const stray = await connections.read({}, signal, (transaction) =>
    findStrayRows(transaction, relationsOf(settings), definition),
  );
  const described = stray.flatMap((rows) =>
    describeStrayRows(rows).map(({ areLost, message }) => ({
      isMissing: areLost && selectsAll,
      count: rows.infinite,
      detail: `The source has ${message}`,
    })),
  );
  const nowhere = { start: null, end: null };
  return {
    findings: described
      .filter(({ isMissing }) => isMissing)
      .map(({ count, detail }) => ({ ...nowhere, kind: 'missing', object: null, count, rows: [], detail })),
    notes: described
      .filter(({ isMissing }) => !isMissing)
      .map(({ detail }) => ({ ...nowhere, reason: null, intervals: 0, detail })),
  };
}

function manifestCounter(bound: Bound | undefined): CheckContext['countManifest'] {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (bound && total > bound.max)
      throw new CannotVerify(
        `The manifests have more than ${boundText(bound)}. Verify a shorter range, or use "exportd verify".`,
      );
  };
}

function timeOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new CannotVerify(`"${text}" is not a valid time.`);
  return time.toISOString();
}

/** Checks intervals concurrently. The results have the order of the intervals. */
async function checkAll(
  context: CheckContext,
  intervals: readonly IntervalManifests[],
  onProgress: VerifyOptions['onProgress'],
): Promise<IntervalCheck[]> {
  const checks: IntervalCheck[] = [];
  const waiting = intervals.entries();
  let checked = 0;
  const checkNext = async () => {
    for (const [index, interval] of waiting) {
      checks[index] = await checkInterval(context, interval);
      checked += 1;
      onProgress?.(checked, intervals.length);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, checkNext));
  return checks;
}
