/** An event as these laws look at it. */
export interface JournalEvent {
  readonly stream_type: string;
  readonly stream_id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Events of one export, of its backfills and of its runs, in the order of the journal. */
export type ExportJournal = readonly JournalEvent[];

interface StartedRun {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly backfill_id: string | null;
  readonly continues_run_id: string | null;
}

const endings = [
  'RunCompleted',
  'RunFailed',
  'RunFailedRetryable',
  'RunTimedOut',
  'RunTerminated',
  'RunCancelled',
  'RunContinuedAsNew',
];
const isEnding = ({ type }: JournalEvent): boolean => endings.includes(type);

/** Breaches of design §4's table: transitions that are not in it, a second ending, no ending at all. */
export function illegalTransitions(journal: ExportJournal): string[] {
  const runs = Map.groupBy(
    journal.filter(({ stream_type }) => stream_type === 'run'),
    ({ stream_id }) => stream_id,
  );
  return [...runs].flatMap(([id, events]) => {
    const types = events.map(({ type }) => type);
    const ended = events.findIndex(isEnding);
    const began = types.indexOf('RunExportStarted');
    const published = types.indexOf('RunPublishStarted');
    const faults = [
      types[0] === 'RunCreated' && types.lastIndexOf('RunCreated') === 0
        ? ''
        : 'does not begin with one RunCreated',
      events.filter(isEnding).length === 1 ? '' : `has ${events.filter(isEnding).length} endings`,
      began > ended || published > ended ? 'goes on after its end' : '',
      types[ended] === 'RunCompleted' && published === -1 ? 'is Completed without a claim' : '',
      types[ended] === 'RunCancelled' && published !== -1 ? 'is Cancelled after its claim' : '',
    ].filter((fault) => fault !== '');
    return faults.map((fault) => `run ${id} ${fault}: ${types.join(', ')}`);
  });
}

/** Breaches of the limits: two active runs of an interval, or more scheduled runs at once than there may be. */
export function crowds(journal: ExportJournal, limit: number): string[] {
  const active = new Map<string, StartedRun>();
  const faults: string[] = [];
  for (const event of journal) {
    if (event.stream_type !== 'run') continue;
    if (isEnding(event)) active.delete(event.stream_id);
    if (event.type !== 'RunCreated') continue;
    const run = event.data as unknown as StartedRun;
    const others = [...active.values()];
    const same = others.filter(
      (other) =>
        other.data_interval_start === run.data_interval_start &&
        other.data_interval_end === run.data_interval_end,
    );
    if (same.length > 0) faults.push(`${run.data_interval_start} has two active runs`);
    active.set(event.stream_id, run);
    const scheduled = [...active.values()].filter(({ backfill_id }) => backfill_id === null);
    if (run.backfill_id === null && scheduled.length > limit)
      faults.push(`${scheduled.length} scheduled runs at once, at ${run.data_interval_start}`);
  }
  return faults;
}

/** Runs of the schedule that were opened while the export was paused or deleted, and any run of a deleted one. */
export function runsOutOfTime(journal: ExportJournal): string[] {
  let paused = false;
  let deleted = false;
  return journal.flatMap(({ type, data, stream_id }) => {
    if (type === 'BatchExportCreated') paused = data.paused === true;
    if (type === 'BatchExportPaused') paused = true;
    if (type === 'BatchExportUnpaused') paused = false;
    if (type === 'BatchExportDeleted') deleted = true;
    if (type !== 'RunCreated') return [];
    const { backfill_id, continues_run_id } = data as unknown as StartedRun;
    const wrong = deleted || (paused && backfill_id === null && continues_run_id === null);
    return wrong
      ? [`run ${stream_id} was opened while the export was ${deleted ? 'deleted' : 'paused'}`]
      : [];
  });
}

/** Runs of a backfill that were opened after it was cancelled, where the schedule does not rely on them. */
export function runsOfCancelledBackfills(journal: ExportJournal): string[] {
  const cancelled = new Set<string>();
  const taken = new Set(
    journal.filter(({ type }) => type === 'IntervalScheduled').map(({ data }) => String(data.start)),
  );
  return journal.flatMap(({ type, data, stream_id }) => {
    if (type === 'BackfillCancelled') cancelled.add(stream_id);
    if (type !== 'RunCreated') return [];
    const { backfill_id, data_interval_start } = data as unknown as StartedRun;
    const wrong = backfill_id !== null && cancelled.has(backfill_id) && !taken.has(data_interval_start);
    return wrong ? [`run ${stream_id} was opened after its backfill was cancelled`] : [];
  });
}

/**
 * Whether the schedule's intervals and skipped ranges tile time: what is left out between two, or there twice. Of a
 * deleted export, what was due and had no run yet is left out.
 */
export function holesAndOverlaps(journal: ExportJournal): string[] {
  const created = journal.find(({ type }) => type === 'BatchExportCreated');
  let until = String(created?.data.scheduled_until);
  const revisions = journal
    .filter(({ type }) => type === 'IntervalScheduled' || type === 'IntervalsSkipped')
    .map(({ data }) => ({ start: String(data.start), end: String(data.end) }))
    .toSorted((one, other) => one.start.localeCompare(other.start));
  const deleted = journal.some(({ type }) => type === 'BatchExportDeleted');
  return revisions.flatMap(({ start, end }) => {
    const fits = deleted ? start >= until : start === until;
    const fault = fits ? [] : [`${start} follows ${until}`];
    until = end;
    return fault;
  });
}
