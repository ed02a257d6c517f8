import * as z from 'zod';
import { QueryError, type QueryPosition } from '../query_errors.ts';
import type { CheckTask, ComputedOutput, ParseTask, QueryForm, RunTask } from '../query_executor.ts';
import { QuerySchemaError } from '../parse_query.ts';
import type { Property } from '@exportd/dialect/types';
import type { InferredType } from '../inferred_types.ts';
import type { QueryStatement, ReadColumns, TextRow, WarehouseSchema } from '../warehouse.ts';

/** An error as plain data, for another thread. */
type TransferredError =
  | {
      readonly type: 'query';
      readonly code: string;
      readonly message: string;
      readonly attr: string | null;
      readonly position: QueryPosition | null;
    }
  | { readonly type: 'schema'; readonly issues: string; readonly path: readonly string[] }
  | { readonly type: 'other'; readonly name: string; readonly message: string; readonly stack: string };

/** Errors of a request keep their class, on which the response depends; any other error keeps its name. */
export function transferError(error: unknown): TransferredError {
  if (error instanceof QueryError) {
    const { code, message, attr, position } = error;
    return { type: 'query', code, message, attr, position };
  }
  // As JSON, because an issue can hold values that cannot be cloned.
  if (error instanceof QuerySchemaError)
    return { type: 'schema', issues: JSON.stringify(error.error.issues), path: error.path };
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  return { type: 'other', name, message, stack };
}

/** The error that `transferError` received in the other thread. */
export function restoreError(transferred: TransferredError): Error {
  switch (transferred.type) {
    case 'query':
      return new QueryError(transferred.code, transferred.message, transferred);
    case 'schema':
      return new QuerySchemaError(
        new z.ZodError(JSON.parse(transferred.issues) as z.core.$ZodIssue[]),
        transferred.path,
      );
    case 'other': {
      const error = new Error(transferred.message);
      error.name = transferred.name;
      error.stack = transferred.stack;
      return error;
    }
  }
}

/** A task for a thread, which computes one at a time. */
export type ThreadTask =
  | { readonly type: 'parse'; readonly task: ParseTask }
  | { readonly type: 'check'; readonly task: CheckTask }
  | { readonly type: 'run'; readonly task: RunTask };

/** What a thread asks of the warehouse of its process. */
export type WarehouseRequest = { readonly id: number } & (
  | { readonly asks: 'schema' }
  | { readonly asks: 'types'; readonly properties: readonly Property[] }
  | {
      readonly asks: 'rows';
      readonly statement: QueryStatement;
      readonly limits: { readonly maxRows: number; readonly maxBytes: number };
    }
);

/** From the process to the thread: a task, or a part of what its warehouse answers. */
export type ToThread =
  | ThreadTask
  | { readonly type: 'rows'; readonly id: number; readonly rows: readonly TextRow[]; readonly bytes: number }
  | { readonly type: 'columns'; readonly id: number; readonly columns: ReadColumns }
  | { readonly type: 'schema'; readonly id: number; readonly schema: WarehouseSchema }
  | { readonly type: 'types'; readonly id: number; readonly types: readonly InferredType[] }
  /** The error stays in the process, because its class would be lost on the way. */
  | { readonly type: 'request_failed'; readonly id: number };

/** From the thread to the process: a request to the warehouse, or the result of the task. */
export type FromThread =
  | { readonly type: 'request'; readonly request: WarehouseRequest }
  | { readonly type: 'parsed'; readonly form: QueryForm }
  | { readonly type: 'checked' }
  | { readonly type: 'computed'; readonly output: ComputedOutput }
  | { readonly type: 'failed'; readonly error: TransferredError }
  /** The task ended with the error of this request. */
  | { readonly type: 'failed_request'; readonly id: number };
