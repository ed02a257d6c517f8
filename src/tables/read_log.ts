/** What the bytes of a log say. These functions run in processes of their own: the owner of a bucket writes what they read. */
import { bounds } from '../config/bounds.ts';
import type { NamedBytes, ParsedAction } from './actions.ts';
import { parseCommit } from './actions.ts';
import { decodeCheckpoint } from './checkpoint.ts';
import { rowsIn } from './files.ts';
import { shownText } from './metadata.ts';
import { fieldsOf } from './schema.ts';
import { applyActions, emptyState, type TableState } from './state.ts';
import { tableError } from './table_error.ts';

/** The objects that make a version of a table. */
export interface LogBytes {
  readonly checkpoint: NamedBytes | null;
  /** The commits after it, in order. */
  readonly commits: readonly NamedBytes[];
}

/** The state of a table after its last commit. @throws DestinationError `TableDamaged` */
export async function foldLog({ checkpoint, commits }: LogBytes): Promise<TableState> {
  const state = checkpoint ? await decodeCheckpoint(checkpoint) : emptyState();
  const budget = { values: bounds.tableValues.max };
  for (const commit of commits) applyActions(state, parseCommit(commit, budget));
  if (!state.metaData || !state.protocol)
    throw tableError('TableDamaged', 'The log of the table has no schema or no protocol.');
  return state;
}

/** What a table has, for people. */
export interface TableContent {
  readonly files: number;
  /** Null if not every file says how many it has. */
  readonly rows: number | null;
  readonly bytes: number;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly partition_columns: readonly string[];
  readonly protocol: { readonly reader: number; readonly writer: number };
}

/** Describes a table after its last commit. @throws DestinationError `TableDamaged` */
export async function describeLog(log: LogBytes): Promise<TableContent> {
  const state = await foldLog(log);
  let bytes = 0;
  let rows: number | null = 0;
  for (const { size, stats } of state.live.values()) {
    bytes += size;
    const counted = rowsIn(stats);
    rows = rows === null || counted === null ? null : rows + counted;
  }
  const columns = fieldsOf(state.metaData?.schemaString ?? '');
  return {
    files: state.live.size,
    rows,
    bytes,
    columns: columns.slice(0, bounds.queryColumns.max).map((column) => ({
      name: shownText(column.name),
      type: typeof column.type === 'string' ? shownText(column.type) : 'structure',
    })),
    partition_columns: (state.metaData?.partitionColumns ?? [])
      .map(shownText)
      .slice(0, bounds.queryColumns.max),
    protocol: {
      reader: state.protocol?.minReaderVersion ?? 0,
      writer: state.protocol?.minWriterVersion ?? 0,
    },
  };
}

/** What a commit is to exportd. */
export interface CommitSummary {
  /** The run that wrote it and its generation; null if no run of exportd did. */
  readonly publication: { readonly run_id: string; readonly generation: number } | null;
  /** The repair that wrote it; null if none did. */
  readonly repair_id: string | null;
  /** Whether it only adds and removes files for the export: the next version then depends on nothing of it. */
  readonly isPlain: boolean;
  /** Whether it has all of the table: a protocol is only in the first commit of a log. */
  readonly startsLog: boolean;
  readonly adds: number;
  readonly removes: number;
  /** What it says of itself. */
  readonly info: NonNullable<ParsedAction['commitInfo']>;
}

/** What a commit says. @throws DestinationError `TableDamaged` */
export function summarizeCommit(commit: NamedBytes): CommitSummary {
  let info: CommitSummary['info'] | undefined;
  let [adds, removes, definitions] = [0, 0, 0];
  let startsLog = false;
  for (const { add, remove, metaData, protocol, commitInfo } of parseCommit(commit)) {
    info ??= commitInfo ?? undefined;
    if (add) adds += 1;
    if (remove) removes += 1;
    if (metaData) definitions += 1;
    if (protocol) startsLog = true;
  }
  const { run_id, generation, repair_id = null } = info ?? {};
  const publication = run_id === undefined || generation === undefined ? null : { run_id, generation };
  const isPlain = publication !== null && definitions === 0 && !startsLog;
  return { publication, repair_id, isPlain, startsLog, adds, removes, info: info ?? {} };
}
