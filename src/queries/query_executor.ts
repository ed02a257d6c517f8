/** What computes queries, in this thread or in another: its tasks, and what it needs of the process. */
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import type { ProjectSchema } from './dialect_reader.ts';
import type { InferTypes } from './inferred_types.ts';
import type {
  FiltersOverride,
  QueryFreshness,
  QueryProgress,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';
import type { Warehouse } from './warehouse.ts';

/** The query of a request, before it is parsed. */
export interface ParseTask {
  readonly query: Readonly<Record<string, unknown>>;
  readonly filters_override: FiltersOverride | null;
  readonly project: QueryProject;
  readonly now: Date;
}

/** What a process knows of a query without running it: plain data, which another thread may have computed. */
export interface QueryForm {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Digest of the parts that the output depends on. */
  readonly digest: string;
  readonly freshness: QueryFreshness;
  readonly variables: readonly UsedVariable[];
}

/** A text of the dialect that is compiled and not run. */
export interface CheckTask extends ProjectSchema {
  readonly query: string;
  /** Whether properties without a declared type may have any type, because the query infers them when it runs. */
  readonly infersTypes: boolean;
}

/** One run of a query, within its limits. */
export interface RunTask extends Pick<QueryForm, 'kind' | 'query'> {
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly row_limit: number;
  readonly byte_limit: number;
}

/** The output of a query. */
export interface ComputedOutput {
  /** A JSON object: the response without the fields that the endpoint adds. */
  readonly json: Uint8Array;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
}

/** What the process of a query does for it while it is computed. */
export interface RunEnvironment {
  readonly warehouse: Warehouse;
  readonly inferTypes: InferTypes;
  readonly progress: (progress: QueryProgress) => void;
  /** Ends the computation, at once even if it is busy, where the executor can. */
  readonly signal: AbortSignal;
}

/** Computes queries: parses them, compiles their statements and folds the rows. */
export interface QueryExecutor {
  /** @throws QueryError, QuerySchemaError */
  parse(task: ParseTask): Promise<QueryForm>;
  /** @throws QueryError `dialect_error` if the text does not compile */
  check(task: CheckTask): Promise<void>;
  /** @throws QueryError, the errors of the warehouse, the reason of the signal */
  run(task: RunTask, environment: RunEnvironment): Promise<ComputedOutput>;
  close(): Promise<void>;
}
