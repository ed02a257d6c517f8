import type { QueryStatement, ReadColumns, TextRow } from '../query_connection.ts';
import type {
  CheckTask,
  ComputedOutput,
  DraftTask,
  ParseTask,
  QueryForm,
  RunTask,
} from '../query_executor.ts';
import type { TransferredError } from './transferred_error.ts';

/** A task for a thread, which computes one at a time. */
export type ThreadTask =
  | { readonly type: 'parse'; readonly task: ParseTask }
  | { readonly type: 'check'; readonly task: CheckTask }
  | { readonly type: 'draft'; readonly task: DraftTask }
  | { readonly type: 'run'; readonly task: RunTask };

/** A statement that a thread asks its process to run. */
export interface StatementRequest extends QueryStatement {
  readonly id: number;
  /** Null for a statement about the catalog, whose rows are returned as objects. */
  readonly limits: { readonly maxRows: number; readonly maxBytes: number } | null;
}

/** From the process to the thread: a task, or a part of the result of a statement. */
export type ToThread =
  | ThreadTask
  | { readonly type: 'rows'; readonly id: number; readonly rows: readonly TextRow[]; readonly bytes: number }
  | { readonly type: 'columns'; readonly id: number; readonly columns: ReadColumns }
  | { readonly type: 'objects'; readonly id: number; readonly rows: readonly unknown[] }
  /** The error stays in the process, because its class would be lost on the way. */
  | { readonly type: 'statement_failed'; readonly id: number };

/** From the thread to the process: a statement, or the result of the task. */
export type FromThread =
  | { readonly type: 'statement'; readonly request: StatementRequest }
  | { readonly type: 'parsed'; readonly form: QueryForm }
  | { readonly type: 'checked' }
  | { readonly type: 'drafted'; readonly query: string }
  | { readonly type: 'computed'; readonly output: ComputedOutput }
  | { readonly type: 'failed'; readonly error: TransferredError }
  /** The task ended with the error of this statement. */
  | { readonly type: 'failed_statement'; readonly id: number };
