import { backfillDecider, type BackfillState } from '../domain/backfill.ts';
import { batchExportDecider, type BatchExportState } from '../domain/batch_export.ts';
import type { StreamType } from '../domain/event.ts';
import { openRange, runDecider, untouchedRun } from '../domain/run.ts';
import type { ExistingRun, RunSpec, RunState } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type {
  FoldedEvent,
  PendingWrite,
  StoredEvent,
  StreamState,
  StreamVersion,
} from '../journal/journal.ts';
import { type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';

type Members = Readonly<Record<string, unknown>>;

/** What runs have that no step has touched, with its JSON, by name. */
type Defaults = ReadonlyMap<string, { readonly value: unknown; readonly json: string }>;
const defaultsOf = (members: object): Defaults =>
  new Map(
    (Object.entries(members) as [string, unknown][]).map(([name, value]) => [
      name,
      { value, json: JSON.stringify(value) },
    ]),
  );
const untouchedRange = openRange(null, null);
const untouchedSpec = {
  allow_shrink: false,
  retry_number: 0,
  purpose: { kind: 'interval' },
  continues_run_id: null,
} satisfies Partial<RunSpec>;
const untouchedFiles = { rejected: 0, expires_at: null };
const untouched = {
  run: defaultsOf(untouchedRun),
  range: defaultsOf(untouchedRange),
  spec: defaultsOf(untouchedSpec),
  files: defaultsOf(untouchedFiles),
};

function changed(members: object, defaults: Defaults): Members {
  const changes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members) as [string, unknown][]) {
    const untouchedMember = defaults.get(name);
    if (untouchedMember === undefined) changes[name] = value;
    else if (value !== untouchedMember.value) {
      // What was read from the database is another object.
      const mayBeEqual = typeof value === 'object' && value !== null;
      if (!mayBeEqual || JSON.stringify(value) !== untouchedMember.json) changes[name] = value;
    }
  }
  return changes;
}

const isRun = (streamType: StreamType, state: unknown): state is ExistingRun =>
  streamType === 'run' && typeof state === 'object' && state !== null && 'spec' in state && 'ranges' in state;

/**
 * The state of a stream as it is stored: of a run only what its steps have changed, since there are more runs than anything
 * else, and a row of less than two kilobytes stays in one piece.
 */
function storedState(streamType: StreamType, state: unknown): unknown {
  if (!isRun(streamType, state)) return state;
  const { phase, encoder } = state;
  return {
    ...changed(state, untouched.run),
    spec: changed(state.spec, untouched.spec),
    ranges: state.ranges.map((range) => ({
      ...changed(range, untouched.range),
      files: changed(range.files, untouched.files),
    })),
    ...(phase.name !== 'exporting' && {
      phase: { ...phase, finished: changed(phase.finished, defaultsOf({ fingerprint: null, encoder })) },
    }),
  };
}

/** The state of a stream by what is stored of it. */
export function stateOf(streamType: StreamType, stored: unknown): unknown {
  if (!isRun(streamType, stored)) return stored;
  const { phase = untouchedRun.phase, encoder = null } = stored as Partial<ExistingRun>;
  return {
    ...untouchedRun,
    ...stored,
    spec: { ...untouchedSpec, ...stored.spec },
    ranges: stored.ranges.map((range) => ({
      ...untouchedRange,
      ...range,
      files: { ...untouchedFiles, ...range.files },
    })),
    phase:
      phase.name === 'exporting'
        ? phase
        : { ...phase, finished: { fingerprint: null, encoder, ...(phase.finished as object) } },
  };
}

interface StateRow {
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly version: number;
  readonly state: unknown;
  readonly unknown_event: string | null;
}

const table: CachedTable<StateRow> = {
  name: 'exportd.stream_states',
  key: ['stream_type', 'stream_id'],
  lookups: {
    run: {
      columns: ['stream_id'],
      where: { sql: `stored.stream_type = 'run'`, holds: ({ stream_type }) => stream_type === 'run' },
    },
    backfill: {
      columns: ['stream_id'],
      where: {
        sql: `stored.stream_type = 'backfill'`,
        holds: ({ stream_type }) => stream_type === 'backfill',
      },
    },
  },
};

/** A state in memory, of which the row has what is stored. Most events of a batch are followed by others of their stream. */
class StateInMemory {
  readonly streamType: StreamType;
  readonly state: unknown;
  constructor(streamType: StreamType, state: unknown) {
    this.streamType = streamType;
    this.state = state;
  }
  toJSON(): unknown {
    return storedState(this.streamType, this.state);
  }
}

/** The state after an event; undefined, without a change, if its type is one of a newer version. */
function evolve(before: unknown, event: StoredEvent): FoldedEvent['state'] {
  switch (event.stream_type) {
    case 'batch_export':
      return batchExportDecider.evolve(
        (before ?? batchExportDecider.initialState) as BatchExportState,
        event,
      );
    case 'run':
      return runDecider.evolve((before ?? runDecider.initialState) as RunState, event);
    case 'backfill':
      return backfillDecider.evolve((before ?? backfillDecider.initialState) as BackfillState, event);
  }
}

/** The row that a rebuild needs to fold an event into its stream's state. */
export const stateWantedBy = ({ stream_type, stream_id, stream_version }: StoredEvent): WantedRows => ({
  table,
  lookup: byKey,
  values: [stream_type, stream_id],
  isNew: stream_version === 1,
});

/** Folds an event of a rebuild into its stream's row, and returns the states before and after it. An append has them already. */
export function foldState(
  rows: RowCache,
  stored: StoredEvent,
): { readonly before: unknown; readonly state: unknown } {
  const { stream_type, stream_id, stream_version: version, type } = stored;
  const row = rows.get(table, stream_type, stream_id);
  if (!row && version > 1) throw missingState(stream_type, stream_id);
  const before =
    row?.state instanceof StateInMemory ? row.state.state : row && stateOf(stream_type, row.state);
  const after = evolve(before, stored);
  const state = after ?? before;
  const unknown_event = after === undefined ? type : (row?.unknown_event ?? null);
  rows.set(table, {
    stream_type,
    stream_id,
    version,
    unknown_event,
    state: new StateInMemory(stream_type, state),
  });
  return { before, state };
}

/**
 * The state of every stream, so that decisions do not read streams from the start: an export's stream grows by an event
 * per interval indefinitely.
 */
export const streamStatesProjection: Projection = {
  name: 'stream_states',
  version: 17,
  reads: [],
  owns: ['exportd.stream_states'],
  tables: `
    create table exportd.stream_states (
      stream_type text not null,
      stream_id uuid not null,
      version bigint not null,
      state jsonb not null,
      -- The type of an event that the version of exportd which rebuilt the table did not know, so that the state lacks it.
      unknown_event text,
      primary key (stream_type, stream_id)
    );
    create index on exportd.stream_states (stream_id) where unknown_event is not null`,
  cached: [table],
  wants: () => [],
  // What follows from an event of the stream itself is its decider's: an append writes it once, and a rebuild by `foldState`.
  fold: (rows, { stored }) => {
    if (stored.type !== 'HistoryCollapsed') return;
    rows.deleteAll(table, 'run', stored.data.run_ids);
    rows.deleteAll(table, 'backfill', stored.data.backfill_ids);
  },
};

const missingState = (streamType: StreamType, id: string): Error =>
  new Error(`The state of ${streamType} ${id} is missing. Run "exportd rebuild".`);

/** What writes the state of a stream at one of its versions. */
export const stateWrite = ({ stream_type, stream_id, version, state }: StreamState): PendingWrite => ({
  target: stream_id,
  words: ['state'],
  text: (first) => `insert into exportd.stream_states (stream_type, stream_id, version, state)
    values ($${String(first)}, $${String(first + 1)}, $${String(first + 2)}, $${String(first + 3)})
    on conflict (stream_type, stream_id) do update set version = excluded.version, state = excluded.state`,
  values: [stream_type, stream_id, version, JSON.stringify(storedState(stream_type, state))],
});

/** What writes the version of a stream whose state is unchanged, which PostgreSQL then does not write again. */
export const versionWrite = ({ stream_type, stream_id, version }: StreamVersion): PendingWrite => ({
  target: stream_id,
  words: ['version'],
  text: (first) => `update exportd.stream_states set version = $${String(first + 2)}
    where stream_type = $${String(first)} and stream_id = $${String(first + 1)}`,
  values: [stream_type, stream_id, version],
});

/** Reads the state of a stream that has at least one event. */
export async function readStreamState<State>(
  connection: Connection,
  streamType: StreamType,
  id: string,
): Promise<State> {
  const state = await findStreamState<State>(connection, streamType, id);
  if (state === undefined) throw missingState(streamType, id);
  return state;
}

/** Reads the last committed state of a stream; undefined if it has no events. */
export async function findStreamState<State>(
  database: Pool | Connection,
  streamType: StreamType,
  id: string,
): Promise<State | undefined> {
  const { rows } = await database.query<{ state: unknown }>({
    name: 'find-stream-state',
    text: 'select state from exportd.stream_states where stream_type = $1 and stream_id = $2',
    values: [streamType, id],
  });
  return rows[0] && (stateOf(streamType, rows[0].state) as State);
}
