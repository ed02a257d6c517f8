/** The part of an event that these invariants depend on. */
export interface JournalEvent {
  readonly stream_type: string;
  readonly stream_id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The events of an export, its backfills and its runs, in journal order. */
type ExportJournal = readonly JournalEvent[];

interface CreatedRunData {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly backfill_id: string | null;
  readonly continues_run_id: string | null;
  readonly retry_number: number;
}

/** The events that end a run. */
export const endEvents = [
  'RunCompleted',
  'RunUnchanged',
  'RunFailed',
  'RunFailedRetryable',
  'RunTimedOut',
  'RunTerminated',
  'RunCancelled',
  'RunContinuedAsNew',
];
const isEndEvent = ({ type }: JournalEvent): boolean => endEvents.includes(type);

/** Runs with an illegal transition, or not exactly one end event. */
export function illegalTransitions(journal: ExportJournal): string[] {
  const runs = Map.groupBy(
    journal.filter(({ stream_type }) => stream_type === 'run'),
    ({ stream_id }) => stream_id,
  );
  // The runs of a deleted export are cancelled while they publish too: nothing waits for their manifests.
  const isDeleted = journal.some(({ type }) => type === 'BatchExportDeleted');
  return [...runs].flatMap(([id, events]) => {
    const types = events.map(({ type }) => type);
    const endedAt = events.findIndex(isEndEvent);
    const startedAt = types.indexOf('RunExportStarted');
    const claims = types.filter((type) => type === 'RunPublishStarted' || type === 'RunPublishWithdrawn');
    const isClaimed = claims.at(-1) === 'RunPublishStarted';
    const publishedAt = types.lastIndexOf('RunPublishStarted');
    const violations = [
      types[0] === 'RunCreated' && types.lastIndexOf('RunCreated') === 0
        ? ''
        : 'does not start with one RunCreated',
      events.filter(isEndEvent).length === 1 ? '' : `has ${events.filter(isEndEvent).length} end events`,
      startedAt > endedAt || publishedAt > endedAt ? 'continues after its end' : '',
      types[endedAt] === 'RunCompleted' && !isClaimed ? 'is Completed without a claim' : '',
      types[endedAt] === 'RunCancelled' && isClaimed && !isDeleted && !types.includes('RunCancelRequested')
        ? 'is Cancelled after its claim'
        : '',
    ].filter((violation) => violation !== '');
    return violations.map((violation) => `run ${id} ${violation}: ${types.join(', ')}`);
  });
}

/** Exceeded limits: two active runs of an interval, or too many active scheduled runs. */
export function exceededLimits(journal: ExportJournal, limit: number): string[] {
  const active = new Map<string, CreatedRunData>();
  const violations: string[] = [];
  for (const event of journal) {
    if (event.stream_type !== 'run') continue;
    if (isEndEvent(event)) active.delete(event.stream_id);
    if (event.type !== 'RunCreated') continue;
    const run = event.data as unknown as CreatedRunData;
    const others = [...active.values()];
    const same = others.filter(
      (other) =>
        other.data_interval_start === run.data_interval_start &&
        other.data_interval_end === run.data_interval_end,
    );
    if (same.length > 0) violations.push(`${run.data_interval_start} has two active runs`);
    active.set(event.stream_id, run);
    const scheduled = [...active.values()].filter(({ backfill_id }) => backfill_id === null);
    if (run.backfill_id === null && scheduled.length > limit)
      violations.push(`${scheduled.length} concurrent scheduled runs at ${run.data_interval_start}`);
  }
  return violations;
}

/** Scheduled runs that were created while the export was paused, and any runs created after its deletion. */
export function runsWhilePaused(journal: ExportJournal): string[] {
  let paused = false;
  let deleted = false;
  return journal.flatMap(({ type, data, stream_id }) => {
    if (type === 'BatchExportCreated') paused = data.paused === true;
    if (type === 'BatchExportPaused') paused = true;
    if (type === 'BatchExportUnpaused') paused = false;
    if (type === 'BatchExportDeleted') deleted = true;
    if (type !== 'RunCreated') return [];
    const { backfill_id, continues_run_id } = data as unknown as CreatedRunData;
    const isViolation = deleted || (paused && backfill_id === null && continues_run_id === null);
    return isViolation
      ? [`run ${stream_id} was created while the export was ${deleted ? 'deleted' : 'paused'}`]
      : [];
  });
}

/**
 * Runs of a backfill that were created after its cancellation, unless the schedule adopted them, or they are retries that
 * another backfill waits for.
 */
export function runsOfCancelledBackfills(journal: ExportJournal): string[] {
  const cancelled = new Set<string>();
  const adopted = new Set(
    journal.filter(({ type }) => type === 'IntervalScheduled').map(({ data }) => String(data.start)),
  );
  const sharing = new Map<string, Set<string>>();
  return journal.flatMap(({ type, data, stream_id }) => {
    if (type === 'BackfillCancelled') cancelled.add(stream_id);
    if (type === 'BackfillRunCreated' && data.own === false) {
      const start = String(data.start);
      sharing.set(start, (sharing.get(start) ?? new Set()).add(stream_id));
    }
    if (type !== 'RunCreated') return [];
    const { backfill_id, data_interval_start, retry_number } = data as unknown as CreatedRunData;
    const isShared =
      retry_number > 0 && [...(sharing.get(data_interval_start) ?? [])].some((id) => !cancelled.has(id));
    const isViolation =
      backfill_id !== null && cancelled.has(backfill_id) && !adopted.has(data_interval_start) && !isShared;
    return isViolation ? [`run ${stream_id} was created after its backfill was cancelled`] : [];
  });
}

/**
 * Gaps and overlaps between the schedule's intervals and skipped ranges. A deleted export may have gaps: due intervals
 * without a run.
 */
export function gapsAndOverlaps(journal: ExportJournal): string[] {
  const created = journal.find(({ type }) => type === 'BatchExportCreated');
  let until = String(created?.data.scheduled_until);
  const decided = journal
    .filter(({ type }) => type === 'IntervalScheduled' || type === 'IntervalsSkipped')
    .map(({ data }) => ({ start: String(data.start), end: String(data.end) }))
    .toSorted((one, other) => one.start.localeCompare(other.start));
  const deleted = journal.some(({ type }) => type === 'BatchExportDeleted');
  return decided.flatMap(({ start, end }) => {
    const fits = deleted ? start >= until : start === until;
    const violation = fits ? [] : [`${start} follows ${until}`];
    until = end;
    return violation;
  });
}
